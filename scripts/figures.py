#!/usr/bin/env python3
"""Writes the figures of flow metering in README.md and docs/PERFORMANCE.md from kept measurements.

Usage: scripts/figures.py [--check]

A kept measurement is a file that `compare/run.sh --csv` wrote; its first line names the machine and the edition (the
commit). A table stands between `<!-- figures: NAME -->` and `<!-- figures: end -->`, where NAME is a function here.
With --check nothing is written: the exit status is 1 if a table is not that of its file, if a crate's README has a row that
the page of docs/ does not have, if the edition is more than 150
commits old, or if the instructions of a path from frames to the report changed by more than 5 % since the edition.
"""

import collections
import csv
import os
import re
import statistics
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))
KEPT = "compare/runs/metering.csv"
COUNTS = "testkit/benches/instructions.tsv"
PAGES = ["README.md", "docs/PERFORMANCE.md"]
# Pages with some rows of another page.
COPIES = {"crates/ring/README.md": "docs/RINGS.md", "crates/sketch/README.md": "docs/SKETCHES.md"}
COMMITS_MOST = 150
FILES = ["w1.pcap", "w2.pcap", "w3.pcap"]
# Candidates of compare/measure.py, as the pages call them.
CANDIDATES = {
    "yardstick": "yardstick",
    "yardstick, batched": "yardstick, batched",
    "ringtap flows, sequential": "ringtap flows, one thread",
    "ringtap flows to an IPFIX file, sequential": "ringtap flows, IPFIX file, one thread",
    "ringtap all, sequential": "ringtap all analyses, one thread",
    "ringtap flows, automatic": "ringtap flows, automatic plan",
    "ringtap flows to an IPFIX file, automatic": "ringtap flows, IPFIX file, automatic plan",
    "ringtap all, automatic": "ringtap all analyses, automatic plan",
    "softflowd": "softflowd",
    "nfpcapd": "nfpcapd",
    "argus": "argus",
}
PLAIN, BATCHED, FLOWS, IPFIX, ALL = list(CANDIDATES)[:5]
RIVALS = list(CANDIDATES)[8:]
IN_README = [FLOWS, IPFIX, ALL, *RIVALS]


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True, check=False)


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


class Measured:
    """The trials of a kept measurement."""

    def __init__(self, text):
        about, *rows = text.splitlines()
        self.about = about.removeprefix("# ").replace("; medians", ". Medians")
        self.edition = re.search(r"commit (\w+)", about)[1]
        self.packets, self.trials = {}, collections.defaultdict(list)
        for row in csv.DictReader(rows):
            self.packets[row["file"]] = int(row["packets"])
            self.trials[row["candidate"], row["file"]].append(row)

    def median(self, column, candidate, file):
        return statistics.median(float(row[column]) for row in self.trials[candidate, file])

    def rate(self, column, candidate, file):
        """Million packets a second of CPU or wall time."""
        rate = self.packets[file] / self.median(column, candidate, file) / 1e6
        return f"{rate:.1f}" if rate >= 2 else f"{rate:.2f}"

    def faster(self, file):
        """The yardstick that is faster on this file."""
        return min(PLAIN, BATCHED, key=lambda name: self.median("cpu_s", name, file))

    def ratio(self, candidate, other, file):
        """The rate of a candidate by CPU time over that of another one."""
        return self.median("cpu_s", other, file) / self.median("cpu_s", candidate, file)


def row(name, cells):
    return f"| {name} | {' | '.join(cells)} |"


def metering(measured):
    """The table of the README: packets by CPU time."""
    lines = ["| million packets per CPU second | 100 k flows | 1 M flows | SYN scans, 1 M flows |", "|---|---|---|---|"]
    faster = [measured.rate("cpu_s", measured.faster(file), file) for file in FILES]
    lines.append(row("the faster of two minimal meters, without timeouts and reports", faster))
    for name in IN_README:
        lines.append(row(CANDIDATES[name], [measured.rate("cpu_s", name, file) for file in FILES]))
    return [*lines, "", f"{measured.about}."]


def metering_walls(measured):
    """The table of PERFORMANCE.md: packets by CPU time and by wall time, ratios, and memory."""
    lines = ["| M packets / CPU s (wall s) | W1 | W2 | W3 |", "|---|---|---|---|"]
    for name, shown in CANDIDATES.items():
        both = [[measured.rate(column, name, file) for column in ("cpu_s", "wall_s")] for file in FILES]
        lines.append(row(shown, [f"{cpu} ({wall})" for cpu, wall in both]))
    faster = [f"{measured.ratio(FLOWS, measured.faster(file), file):.2f}" for file in FILES]
    lines.append(row("flows, one thread / the faster yardstick", faster))
    for shown, name, other in [
        ("all analyses / flows, one thread", ALL, FLOWS),
        ("flows with an IPFIX file / flows, one thread", IPFIX, FLOWS),
    ]:
        lines.append(row(shown, [f"{measured.ratio(name, other, file):.2f}" for file in FILES]))
    for rival in RIVALS:
        lines.append(row(f"IPFIX file, one thread / {rival}", [f"{measured.ratio(IPFIX, rival, file):.0f}" for file in FILES]))
    for name in (FLOWS, ALL, BATCHED):
        peaks = [f"{measured.median('peak_bytes', name, file) / 1e6:.0f}" for file in FILES]
        lines.append(row(f"peak memory, MB: {CANDIDATES[name]}", peaks))
    return [*lines, "", f"{measured.about}."]


TABLES = {"metering": metering, "metering_walls": metering_walls}


def written(page, measured):
    """The page with its tables of the measurement."""
    block = re.compile(r"<!-- figures: (\w+) -->\n.*?<!-- figures: end -->", re.S)

    def table(match):
        return "\n".join([f"<!-- figures: {match[1]} -->", *TABLES[match[1]](measured), "<!-- figures: end -->"])

    return block.sub(table, page)


def counts(text):
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(count) for name, count in rows if name.startswith(("run, ", "monitor, "))}


def stale(edition):
    """Why the edition no longer speaks for HEAD; yields nothing if it does."""
    if git("cat-file", "-e", edition).returncode:
        print(f"figures: SKIPPED: the history here does not have the edition {edition}")
        return
    commits = int(git("rev-list", "--count", f"{edition}..HEAD").stdout)
    if commits > COMMITS_MOST:
        yield f"the edition {edition} is {commits} commits old, {COMMITS_MOST} at most"
    before = counts(git("show", f"{edition}:{COUNTS}").stdout)
    for name, now in counts(read(COUNTS)).items():
        ratio = now / before.get(name, now)
        if not 0.95 <= ratio <= 1.05:
            yield f"{name}: {ratio:.2f} of the instructions at the edition {edition}"


def main():
    measured = Measured(read(KEPT))
    faults = []
    for path in PAGES:
        page = read(path)
        new = written(page, measured)
        if "--check" not in sys.argv:
            with open(os.path.join(ROOT, path), "w") as file:
                file.write(new)
        elif page != new:
            faults.append(f"{path}: the tables are not those of {KEPT}: run scripts/figures.py")
    for path, page in COPIES.items():
        rows = re.findall(r"^\|.*\|$", read(path).split("## Speed\n")[1], re.M)
        faults.extend(f"{path}: {one}: not a row of {page}" for one in rows if one not in read(page).splitlines())
    if "--check" in sys.argv:
        faults.extend(f"{fault}: measure again (compare/run.sh --csv {KEPT})" for fault in stale(measured.edition))
    for fault in faults:
        print(f"figures: {fault}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
