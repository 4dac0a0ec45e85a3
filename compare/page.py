#!/usr/bin/env python3
"""Measures what the live page costs: loss and CPU time of a run without a page, with one without viewers, with one viewer, and
with 200 slow or hostile clients.

A flood of spoofed sources, each packet a new flow, is sent into one end of a veth pair (set up as by compare/live.py), and
`ringtap monitor` reads the other end. The clients, on the same machine: 50 viewers of different pages, 30 viewers that never
read, 50 that send a request byte by byte, 30 that read all flows as CSV, 64 bytes a second, and 40 that open a new page each
second. Rounds are interleaved, in a new random order each (seeded); the table has medians.

Needs root, python3 and iproute2. Usage: compare/page.py RINGTAP [--rate N] [--seconds N] [--rounds N]
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

import live
from measure import SEED, machine

PORT = 8080
START_S = 1.5  # time for the monitor to start
QUIET_S = 1.0  # wait after the last packet


async def request(words, limit=65536):
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT, limit=limit)
    writer.write(f"GET {words} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return reader, writer


async def again(work, pause):
    """Works again whenever the server has closed the connection."""
    while True:
        try:
            await work()
        except OSError:
            pass
        await asyncio.sleep(pause)


async def view(number):
    reader, _ = await request(f"/events?port={number}")
    while await reader.read(65536):
        pass


async def unread(number):
    _, writer = await request(f"/events?span=1h&rows=200&port={number}", 1024)
    await asyncio.sleep(20)
    writer.close()


async def trickle(_):
    _, writer = await asyncio.open_connection("127.0.0.1", PORT)
    for byte in b"GET / HTTP/1.1\r\nX: " + b"y" * 1000:
        if writer.is_closing():
            return
        writer.write(bytes([byte]))
        await asyncio.sleep(0.5)


async def slow(_):
    reader, _ = await request("/flows.csv", 64)
    while await reader.read(64):
        await asyncio.sleep(1)


async def open_page(number):
    reader, writer = await request(f"/?rows=200&host=10.0.{number}.{random.randrange(256)}")
    await reader.readline()
    writer.close()


async def clients(kind):
    kinds = [(view, 50), (unread, 30), (trickle, 50), (slow, 30), (open_page, 40)] if kind == "hostile" else [(view, 1)]
    numbered = [(work, number) for work, count in kinds for number in range(count)]
    await asyncio.gather(*(again(lambda work=work, number=number: work(number), 1) for work, number in numbered))


def thread_times(process):
    """CPU seconds by name of a thread."""
    times = {}
    tick = os.sysconf("SC_CLK_TCK")
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/stat") as file:
            before, after = file.read().rsplit(")", 1)
        name, fields = before.split("(", 1)[1], after.split()
        times[name] = times.get(name, 0) + (int(fields[11]) + int(fields[12])) / tick
    return times


def trial(ringtap, mode, rate, seconds):
    """Returns the share of lost packets, CPU seconds of the page's thread and of all, and the seconds of the run."""
    page = [] if mode == "no page" else ["--web", str(PORT)]
    command = [ringtap, "monitor", "-i", "right", "-q", "--report", "json", "--idle-timeout", "5s", "--interval", "5s"]
    command += ["--analyses", "all,activity", *page]
    monitor = subprocess.Popen(live.inside(live.NEAR, command), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    others = None
    try:
        time.sleep(START_S)
        begin = time.monotonic()
        if mode in ("one viewer", "200 clients"):
            kind = "hostile" if mode == "200 clients" else "viewer"
            words = [sys.executable, __file__, "--clients", kind]
            others = subprocess.Popen(live.inside(live.NEAR, words), stderr=subprocess.DEVNULL)
        send = [ringtap, "generate", "--profile", "flood", "--seed", str(SEED), "--rate", str(rate), "--packets", str(rate * seconds)]
        subprocess.run(live.inside(live.FAR, [*send, "-i", "left"]), check=True, capture_output=True)
        time.sleep(QUIET_S)
        times, past = thread_times(monitor.pid), time.monotonic() - begin
        monitor.send_signal(signal.SIGINT)
        report = json.loads(monitor.communicate(timeout=60)[0])
    finally:
        monitor.kill()
        if others:
            others.kill()
    received, dropped = report["packets"]["received"], sum(report["packets"]["dropped"].values())
    return dropped / (received + dropped), times.get("web", 0), sum(times.values()), past


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ringtap", nargs="?")
    parser.add_argument("--rate", type=int, default=400_000, help="packets a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", choices=["viewer", "hostile"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.clients:
        asyncio.run(clients(arguments.clients))
        return
    ringtap = os.path.abspath(arguments.ringtap)
    modes = ["no page", "page, no viewer", "one viewer", "200 clients"]
    trials = {mode: [] for mode in modes}
    order = random.Random(SEED)
    print(f"{machine()}; medians of {arguments.rounds} interleaved rounds, order by seed {SEED}")
    live.set_up()
    try:
        for _ in range(arguments.rounds):
            for mode in order.sample(modes, len(modes)):
                trials[mode].append(trial(ringtap, mode, arguments.rate, arguments.seconds))
    finally:
        live.tear_down()
    print(f"\nFlood of {arguments.rate:,} packets a second, each a new flow, for {arguments.seconds} s\n")
    print("| | lost | most | CPU of the page | CPU s of the run |\n|---|---|---|---|---|")
    for mode, own in trials.items():
        lost, page, whole, past = (statistics.median(values) for values in zip(*own))
        most = max(values[0] for values in own)
        print(f"| {mode} | {lost:.4%} | {most:.4%} | {page / past:.1%} | {whole:.1f} |")


if __name__ == "__main__":
    main()
