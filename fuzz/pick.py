#!/usr/bin/env python3
"""Picks a small corpus: from the control file of a libFuzzer merge, the inputs that together reach most.

Usage: fuzz/pick.py CONTROL-FILE CORPUS

Greedy set cover: again and again the input that adds most features, the smaller of equals, until nothing is added or
the corpus has 200 files or 300 kB. The picked become CORPUS, named by content, so that an unchanged input stays an
unchanged file; findings there, whose names are not sixteen hexadecimal digits, stay.
"""

import hashlib
import re
import sys
from pathlib import Path

FILES_MAX, BYTES_MAX = 200, 300_000


def inputs(control):
    """{content: set of features}. The file: counts of inputs, their paths, then `FT number feature…` lines."""
    lines = control.read_text(errors="surrogateescape").splitlines()
    count = int(lines[0])
    paths = lines[2 : 2 + count]
    reached = {}
    for line in lines[2 + count :]:
        kind, number, *features = line.split()
        if kind == "FT":
            reached[Path(paths[int(number)]).read_bytes()] = set(features)
    return reached


def pick(reached):
    picked, size, covered = [], 0, set()
    while len(picked) < FILES_MAX:
        fits = [data for data in reached if size + len(data) <= BYTES_MAX]
        best = max(fits, key=lambda data: (len(reached[data] - covered), -len(data), data), default=b"")
        if not reached.get(best, set()) - covered:
            break
        picked.append(best)
        size += len(best)
        covered |= reached.pop(best)
    return picked, len(covered), len(covered.union(*reached.values()))


def main():
    control, corpus = Path(sys.argv[1]), Path(sys.argv[2])
    picked, covered, all_of_them = pick(inputs(control))
    for old in corpus.iterdir():
        if re.fullmatch("[0-9a-f]{16}", old.name):
            old.unlink()
    for data in picked:
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    print(f"pick: {covered} of {all_of_them} features", file=sys.stderr)


if __name__ == "__main__":
    main()
