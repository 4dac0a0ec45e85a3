#!/usr/bin/env python3
"""CPU time of `ringtap.monitor` with flows as an Arrow table, and without.

Usage: python/bench.py FILE... [--rounds N] [--flag NAME=VALUE]...

Each run is a process of its own; runs with and without flows alternate. Prints medians of the CPU time of the call
(user and system, all threads), the number of rows, and the memory of the table.
"""

import argparse
import json
import statistics
import subprocess
import sys

RUN = """
import json, resource, sys
import ringtap
paths, flows, flags = json.loads(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF)
run = ringtap.monitor(paths, flows=flows, state=False, **flags)
after = resource.getrusage(resource.RUSAGE_SELF)
spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
print(json.dumps([spent, run.report["packets"]["received"], run.report["flows"]["records"], after.ru_maxrss]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    flags = dict(flag.split("=", 1) for flag in options.flag)
    flags = {name: True if value == "True" else value for name, value in flags.items()}
    seconds, memory = {True: [], False: []}, {}
    for _ in range(options.rounds):
        for flows in (False, True):
            words = [sys.executable, "-c", RUN, json.dumps([options.files, flows, flags])]
            spent, packets, rows, memory[flows] = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            seconds[flows].append(spent)
    without, with_flows = statistics.median(seconds[False]), statistics.median(seconds[True])
    print(f"{packets:,} packets, {rows:,} flows, {options.rounds} rounds")
    print(f"without flows {without:.2f} s of CPU, with flows {with_flows:.2f} s: {with_flows / without:.2f} times")
    print(f"{(with_flows - without) / rows * 1e9:.0f} ns a flow, {(memory[True] - memory[False]) * 1024 / rows:.0f} bytes a flow")


main()
