#!/usr/bin/env python3
"""Counts the external crates that the program is linked from, with all optional features and without, and fails if there
are more than the bounds say: what is added shall be added on purpose."""

import subprocess
import sys

# Features of the package ringtap, and how many crates there may be.
BOUNDS = {"": 151, "--no-default-features": 80}


def crates(features):
    command = ["cargo", "tree", "--locked", "-e", "normal", "-p", "ringtap", "--prefix", "none"]
    lines = subprocess.run(command + features.split(), check=True, capture_output=True, text=True).stdout
    # "name v1.2.3 (*)", "name v1.2.3 (proc-macro)", "name v1.2.3 (/path)"
    words = (line.split() for line in lines.splitlines() if line)
    return {tuple(line[:2]) for line in words if not (len(line) > 2 and line[2].startswith("(/"))}


failed = False
for features, most in BOUNDS.items():
    count = len(crates(features))
    print(f"{count} external crates {features or 'with the default features'}, {most} at most")
    failed |= count > most
sys.exit(failed)
