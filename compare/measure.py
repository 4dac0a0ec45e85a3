#!/usr/bin/env python3
"""Measures whole processes that meter the same capture files, interleaved, and prints one table a file.

For every candidate alike: wall time from spawn to exit, user + system time and peak resident memory by wait4(2), so
start, reading, table, report and export all count. Files are read once beforehand, so that they come from the page
cache. Each round runs every candidate once, in an order shuffled anew (seeded). The first run of a candidate is a
check: the packets it says it handled must equal the packets of the yardstick; the flows are shown beside it.

The table gives the median of the rounds; the spread is (largest - smallest) / median of the wall time. Peak memory
cannot show less than this program's own (about 15 MB), which the kernel counts until exec, and counts the pages of
a file that is mapped (the yardstick's).

Run by compare/run.sh. All times are of a shared machine: compare within one run only.
"""

import argparse
import csv
import json
import os
import platform
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Trial:
    wall: float
    cpu: float
    peak: int


@dataclass
class Candidate:
    """A command line ({file}, {port}, {dir} are filled in) and how to read packets and flows from what it prints."""

    name: str
    command: list
    read: object
    packets: int = 0
    flows: int = 0
    trials: list = field(default_factory=list)


def read_ringtap(out, _err, _directory):
    report = json.loads(out)
    return report["packets"]["received"], report.get("flows", {}).get("records", "–")


def read_meter(out, _err, _directory):
    line = json.loads(out)
    return line["packets"], line["flows"]


def read_softflowd(out, _err, _directory):
    packets = int(re.search(r"Packets processed: (\d+)", out)[1])
    return packets, int(re.search(r"Flows expired: (\d+)", out)[1])


def read_nfpcapd(out, err, directory):
    packets = int(re.search(r"Total: Processed: (\d+)", out + err)[1])
    if shutil.which("nfdump") is None:
        return packets, None
    summary = subprocess.run(["nfdump", "-I", "-R", directory], capture_output=True, text=True, check=True).stdout
    return packets, sum(int(n) for n in re.findall(r"^Flows: (\d+)", summary, re.M))


def candidates(ringtap, meter):
    def monitor(name, *flags):
        # Timeouts longer than the traces, as for the rivals: a flow is one record unless TCP ends it.
        long = ["--idle-timeout", "1h", "--active-timeout", "1h"]
        command = [ringtap, "monitor", "-r", "{file}", "--report", "json", *long, *flags]
        return Candidate(name, command, read_ringtap)

    everyone = [
        Candidate("yardstick", [meter, "{file}"], read_meter),
        monitor("ringtap flows, sequential", "--sequential", "--analyses", "flows"),
        monitor("ringtap all, sequential", "--sequential"),
        monitor("ringtap flows, farm 1, lamport", "--skeleton", "farm", "-w", "1", "--ring", "lamport", "--analyses", "flows"),
        monitor("ringtap flows, farm 1, mcring", "--skeleton", "farm", "-w", "1", "--ring", "mcring", "--analyses", "flows"),
        monitor("ringtap all, farm 1, lamport", "--skeleton", "farm", "-w", "1", "--ring", "lamport"),
        monitor("ringtap all, farm 1, mcring", "--skeleton", "farm", "-w", "1", "--ring", "mcring"),
        monitor("ringtap scans, sequential", "--sequential", "--analyses", "scans"),
        monitor("ringtap scans, farm 1, lamport", "--skeleton", "farm", "-w", "1", "--ring", "lamport", "--analyses", "scans"),
        monitor("ringtap scans, farm 1, mcring", "--skeleton", "farm", "-w", "1", "--ring", "mcring", "--analyses", "scans"),
        monitor("ringtap flows, automatic", "--analyses", "flows"),
        monitor("ringtap all, automatic"),
        # A table large enough that no flow is split, timeouts as they come (300 s or more); the records go to a bound UDP port.
        Candidate(
            "softflowd",
            ["softflowd", "-r", "{file}", "-n", "127.0.0.1:{port}", "-v", "9", "-d", "-m", "4000000", "-c", "none"],
            read_softflowd,
        ),
        # Its cache grows by itself; one output file, timeouts longer than the traces; the records go to that file.
        Candidate(
            "nfpcapd",
            ["nfpcapd", "-r", "{file}", "-w", "{dir}", "-t", "86400", "-e", "3600,3600"],
            read_nfpcapd,
        ),
    ]
    present, absent = [], []
    for candidate in everyone:
        (present if shutil.which(candidate.command[0]) else absent).append(candidate)
    for candidate in absent:
        print(f"NOT MEASURED: {candidate.name}: {candidate.command[0]} is not here", file=sys.stderr)
    return present


