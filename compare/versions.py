#!/usr/bin/env python3
"""Compares two builds of ringtap on the same files, in interleaved rounds. Prints a Markdown table with the speed of the new
build relative to the old one, by CPU time and by wall time: medians of the rounds with 95 % bootstrap intervals (2,000
resamples, seed 1).

Usage: compare/versions.py OLD NEW [--rounds N] FILE.pcap…
"""

import argparse
import os
import platform
import random
import statistics
import tempfile
import time

ROWS = {
    "flows, one thread": ["--sequential", "--analyses", "flows"],
    "flows, IPFIX file, one thread": ["--sequential", "--analyses", "flows", "--export", "ipfix-file:{out}"],
    "flows, JSON, one thread": ["--sequential", "--analyses", "flows", "--write", "json:{out}"],
    "all, one thread": ["--sequential"],
    "all, two queues": ["--skeleton", "multi-queue", "--queues", "2"],
}


def seconds(command):
    """Runs a command; returns its CPU and wall seconds."""
    begin = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_WRONLY, 0) for fd in (1, 2)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)}: status {status}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - begin


def rounds(commands, count):
    """CPU seconds of each command by name, as (round, seconds), in interleaved rounds of a random order by seed. Commands
    of nfstream, which take long, run in one round of three."""
    times = {name: [] for name in commands}
    for turn in range(count):
        order = sorted(commands)
        random.Random(turn).shuffle(order)
        for name in order:
            if not name.startswith("nfstream") or turn % 3 == 0:
                times[name].append((turn, seconds(commands[name])[0]))
    return times


def interval(ratios):
    generator = random.Random(1)
    medians = sorted(statistics.median(generator.choices(ratios, k=len(ratios))) for _ in range(2000))
    return medians[49], medians[1949]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":")[1].strip() for line in cpus if line.startswith("model name")), platform.machine())
    print(f"{model}, {os.cpu_count()} cores, {options.rounds} rounds\n\n| row | file | CPU | 95 % | wall | 95 % |\n|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        for name, flags in ROWS.items():
            for file in options.files:
                flags_here = [flag.format(out=out) for flag in flags]
                ratios = []
                for turn in range(options.rounds):
                    pair = [options.old, options.new]
                    times = {}
                    for program in pair if turn % 2 else pair[::-1]:
                        if os.path.exists(out):
                            os.remove(out)
                        times[program] = seconds([program, "monitor", "-r", file, "--quiet", *flags_here])
                    ratios.append([old / new for old, new in zip(times[options.old], times[options.new])])
                cells = [name, os.path.basename(file).removesuffix(".pcap")]
                for own in zip(*ratios):
                    low, high = interval(own)
                    cells += [f"{statistics.median(own):.3f}", f"{low:.3f} to {high:.3f}"]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
