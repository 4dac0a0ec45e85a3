#!/usr/bin/env python3
"""Measures whole processes that meter the same capture files, interleaved, and prints one table per file.

Measured are wall time from spawn to exit, user + system time and peak resident memory by wait4(2), so start, reading,
table, report and export all count. Files are read once beforehand, so that they are in the page cache. Each round runs
every candidate once, in a new random order (seeded). The first run of a candidate is a check: the number of packets that
it reports must equal that of the yardstick (the minimal meter of compare/meter); its number of flows is printed. A
candidate that is not installed, fails, or reports another number of packets is left out, with the reason; if it is one
of ours, the exit status is 1.

The table has the medians of the rounds; the spread is (largest - smallest) / median of the wall time. Peak memory is at
least that of this program (about 15 MB), which the kernel counts until exec, and includes the pages of a mapped file
(the yardstick's).

Run by compare/run.sh. On a shared machine, compare times within one run only.
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


SEED = 1  # of the random order within a round

# Debian installs administrative programs here.
os.environ["PATH"] += ":/usr/sbin:/sbin"


@dataclass
class Trial:
    wall: float
    cpu: float
    peak: int


@dataclass
class Candidate:
    """A command line ({file}, {port}, {dir} are replaced), and a function that returns (packets, flows) from its output."""

    name: str
    command: list
    read: object
    ours: bool = False
    packets: int = 0
    flows: int = 0
    trials: list = field(default_factory=list)


class Failed(Exception):
    """The reason why a candidate cannot be measured."""


def read_ringtap(out, _err, _directory):
    report = json.loads(out)
    flows = report.get("flows", {}).get("records", "–")
    for collector in report.get("export", []):
        if collector["sent"]["records"] != flows:
            raise Failed(f"{collector['sent']['records']} of {flows} records were exported")
    if report.get("flows", {}).get("end_reasons", {}).get("lack_of_resources"):
        raise Failed("flows were evicted")
    return report["packets"]["received"], flows


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


def read_argus(_out, _err, directory):
    if shutil.which("racount") is None:
        raise Failed("racount (package argus-client) is not installed")
    records = os.path.join(directory, "argus")
    summary = subprocess.run(["racount", "-r", records], capture_output=True, text=True, check=True).stdout
    flows, packets = re.search(r"sum\s+(\d+)\s+(\d+)", summary).groups()
    # One record is argus's management record.
    return int(packets), int(flows) - 1


def plans(ringtap, *flags):
    """Whether this ringtap supports an arrangement."""
    command = [ringtap, "monitor", "-r", os.devnull, "--dry-run", *flags]
    return subprocess.run(command, capture_output=True).returncode == 0


def candidates(ringtap, meter):
    def monitor(name, *flags):
        # Timeouts longer than the traces, as for the rivals, so that a flow is one record unless
        # TCP ends it. The table has room for all flows.
        long = ["--idle-timeout", "1h", "--active-timeout", "1h", "--max-flows", "16M"]
        command = [ringtap, "monitor", "-r", "{file}", "--report", "json", *long, *flags]
        return Candidate(name, command, read_ringtap, ours=True)

    queues = ["--skeleton", "multi-queue", "--queues", "2"]
    queued = [
        monitor("ringtap flows, multi-queue 2", *queues, "--analyses", "flows"),
        monitor("ringtap all, multi-queue 2", *queues),
    ]
    if not plans(ringtap, *queues):
        print("NOT MEASURED: ringtap, multi-queue 2: this ringtap does not support it", file=sys.stderr)
        queued = []
    export = ["--analyses", "flows", "--export", "ipfix-file:{dir}/records.ipfix"]
    everyone = [
        Candidate("yardstick", [meter, "{file}"], read_meter, ours=True),
        Candidate("yardstick, batched", [meter, "{file}", "--batched", "yes"], read_meter, ours=True),
        Candidate("yardstick, records to a file", [meter, "{file}", "--records", "{dir}/records"], read_meter, ours=True),
        monitor("ringtap flows, sequential", "--sequential", "--analyses", "flows"),
        monitor("ringtap flows to an IPFIX file, sequential", "--sequential", *export),
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
        monitor("ringtap flows to an IPFIX file, automatic", *export),
        *queued,
        # The table is large enough that no flow is split; default timeouts (300 s or more); records
        # go to a bound UDP port.
        Candidate(
            "softflowd",
            ["softflowd", "-r", "{file}", "-n", "127.0.0.1:{port}", "-v", "9", "-d", "-m", "4000000", "-c", "none"],
            read_softflowd,
        ),
        # Its cache grows automatically; timeouts are longer than the traces; records go to one
        # file.
        Candidate(
            "nfpcapd",
            ["nfpcapd", "-r", "{file}", "-w", "{dir}", "-t", "86400", "-e", "3600,3600"],
            read_nfpcapd,
        ),
        # No status reports within a trace; built-in timeouts; records go to a file.
        Candidate("argus", ["argus", "-X", "-S", "86400", "-r", "{file}", "-w", "{dir}/argus"], read_argus),
    ]
    present, absent = [], []
    for candidate in everyone:
        (present if shutil.which(candidate.command[0]) else absent).append(candidate)
    for candidate in absent:
        print(f"NOT MEASURED: {candidate.name}: {candidate.command[0]} is not installed", file=sys.stderr)
    return present


def run(candidate, path, port, check=False):
    """Runs one process; with `check` also reads its numbers of packets and flows."""
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
            raise Failed(f"{' '.join(command)}: exit status {process.returncode}: {(out.read() + err.read()).strip()}")
        if check:
            try:
                candidate.packets, candidate.flows = candidate.read(out.read(), err.read(), directory)
            except (TypeError, ValueError, KeyError, AttributeError, subprocess.CalledProcessError) as error:
                raise Failed(f"unexpected output: {error!r}") from error
    return Trial(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def stolen():
    """(steal, total) ticks of all cores since boot."""
    ticks = [int(n) for n in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return ticks[7], sum(ticks)


def machine():
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True).stdout.strip()
    memory = re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, "
        f"{int(memory[1]) / 1e6 if memory else 0:.0f} GB, Linux {platform.release()}, "
        f"load {os.getloadavg()[0]:.1f}, commit {commit or 'unknown'}, {time.strftime('%Y-%m-%d')}"
    )


def measure(path, everyone, rounds, order, port, flows=None):
    """Measures `everyone` on a file; returns its packets, the measured candidates, and (candidate, reason) of the others.

    All candidates must report as many packets as the first one, and `flows` flows if that is given.
    """
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass
    measured, left_out = list(everyone), []

    def attempt(candidate, action):
        try:
            action()
        except Failed as reason:
            print(f"NOT MEASURED: {candidate.name}: {reason}", file=sys.stderr)
            measured.remove(candidate)
            left_out.append((candidate, str(reason)))

    def check(candidate):
        run(candidate, path, port, check=True)
        print(f"  {candidate.name}: {candidate.packets} packets, {candidate.flows} flows", file=sys.stderr)
        packets = measured[0].packets
        if candidate.packets != packets:
            raise Failed(f"it reports {candidate.packets} packets, not {packets}")
        if flows is not None and candidate.flows != flows:
            raise Failed(f"it reports {candidate.flows} flows, not {flows}")

    def trial(candidate):
        candidate.trials.append(run(candidate, path, port))

    for candidate in everyone:
        candidate.trials.clear()
        attempt(candidate, lambda: check(candidate))
    for number in range(rounds):
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)
        for candidate in order.sample(measured, len(measured)):
            attempt(candidate, lambda: trial(candidate))
    if not measured:
        raise SystemExit(f"{path}: no candidate could be measured")
    return measured[0].packets, measured, left_out


def csv_rows(path, packets, measured):
    for c in measured:
        for number, trial in enumerate(c.trials):
            values = (f"{trial.wall:.6f}", f"{trial.cpu:.6f}", trial.peak)
            yield (os.path.basename(path), c.name, number, packets, c.flows, *values)


def write_csv(path, line, rows):
    """Writes every trial, one row each, after a comment about the machine."""
    with open(path, "w", newline="") as file:
        file.write(f"# {line}\n")
        csv.writer(file).writerow(("file", "candidate", "trial", "packets", "flows", "wall_s", "cpu_s", "peak_bytes"))
        csv.writer(file).writerows(rows)


def collector():
    """A bound socket that is never read; the kernel drops the datagrams."""
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("127.0.0.1", 0))
    return sink


def table(path, packets, everyone, left_out):
    print(f"\n{os.path.basename(path)}: {packets} packets, {os.path.getsize(path)} bytes\n")
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
    if left_out:
        print("\nNot measured: " + "; ".join(f"{candidate.name}: {reason}" for candidate, reason in left_out))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--ringtap", required=True)
    parser.add_argument("--meter", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="candidates whose names contain one of these, separated by commas")
    parser.add_argument("--csv", help="write every trial to this file, one row each")
    arguments = parser.parse_args()

    everyone = candidates(arguments.ringtap, arguments.meter)
    if arguments.only:
        words = arguments.only.split(",")
        everyone = [c for c in everyone if any(word in c.name for word in words)]
    if not everyone or arguments.rounds < 1:
        parser.error("nothing to measure: check --only and --rounds")

    sink = collector()
    order = random.Random(SEED)
    rows = []
    line = f"{machine()}; medians of {arguments.rounds} interleaved rounds, order by seed {SEED}"
    before = stolen()
    ours_failed = False
    print(line)
    for path in arguments.files:
        print(path, file=sys.stderr)
        packets, measured, left_out = measure(path, everyone, arguments.rounds, order, sink.getsockname()[1])
        table(path, packets, measured, left_out)
        rows.extend(csv_rows(path, packets, measured))
        ours_failed |= any(candidate.ours for candidate, _ in left_out)
    taken, total = (now - then for now, then in zip(stolen(), before))
    print(f"\nSteal time: {taken / max(total, 1):.1%} of the time of the cores; load now {os.getloadavg()[0]:.1f}.")
    if arguments.csv:
        write_csv(arguments.csv, line, rows)
    sys.exit(1 if ours_failed else 0)


if __name__ == "__main__":
    main()
