#!/usr/bin/env python3
"""CPU time of `ringtap.monitor` without flows, with flows as an Arrow table, and of `ringtap.stream` into Polars.

Usage: python/bench.py FILE... [--rounds N] [--columns NAME,...] [--flag NAME=VALUE]...

Each run is a process of its own; the kinds of runs alternate. Prints medians of the CPU time of the call (user and system,
all threads), the number of rows, and the most memory of the process. --columns limits the columns of the stream. Needs Polars.
"""

import argparse
import json
import statistics
import subprocess
import sys

BEGIN = """
import json, resource, sys
import polars, ringtap
paths, columns, flags = json.loads(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF)
"""
END = """
after = resource.getrusage(resource.RUSAGE_SELF)
spent = sum(getattr(after, name) - getattr(before, name) for name in ("ru_utime", "ru_stime"))
print(json.dumps([spent, run.report["packets"]["received"], run.report["flows"]["records"], after.ru_maxrss]))
"""
STREAM = """
stream = ringtap.stream(paths, columns=columns, **flags)
assert sum(polars.DataFrame(batch).height for batch in stream) == stream.run.report["flows"]["records"]
run = stream.run
"""
KINDS = {
    "without flows": "run = ringtap.monitor(paths, flows=False, state=False, **flags)",
    "with flows": "run = ringtap.monitor(paths, flows=True, state=False, **flags)",
    "stream into Polars": STREAM,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--columns", type=lambda names: names.split(","))
    parser.add_argument("--flag", action="append", default=[])
    options = parser.parse_args()
    flags = dict(flag.split("=", 1) for flag in options.flag)
    flags = {name: True if value == "True" else value for name, value in flags.items()}
    seconds, memory = ({kind: [] for kind in KINDS} for _ in range(2))
    for _ in range(options.rounds):
        for kind, code in KINDS.items():
            words = [sys.executable, "-c", BEGIN + code + END, json.dumps([options.files, options.columns, flags])]
            spent, packets, rows, kilobytes = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
            seconds[kind].append(spent)
            memory[kind].append(kilobytes)
    print(f"{packets:,} packets, {rows:,} flows, {options.rounds} rounds")
    medians = {kind: statistics.median(own) for kind, own in seconds.items()}
    without = medians["without flows"]
    for kind, own in medians.items():
        print(f"{kind}: {own:.2f} s of CPU, {own / without:.2f} times, {statistics.median(memory[kind]) / 1024:.0f} MiB")
        if kind != "without flows" and rows:
            print(f"  {(own - without) / rows * 1e9:.0f} ns more per flow")


main()
