#!/usr/bin/env python3
"""Prints the packages of the workspace by layer, and the packages that each uses.

Exits with 1 if a package is not in the table of layers in docs/ARCHITECTURE.md, if it uses a
package of a higher layer, or if there is a cycle.

Usage: scripts/graph.py
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))


def layers():
    """Maps the folder of each package in the table to its layer."""
    found = {}
    with open(os.path.join(ROOT, "docs/ARCHITECTURE.md")) as page:
        for line in page:
            row = re.match(r"\| (\d) \| ([^|]*) \|", line)
            if row:
                found.update((folder, int(row[1])) for folder in re.findall(r"`([^`]*)`", row[2]))
    return found


def main():
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    folders = {one["name"]: os.path.relpath(os.path.dirname(one["manifest_path"]), ROOT) for one in metadata["packages"]}
    uses = {one["name"]: sorted(dep["name"] for dep in one["dependencies"] if dep["kind"] is None and dep["name"] in folders)
            for one in metadata["packages"]}
    layer, faults = layers(), []
    for name, folder in folders.items():
        # The test kit is not in a layer.
        if folder != "testkit" and folder not in layer:
            faults.append(f"{folder} is not in the table of layers")
    faults += [f"{folder} is in the table of layers, but is not a package" for folder in layer if folder not in folders.values()]
    for name, others in uses.items():
        own = layer.get(folders[name], 9)
        faults += [f"{name} uses {other} of a higher layer" for other in others if layer.get(folders[other], 0) > own]

    def visit(name, path):
        if name in path:
            faults.append("cycle: " + " → ".join(path[path.index(name):] + [name]))
            return
        for other in uses[name]:
            visit(other, path + [name])

    for name in uses:
        visit(name, [])
    for name in sorted(uses, key=lambda name: (-layer.get(folders[name], 9), folders[name])):
        print(f"{layer.get(folders[name], '-')}  {folders[name]:18} {', '.join(folders[other] for other in uses[name]) or '–'}")
    print(f"{len(folders)} packages")
    if faults:
        sys.exit("\n".join(sorted(set(faults))))


main()
