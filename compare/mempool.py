#!/usr/bin/env python3
"""The study "DPDK Mempool Size" with a real mempool, DPDK's null device and its ring device, in interleaved rounds: a
Markdown table with medians and quartiles of the share of packets dropped and of the time a packet, by buffers.

Usage: compare/mempool.py [--rate 8M] [--packets 8M] [--train N] [--rounds 9] [--cores 0,1] [BUFFERS…]

Needs gcc and libdpdk-dev. compare/mempool/mempool.c describes a trial; no hugepages and no card are used.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

HERE = pathlib.Path(__file__).parent
SUFFIXES = {"k": 10**3, "M": 10**6}


def number(text):
    return int(text[:-1]) * SUFFIXES[text[-1]] if text[-1] in SUFFIXES else int(text)


def quartiles(values, digits):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("buffers", nargs="*", type=number, default=[256, 1024, 4096, 16384, 65536, 131072])
    parser.add_argument("--rate", type=number, default=8_000_000)
    parser.add_argument("--packets", type=number, default=8_000_000)
    parser.add_argument("--train", type=number, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cores", default="0,1")
    options = parser.parse_args()
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "libdpdk"], check=True, capture_output=True, text=True).stdout.split()
    eal = ["-l", options.cores, "--no-huge", "-m", "1024", "--no-pci", "--no-telemetry", "--log-level", "error"]
    trials = {buffers: [] for buffers in options.buffers}
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/mempool"
        devices = ["-lrte_bus_vdev", "-lrte_net_ring", "-lrte_net_null"]
        subprocess.run(["gcc", "-O2", "-march=native", "-o", program, HERE / "mempool/mempool.c", *flags, *devices], check=True)
        for turn in range(options.rounds):
            for buffers in random.Random(turn).sample(options.buffers, len(options.buffers)):
                words = [buffers, options.rate, options.packets, options.train]
                ended = subprocess.run([program, *map(str, words), *eal], check=True, stdout=subprocess.PIPE, text=True)
                trials[buffers].append(json.loads(ended.stdout))
    print(f"{options.rounds} rounds, {options.rate:,} packets a second, trains of {options.train:,}\n")
    print("| buffers | dropped, % | ns a packet | longer than planned, % |\n|---|---|---|---|")
    for buffers, found in trials.items():
        dropped = quartiles([100 * trial["packet_drop_rate"] for trial in found], 2)
        time = quartiles([trial["processing_ns_mean"] for trial in found], 1)
        behind = statistics.median(100 * trial["behind"] for trial in found)
        print(f"| {buffers:,} | {dropped} | {time} | {behind:.1f} |")


if __name__ == "__main__":
    main()