def run(candidate, path, port, check=False):
    """One process, start to exit; with `check` its packets and flows are read too."""
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        command = [word.format(file=path, port=port, dir=directory) for word in candidate.command]
        start = time.monotonic()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}\n{out.read()}{err.read()}\nexit status {process.returncode}")
        if check:
            candidate.packets, candidate.flows = candidate.read(out.read(), err.read(), directory)
    return Trial(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def stolen():
    """(stolen, total) ticks of all cores since boot: what the host took from this machine."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, Linux {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f}, commit {commit or 'unknown'}, {time.strftime('%Y-%m-%d')}"
    )


def measure(path, everyone, rounds, order, port):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass
    for candidate in everyone:
        candidate.trials.clear()
        run(candidate, path, port, check=True)
        print(f"  {candidate.name}: {candidate.packets} packets, {candidate.flows} flows", file=sys.stderr)
    packets = next(c.packets for c in everyone)
    wrong = [c.name for c in everyone if c.packets != packets]
    if wrong:
        raise SystemExit(f"{path}: these did not handle {packets} packets: {', '.join(wrong)}")
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
        for candidate in order.sample(everyone, len(everyone)):
            candidate.trials.append(run(candidate, path, port))
    return packets


def table(path, packets, everyone):
    print(f"\n{os.path.basename(path)}: {packets} packets, {os.path.getsize(path)} bytes")
    print("| | wall s | spread | CPU s | M packets / wall s | M packets / CPU s | peak MB | flow records |")
    print("|---|---|---|---|---|---|---|---|")
    for candidate in everyone:
        walls = [trial.wall for trial in candidate.trials]
        wall = statistics.median(walls)
        cpu = statistics.median(trial.cpu for trial in candidate.trials)
        peak = statistics.median(trial.peak for trial in candidate.trials)
        print(
            f"| {candidate.name} | {wall:.3f} | {(max(walls) - min(walls)) / wall:.0%} | {cpu:.3f} "
            f"| {packets / wall / 1e6:.2f} | {packets / cpu / 1e6:.2f} | {peak / 1e6:.0f} | {candidate.flows} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--ringtap", required=True)
    parser.add_argument("--meter", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="candidates whose names contain one of these, separated by commas")
    parser.add_argument("--csv", help="also every trial, one row each")
    arguments = parser.parse_args()

    everyone = candidates(arguments.ringtap, arguments.meter)
    if arguments.only:
        words = arguments.only.split(",")
        everyone = [c for c in everyone if any(word in c.name for word in words)]
    if not everyone or arguments.rounds < 1:
        parser.error("nothing to measure")

    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))  # a collector that listens and forgets: the kernel drops what it does not read
    order = random.Random(1)
    rows = [("file", "candidate", "trial", "packets", "flows", "wall_s", "cpu_s", "peak_bytes")]
    line = machine()
    before = stolen()
    print(f"{line}; medians of {arguments.rounds} interleaved rounds")
    for path in arguments.files:
        print(path, file=sys.stderr)
        packets = measure(path, everyone, arguments.rounds, order, sink.getsockname()[1])
        table(path, packets, everyone)
        for c in everyone:
            for number, trial in enumerate(c.trials):
                values = (f"{trial.wall:.6f}", f"{trial.cpu:.6f}", trial.peak)
                rows.append((os.path.basename(path), c.name, number, packets, c.flows, *values))
    taken, total = (now - then for now, then in zip(stolen(), before))
    print(f"\nThe host took {taken / max(total, 1):.1%} of the time of the cores meanwhile; load now {os.getloadavg()[0]:.1f}.")
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
