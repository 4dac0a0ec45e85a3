#!/usr/bin/env python3
"""scripts/third-party.py TARGET PACKAGES [FILE...]: prints the licences of all libraries in programs of a target, which are
packages of the workspace, separated by commas: name, version and licence of each crate, then each licence text once, with the
crates that have it, and the licences in FILEs. Needs no network.
"""

import json
import pathlib
import re
import subprocess
import sys

TEXTS = re.compile(r"^(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)

target, programs, files = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--filter-platform", target]
metadata = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
packages = {package["id"]: package for package in metadata["packages"]}
nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}

# Reached by ordinary dependencies: those of tests and of build scripts are not in the programs.
reached = [identity for identity, package in packages.items() if package["name"] in programs]
for identity in reached:
    for dependency in nodes[identity]["deps"]:
        ordinary = any(kind["kind"] is None for kind in dependency["dep_kinds"])
        if ordinary and dependency["pkg"] not in reached:
            reached.append(dependency["pkg"])

crates = sorted((packages[identity] for identity in reached), key=lambda one: (one["name"], one["version"]))
crates = [crate for crate in crates if crate["source"]]
texts = {}
print(f"Libraries in {', '.join(programs)}\n")
for crate in crates:
    name = f"{crate['name']} {crate['version']}"
    print(f"{name}: {crate['license'] or crate['license_file']}")
    folder = pathlib.Path(crate["manifest_path"]).parent
    for file in sorted(folder.iterdir()):
        if file.is_file() and TEXTS.match(file.name):
            texts.setdefault(file.read_text(errors="replace").strip(), []).append(name)
for text, names in sorted(texts.items(), key=lambda one: one[1]):
    print(f"\n{'=' * 80}\n{', '.join(names)}\n\n{text}")
for file in files:
    path = pathlib.Path(file)
    print(f"\n{'=' * 80}\n{path.stem} (a C library)\n\n{path.read_text().strip()}")
