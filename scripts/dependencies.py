#!/usr/bin/env python3
"""Counts the external crates that the program is linked from, with all optional features and without, and fails if there
are more than the bounds say: what is added shall be added on purpose. And each crate that a package of the workspace asks
for has its reason in CONTRIBUTING.md, and no reason is left without its crate."""

import glob
import re
import subprocess
import sys
import tomllib

# Features of the package ringtap, and how many crates there may be.
BOUNDS = {"": 120, "--no-default-features": 60}


def crates(features):
    command = ["cargo", "tree", "--locked", "-e", "normal", "-p", "ringtap", "--prefix", "none"]
    lines = subprocess.run(command + features.split(), check=True, capture_output=True, text=True).stdout
    # "name v1.2.3 (*)", "name v1.2.3 (proc-macro)", "name v1.2.3 (/path)"
    words = (line.split() for line in lines.splitlines() if line)
    return {tuple(line[:2]) for line in words if not (len(line) > 2 and line[2].startswith("(/"))}


def asked_for():
    kinds = ("dependencies", "dev-dependencies", "build-dependencies")
    for path in glob.glob("*/Cargo.toml") + glob.glob("*/*/Cargo.toml"):
        if path.startswith(("compare/", "fuzz/", "target/")):
            continue
        with open(path, "rb") as file:
            package = tomllib.load(file)
        for table in (package, *package.get("target", {}).values()):
            for kind in kinds:
                yield from (name for name in table.get(kind, {}) if not name.startswith("ringtap"))


def with_reasons():
    with open("CONTRIBUTING.md") as file:
        section = file.read().split("## Dependencies\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([^`]+)`", section))


failed = False
for name in sorted(set(asked_for()) ^ with_reasons()):
    print(f"{name}: asked for by a package, or in the table of CONTRIBUTING.md, but not both")
    failed = True
for features, most in BOUNDS.items():
    count = len(crates(features))
    print(f"{count} external crates {features or 'with the default features'}, {most} at most")
    failed |= count > most
sys.exit(failed)
