#!/usr/bin/env python3
"""Compares live capture: a program reads one end of a veth pair, while frames are sent into the other end.

Two network namespaces are joined by the pair; the sender runs on core 0 and the listener on core 1. The kernel sends
copies of one 60-byte UDP frame in 4,096 flows (`ringtap generate --method live`), at each offered rate in turn; the
sender counts the frames that the interface accepted. With --squeeze the listener shares the sender's core and is
overloaded. Then the listener is stopped, and its counters of handled and lost frames are read. `unknown` is the rest:
frames that the listener does not report. Rounds are interleaved, in a new random order each (seeded); the table has
medians.

Needs root, python3, iproute2 and ethtool. tcpdump, softflowd and argus are left out, with a message, if they are missing.
Run by compare/live.sh.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from measure import SEED, Failed, machine

FAR, NEAR = f"ringtap-live-{os.getpid()}-a", f"ringtap-live-{os.getpid()}-b"
START_S = 1.5  # time for a listener to start
QUIET_S = 0.5  # wait after the last frame


@dataclass
class Listener:
    """A command line ({dir} is replaced), and a function that returns (handled, reported lost) from its output."""

    name: str
    command: list
    read: object
    # A command that prints the counters while the listener runs, for programs that print none at
    # their end.
    status: list = None
    xdp: bool = False
    trials: dict = field(default_factory=dict)


def read_ringtap(out, _err, _directory, _status):
    report = json.loads(out)
    if report["ledger"]["residual"]:
        raise Failed(f"the ledger has a residual of {report['ledger']['residual']}")
    return report["packets"]["handled"], sum(report["packets"]["dropped"].values())


def read_tcpdump(_out, err, _directory, _status):
    return int(re.search(r"(\d+) packets captured", err)[1]), int(re.search(r"(\d+) packets dropped by kernel", err)[1])


def read_softflowd(_out, _err, _directory, status):
    lost = re.search(r"[Dd]ropped by libpcap: (\d+)", status)
    return int(re.search(r"Packets processed: (\d+)", status)[1]), int(lost[1]) if lost else 0


def read_argus(_out, _err, directory, _status):
    records = os.path.join(directory, "argus")
    summary = subprocess.run(["racount", "-r", records], capture_output=True, text=True, check=True).stdout
    # Its management records contain no losses.
    return int(re.search(r"sum\s+\d+\s+(\d+)", summary)[1]), 0


def listeners(ringtap):
    def monitor(name, *flags, xdp=False):
        command = [ringtap, "monitor", "-i", "right", "--report", "json", "-q", "--sequential", *flags]
        return Listener(name, command, read_ringtap, xdp=xdp)

    everyone = [
        monitor("ringtap flows, AF_PACKET", "--analyses", "flows"),
        monitor("ringtap all, AF_PACKET"),
        monitor("ringtap flows, AF_XDP", "--analyses", "flows", "--capture", "af-xdp", xdp=True),
        monitor("ringtap all, AF_XDP", "--capture", "af-xdp", xdp=True),
        Listener("tcpdump to /dev/null", ["tcpdump", "-i", "right", "-n", "-Z", "root", "-w", "/dev/null"], read_tcpdump),
        Listener(
            "softflowd",
            ["softflowd", "-i", "right", "-n", "127.0.0.1:9", "-v", "9", "-d", "-m", "4000000", "-c", "{dir}/ctl"],
            read_softflowd,
            status=["softflowctl", "-c", "{dir}/ctl", "statistics"],
        ),
        Listener("argus", ["argus", "-X", "-S", "86400", "-i", "right", "-w", "{dir}/argus"], read_argus),
    ]
    for one in everyone:
        if not shutil.which(one.command[0]):
            print(f"NOT MEASURED: {one.name}: {one.command[0]} is not installed", file=sys.stderr)
    return [one for one in everyone if shutil.which(one.command[0])]


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def inside(namespace, words):
    return ["ip", "netns", "exec", namespace, *words]


def set_up():
    for namespace in (FAR, NEAR):
        ip(f"netns add {namespace}")
        # With IPv6 the kernel would send frames of its own.
        subprocess.run(inside(namespace, ["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"]), check=True)
    ip(f"link add left netns {FAR} type veth peer name right netns {NEAR}")
    for namespace, ends in ((FAR, ("lo", "left")), (NEAR, ("lo", "right"))):
        for end in ends:
            ip(f"-n {namespace} link set {end} up")


def tear_down():
    for namespace in (FAR, NEAR):
        subprocess.run(["ip", "netns", "del", namespace])


def trial(listener, generate, rate, seconds, squeeze):
    """Sends frames to a listener; returns frames arrived, handled and reported lost, seconds of sending, CPU seconds."""
    # Without an XDP program a veth accepts these frames only with GRO.
    gro = "off" if listener.xdp else "on"
    subprocess.run(inside(NEAR, ["ethtool", "-K", "right", "gro", gro]), check=True)
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        fill = lambda words: [word.format(dir=directory) for word in words]
        place = ["taskset", "-c", "1"] if squeeze is None else ["taskset", "-c", "0", "nice", "-n", str(squeeze)]
        command = inside(NEAR, [*place, *fill(listener.command)])
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            time.sleep(START_S)
            flags = ["--packets", str(int(rate * seconds))] if rate else ["--packets", str(int(4e6 * seconds))]
            flags += ["--rate", str(rate)] if rate else []
            sent = subprocess.run(
                inside(FAR, ["taskset", "-c", "0", *generate, *flags]), capture_output=True, text=True, timeout=60
            )
            if sent.returncode:
                raise Failed(f"sending: {sent.stderr.strip()}")
            sent = json.loads(sent.stdout)
            time.sleep(QUIET_S)
            status = subprocess.run(fill(listener.status), capture_output=True, text=True).stdout if listener.status else ""
            process.send_signal(signal.SIGINT)
            deadline = time.monotonic() + 20
            while True:
                pid, wait_status, usage = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if time.monotonic() > deadline:
                    raise Failed("it does not exit")
                time.sleep(0.02)
            process.returncode = os.waitstatus_to_exitcode(wait_status)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        out.seek(0)
        err.seek(0)
        try:
            handled, lost = listener.read(out.read(), err.read(), directory, status)
        except (TypeError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            raise Failed(f"unexpected output: {error!r}") from error
    return sent["accepted"], handled, lost, sent["seconds"], usage.ru_utime + usage.ru_stime


def table(rate, everyone):
    print(f"\nOffered: {rate / 1e6:g} M frames/s\n" if rate else "\nOffered: the kernel's maximum rate\n")
    print("| | M frames/s arrived | handled | reported lost | unknown | M handled / s | CPU s / M handled |")
    print("|---|---|---|---|---|---|---|")
    for one in everyone:
        trials = one.trials.get(rate)
        if not trials:
            continue
        arrived, handled, lost, seconds, cpu = (statistics.median(values) for values in zip(*trials))
        unknown = statistics.median(a - h - l for a, h, l, _, _ in trials)
        print(
            f"| {one.name} | {arrived / seconds / 1e6:.2f} | {handled / arrived:.1%} | {lost / arrived:.1%} "
            f"| {unknown:,.0f} | {handled / seconds / 1e6:.2f} | {cpu / max(handled, 1) * 1e6:.2f} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ringtap", required=True)
    parser.add_argument("--rates", default="300000,1000000,0", help="frames per second; 0: maximum rate")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--flows", default="4096")
    parser.add_argument("--squeeze", type=int, metavar="NICE", help="overload: run the listener on the sender's core with this nice value")
    parser.add_argument("--only", help="listeners whose names contain one of these, separated by commas")
    arguments = parser.parse_args()
    everyone = listeners(arguments.ringtap)
    if arguments.only:
        everyone = [one for one in everyone if any(word in one.name for word in arguments.only.split(","))]
    rates = [int(rate) for rate in arguments.rates.split(",")]
    generate = [arguments.ringtap, "generate", "-i", "left", "--method", "live", "--report", "json", "--size", "64"]
    generate += ["--flows", arguments.flows]
    order = random.Random(SEED)
    print(f"{machine()}; medians of {arguments.rounds} interleaved rounds, order by seed {SEED}")
    set_up()
    try:
        for number in range(arguments.rounds):
            for rate in rates:
                for one in order.sample(everyone, len(everyone)):
                    print(f"  round {number + 1} of {arguments.rounds}, {rate}: {one.name}", file=sys.stderr)
                    try:
                        one.trials.setdefault(rate, []).append(trial(one, generate, rate, arguments.seconds, arguments.squeeze))
                    except Failed as reason:
                        print(f"NOT MEASURED: {one.name}: {reason}", file=sys.stderr)
    finally:
        tear_down()
    for rate in rates:
        table(rate, everyone)


if __name__ == "__main__":
    main()
