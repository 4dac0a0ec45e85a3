#!/usr/bin/env python3
"""Compares two binaries that write flow records to files, interleaved: wall time, CPU time, and the median ratio of each.

Usage: compare/outputs.py OLD NEW [--rounds N] [--packets N]

Both read the same generated capture (profile w2, one flow per three packets) with two queues and only the analysis
`flows`, and write to a file in TMPDIR.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time

OUTPUTS = {
    "none": [],
    "JSON": ["--write", "json:out"],
    "CSV": ["--write", "csv:out"],
    "EVE": ["--write", "eve:out"],
    "Parquet": ["--write", "parquet:out"],
    "IPFIX file": ["--export", "ipfix-file:out"],
}


def run(binary, flags, folder):
    command = [binary, "monitor", "-q", "--analyses", "flows", "--queues", "2", "--seed", "1", "-r", "w2.pcap", *flags]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    out = os.path.join(folder, "out")
    if os.path.exists(out):
        os.remove(out)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--packets", default="3M")
    args = parser.parse_args()
    binaries = [os.path.realpath(args.old), os.path.realpath(args.new)]
    times = {(output, which): [] for output in OUTPUTS for which in (0, 1)}
    with tempfile.TemporaryDirectory() as folder:
        generate = [binaries[1], "generate", "--profile", "w2", "--packets", args.packets, "--seed", "1", "-w", "w2.pcap"]
        subprocess.run(generate, cwd=folder, check=True)
        for number in range(args.rounds):
            for output, flags in OUTPUTS.items():
                for which in (0, 1) if number % 2 == 0 else (1, 0):
                    times[output, which].append(run(binaries[which], flags, folder))
    print("| records to | old: wall s (CPU s) | new: wall s (CPU s) | old / new: wall, CPU |\n|---|---|---|---|")
    for output in OUTPUTS:
        cells = []
        for which in (0, 1):
            walls, cpus = zip(*times[output, which])
            spread = f"{min(walls):.2f}–{max(walls):.2f}"
            cells.append(f"{statistics.median(walls):.2f}, {spread} ({statistics.median(cpus):.2f})")
        pairs = list(zip(times[output, 0], times[output, 1]))
        ratios = [statistics.median(old[part] / new[part] for old, new in pairs) for part in (0, 1)]
        print(f"| {output} | {cells[0]} | {cells[1]} | {ratios[0]:.2f}, {ratios[1]:.2f} |")


main()
