#!/usr/bin/env python3
"""Measures the delay until ringtap reads a frame by AF_XDP, while other frames arrive at a given rate.

Every half millisecond a probe, each a new flow, is sent into one end of a veth pair (set up as by compare/live.py). The
delay is the start time of its flow (the time when the frame was read) minus the time when it was sent, by the same
clock. EVE records have microseconds. Programs are interleaved; the table has medians of the rounds.

Other frames are of 4,096 flows, or of the numbers of --flows. With as many flows as frames, most frames begin a flow and the
tables grow.

Usage: compare/delay.py RINGTAP… [--rates N,…] [--flows N,…] [--rounds N]      (as root; needs iproute2 and ethtool)
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime

from live import FAR, NEAR, QUIET_S, START_S, inside, set_up, tear_down
from measure import machine

PROBES = 4000
PORT = 9999

# Runs in the sender's namespace; prints {source port: time of sending in nanoseconds}.
PROBE = f"""
import json, socket, struct, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("left", 0))
sent, due = {{}}, time.perf_counter()
for port in range(10000, 10000 + {PROBES}):
    udp = struct.pack("!HHHH", port, {PORT}, 26, 0) + bytes(18)
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 46, 0, 0, 64, 17, 0, 0x0a090901, 0x0a090902)
    frame = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]) + ip + udp
    sent[port] = time.time_ns()
    out.send(frame)
    due += 0.0005
    while time.perf_counter() < due:
        time.sleep(0.0001)
print(json.dumps(sent))
"""


def trial(ringtap, rate, flows):
    """Runs one trial; returns the delays of the probes in microseconds, sorted."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "eve.json")
        words = [ringtap, "monitor", "-i", "right", "--report", "json", "-q", "--sequential", "--analyses", "flows"]
        words += ["--capture", "af-xdp", "--write", f"eve:{path}"]
        listener = subprocess.Popen(inside(NEAR, ["taskset", "-c", "1", *words]), stdout=subprocess.DEVNULL)
        load = None
        try:
            time.sleep(START_S)
            if rate:
                words = [ringtap, "generate", "-i", "left", "--method", "live", "--report", "json", "--size", "64"]
                words += ["--flows", str(flows), "--rate", str(rate), "--packets", str(3 * rate)]
                load = subprocess.Popen(inside(FAR, ["taskset", "-c", "0", *words]), stdout=subprocess.DEVNULL)
            command = inside(FAR, ["taskset", "-c", "0", sys.executable, "-c", PROBE])
            sent = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            time.sleep(QUIET_S)
        finally:
            if load:
                load.wait(60)
            listener.send_signal(signal.SIGINT)
            listener.wait(20)
        delays = []
        with open(path) as records:
            for record in map(json.loads, records):
                if record.get("dest_port") == PORT:
                    start = datetime.strptime(record["flow"]["start"], "%Y-%m-%dT%H:%M:%S.%f%z")
                    read_us = int(start.timestamp()) * 1_000_000 + start.microsecond
                    delays.append(read_us - sent[str(record["src_port"])] / 1e3)
        if len(delays) != PROBES:
            raise SystemExit(f"{ringtap}: {PROBES - len(delays)} probes have no flow record")
        return sorted(delays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ringtap", nargs="+")
    parser.add_argument("--rates", default="0,300000,1000000", help="other frames per second")
    parser.add_argument("--flows", default="4096", help="flows of other frames, each a power of two")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rates, flows = ([int(word) for word in words.split(",")] for words in (arguments.rates, arguments.flows))
    trials = {(rate, number, program): [] for rate in rates for number in flows for program in arguments.ringtap}
    print(f"{machine()}; medians of {arguments.rounds} interleaved rounds of {PROBES} probes\n")
    set_up()
    try:
        subprocess.run(inside(NEAR, ["ethtool", "-K", "right", "gro", "off"]), check=True)
        for _ in range(arguments.rounds):
            for key in trials:
                rate, number, program = key
                trials[key].append(trial(program, rate, number))
    finally:
        tear_down()
    print("| other frames per second | of flows | program | p50, µs | p99, µs | maximum, µs | p99.99 of all rounds, µs |")
    print("|---|---|---|---|---|---|---|")
    for (rate, number, program), rounds in trials.items():
        at = lambda part: statistics.median(delays[int(part * (PROBES - 1))] for delays in rounds)
        pooled = sorted(delay for delays in rounds for delay in delays)
        rare = pooled[int(0.9999 * (len(pooled) - 1))]
        print(f"| {rate:,} | {number:,} | {program} | {at(0.5):.0f} | {at(0.99):.0f} | {at(1):.0f} | {rare:.0f} |")


if __name__ == "__main__":
    main()
