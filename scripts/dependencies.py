#!/usr/bin/env python3
"""Checks the external dependencies.

Fails if a program links more external crates than BOUNDS allows, with the default features, without them, or (of ringtap)
with all of them but Kafka, so that no dependency is added by accident. Also fails if the external crates in the
manifests of the workspace differ from those in the table of CONTRIBUTING.md, which gives a reason
for each.
"""

import glob
import re
import subprocess
import sys
import tomllib

# The package, its feature flags, and the highest number of crates. The client of Kafka alone
# needs 51: a runtime, logins by SCRAM, dates.
WITHOUT_KAFKA = "--no-default-features --features color,fence,pages,parquet,tls,tui,zstd"
WITHOUT = "--no-default-features"
BOUNDS = {
    ("ringtap", ""): 186,
    ("ringtap", WITHOUT_KAFKA): 136,
    ("ringtap", WITHOUT): 85,
    ("ringtap-ndn-program", ""): 87,
    ("ringtap-ndn-program", WITHOUT): 64,
}


def crates(package, features):
    command = ["cargo", "tree", "--locked", "-e", "normal", "-p", package, "--prefix", "none"]
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
for (package, features), most in BOUNDS.items():
    count = len(crates(package, features))
    print(f"{package}: {count} external crates {features or 'with the default features'}, {most} at most")
    failed |= count > most
sys.exit(failed)
