#!/usr/bin/env python3
"""review.py SEED [COUNT]: prints COUNT (12) tracked source files at random, at most one from each package while packages
remain, for a reading by someone who does not know the project. The same seed selects the same files."""

import random
import subprocess
import sys


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    seed, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 12
    listed = subprocess.run(["git", "ls-files", "*.rs"], check=True, capture_output=True, text=True).stdout
    packages = {}
    for path in sorted(listed.split()):
        package = "/".join(path.split("/")[: 2 if path.startswith(("crates/", "apps/")) else 1])
        packages.setdefault(package, []).append(path)
    chance = random.Random(seed)
    chosen = []
    while len(chosen) < count and any(packages.values()):
        names = [name for name, files in packages.items() if files]
        chance.shuffle(names)
        for name in names[: count - len(chosen)]:
            files = packages[name]
            chosen.append(files.pop(chance.randrange(len(files))))
    print("\n".join(sorted(chosen)))


if __name__ == "__main__":
    main()
