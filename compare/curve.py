#!/usr/bin/env python3
"""Measures speed by number of active flows. The method is that of compare/measure.py: whole processes, interleaved, medians.

All flows of a trace are alive from its beginning to its end, and each packet belongs to a random flow (`ringtap generate
--profile steady`). The first packet of each flow is in the first part of the trace, and every flow has at least four
packets, so a trace with many flows is longer. Every candidate must find exactly the generated number of flows.

Run by compare/curve.sh.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile

import measure

CANDIDATES = ["yardstick", "ringtap flows, sequential", "ringtap all, sequential"]
PACKETS_PER_FLOW = 4


def count(text):
    """Parses 4096, 100k or 10M."""
    scale = {"k": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(text.rstrip("kM")) * scale


def generate(ringtap, path, flows, packets):
    profile = ["--profile", "steady", "--flows", str(flows), "--packets", str(packets)]
    subprocess.run([ringtap, "generate", *profile, "-w", path], check=True)


def row(flows, packets, candidate):
    walls = [trial.wall for trial in candidate.trials]
    wall = statistics.median(walls)
    cpu = statistics.median(trial.cpu for trial in candidate.trials)
    peak = statistics.median(trial.peak for trial in candidate.trials)
    return (
        f"| {flows:,} | {candidate.name} | {packets / wall / 1e6:.2f} | {(max(walls) - min(walls)) / wall:.0%} "
        f"| {packets / cpu / 1e6:.2f} | {wall / packets * 1e9:.0f} | {peak / 1e6:.0f} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ringtap", required=True)
    parser.add_argument("--meter", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--flows", default="1k,10k,100k,1M,10M", help="numbers of active flows, separated by commas")
    parser.add_argument("--packets", type=count, default=count("20M"), help="minimum number of packets in a trace")
    parser.add_argument("--csv", help="write every trial to this file, one row each")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")

    everyone = [c for c in measure.candidates(arguments.ringtap, arguments.meter) if c.name in CANDIDATES]
    sink = measure.collector()
    order = random.Random(measure.SEED)
    line = f"{measure.machine()}; medians of {arguments.rounds} interleaved rounds, order by seed {measure.SEED}"
    before = measure.stolen()
    rows, absent = [], []
    print(f"{line}\n")
    print("| active flows | | M packets / wall s | spread | M packets / CPU s | ns per packet | peak MB |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for flows in map(count, arguments.flows.split(",")):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, f"steady-{flows}.pcap")
            generate(arguments.ringtap, path, flows, max(arguments.packets, flows * PACKETS_PER_FLOW))
            packets, measured, left_out = measure.measure(path, everyone, arguments.rounds, order, sink.getsockname()[1], flows)
        for candidate in measured:
            print(row(flows, packets, candidate), flush=True)
        rows.extend(measure.csv_rows(path, packets, measured))
        absent.extend((flows, candidate.name, reason) for candidate, reason in left_out)
    for flows, name, reason in absent:
        print(f"\nNot measured at {flows:,} flows: {name}: {reason}")
    taken, total = (now - then for now, then in zip(measure.stolen(), before))
    print(f"\nSteal time: {taken / max(total, 1):.1%} of the time of the cores; load now {os.getloadavg()[0]:.1f}.")
    if arguments.csv:
        measure.write_csv(arguments.csv, line, rows)
    sys.exit(1 if absent else 0)


if __name__ == "__main__":
    main()
