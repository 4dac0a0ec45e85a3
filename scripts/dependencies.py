#!/usr/bin/env python3
"""Checks the external dependencies.

Fails if the program links more external crates than BOUNDS allows, with the default features,
without them, or with all of them but Kafka, so that no dependency is added by accident. Also fails if the external crates in the
manifests of the workspace differ from those in the table of CONTRIBUTING.md, which gives a reason
for each.
"""

import glob
import re
import subprocess
import sys
import tomllib

# Feature flags of the package ringtap, and the highest number of crates. The client of Kafka alone
# needs 51: a runtime, logins by SCRAM, dates.
WITHOUT_KAFKA = "--no-default-features --features color,fence,pages,parquet,signatures,tls,tui,websocket,zstd"
BOUNDS = {"": 186, WITHOUT_KAFKA: 136, "--no-default-features": 73}


def crates(features):
    command = ["cargo", "tree", "--locked", "-e", "normal", "-p", "ringtap", "--prefix", "none"]
    lines = subprocess.run(command + features.split(), check=True, capture_output=True, text=True).stdout
    # "name v1.2.3 (*)", "name v1.2.3 (proc-macro)", "name v1.2.3 (/path)"
    words = (line.split() for line in lines.splitlines() if line)
    return {tuple(line[:2]) for line in words if not (len(line) > 2 and line[2].startswith("(/"))}


def declared():
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
for name in sorted(set(declared()) ^ with_reasons()):
    print(f"{name}: in a Cargo.toml or in the table of CONTRIBUTING.md, but not in both")
    failed = True
for features, most in BOUNDS.items():
    count = len(crates(features))
    print(f"{count} external crates {features or 'with the default features'}, {most} at most")
    failed |= count > most
sys.exit(failed)
