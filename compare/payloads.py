#!/usr/bin/env python3
"""CPU time of payloads and of the statistics of packets, in interleaved rounds: a Markdown table with medians of each
program's user and system time, and its ratio to flows alone, with a 95 % bootstrap interval (2,000 resamples, seed 1).

Usage: compare/payloads.py RINGTAP [--rounds N] [--old RINGTAP] [--nfstream PYTHON] FILE.pcap…

--old adds rows of another build for each row of this one that it has. --nfstream adds nfstream (PyPI) in this Python: its
statistics with the first 30 packets, without and with nDPI, one round in three.
"""

import argparse
import os
import statistics

from versions import interval, rounds

FLOWS = "flows, no extractors"
ROWS = {
    FLOWS: ["--analyses", "flows", "--extract", "none"],
    "flows": ["--analyses", "flows"],
    "flows, statistics, no extractors": ["--analyses", "flows,statistics", "--extract", "none"],
    "flows, statistics": ["--analyses", "flows,statistics"],
    "all": [],
}
NFSTREAM = """
import sys
from nfstream import NFStreamer
if __name__ == "__main__":
    # Time and statistics as ringtap's rows: no timeouts but of an hour, one process of its own.
    for flow in NFStreamer(source=sys.argv[1], statistical_analysis=True, splt_analysis=30, accounting_mode=1,
                           n_dissections=int(sys.argv[2]), idle_timeout=3600, active_timeout=3600, n_meters=1):
        pass
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringtap")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--old")
    parser.add_argument("--nfstream")
    options = parser.parse_args()
    timeouts = ["--idle-timeout", "1h", "--active-timeout", "1h"]
    candidates = {}
    for name, flags in ROWS.items():
        candidates[name] = lambda file, flags=flags: [options.ringtap, "monitor", "-q", "--sequential", *timeouts, *flags, "-r", file]
        if options.old and "statistics" not in name:
            candidates[f"{name}, old"] = (
                lambda file, flags=flags: [options.old, "monitor", "-q", "--sequential", *timeouts, *flags, "-r", file])
    if options.nfstream:
        for name, depth in {"nfstream": "0", "nfstream, nDPI": "20"}.items():
            candidates[name] = lambda file, depth=depth: [options.nfstream, "-c", NFSTREAM, file, depth]
    print(f"{options.rounds} rounds\n\n| file | candidate | CPU s | / {FLOWS} | 95 % |\n|---|---|---|---|---|")
    for file in options.files:
        times = rounds({name: command(file) for name, command in candidates.items()}, options.rounds)
        base = dict(times[FLOWS])
        for name in candidates:
            ratios = [own / base[turn] for turn, own in times[name]]
            low, high = interval(ratios)
            middle = statistics.median(own for _, own in times[name])
            print(f"| {os.path.basename(file)} | {name} | {middle:.3f} | {statistics.median(ratios):.2f} | {low:.2f} to {high:.2f} |", flush=True)


main()
