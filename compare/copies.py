#!/usr/bin/env python3
"""Compares the automatic plan on two cores with two independent copies of the one-thread program.

The copies run at the same time, each on its own core, and share nothing, so their combined speed is the most that two
cores of this machine can do. All runs are whole processes, interleaved. *share* is the median over the rounds of
(packets per second of the automatic plan) / (packets per second of both copies).

Usage: compare/copies.py FILE.pcap… [--rounds N] [--ringtap PATH]
"""

import argparse
import os
import statistics
import subprocess
import time

import measure

LONG = ["--report", "json", "--idle-timeout", "1h", "--active-timeout", "1h", "--max-flows", "16M"]


def run(commands):
    """Runs processes in parallel; returns wall seconds from the first start to the last exit, and CPU seconds of all."""
    start = time.monotonic()
    nowhere = subprocess.DEVNULL
    processes = [subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere) for command in commands]
    cpu = 0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(process.args)}: exit status {process.returncode}")
        cpu += usage.ru_utime + usage.ru_stime
    return time.monotonic() - start, cpu


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--ringtap", default="target/release/ringtap")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))[:2]
    if len(cores) < 2 or arguments.rounds < 1:
        parser.error("at least two cores and --rounds 1 are needed")
    print(f"{measure.machine()}; medians of {arguments.rounds} interleaved rounds\n")
    print("| file | analyses | automatic: wall s (CPU s) | two copies: wall s (CPU s of each) | share | CPU, automatic / copy |")
    print("|---|---|---|---|---|---|", flush=True)
    for path in arguments.files:
        for analyses in ("flows", "all"):
            automatic = [arguments.ringtap, "monitor", "-r", path, *LONG, "--analyses", analyses]
            copies = [["taskset", "-c", str(core), *automatic, "--sequential"] for core in cores]
            run(copies)
            rounds = [(run([automatic]), run(copies)) for _ in range(arguments.rounds)]
            median = lambda of: statistics.median(of(own, both) for own, both in rounds)
            print(
                f"| {os.path.basename(path)} | {analyses} "
                f"| {median(lambda own, _: own[0]):.3f} ({median(lambda own, _: own[1]):.3f}) "
                f"| {median(lambda _, both: both[0]):.3f} ({median(lambda _, both: both[1] / 2):.3f}) "
                f"| {median(lambda own, both: both[0] / 2 / own[0]):.2f} "
                f"| {median(lambda own, both: own[1] / (both[1] / 2)):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
