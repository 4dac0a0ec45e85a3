#!/usr/bin/env python3
"""Measures what a hostile neighbour costs the other faces of ringtap-ndn forward: it sends Interests with distinct names and
lifetimes of an hour, to a producer that never answers.

Two programs ping servers through the forwarder during the whole flood: one over UDP a server behind UDP, the other over the
Unix socket a server at that socket. Rounds are interleaved, in a new random order each (seeded), and the table has medians. In the rounds "beside", the same flood goes
to a socket that is never read, so they show what the flood costs the machine without the forwarder. The forwarder runs on
core 0, the rest on core 1, the flood only when they are idle (SCHED_IDLE). There is no content store, which the pings would fill.

Each Interest of the flood must be counted by the forwarder, or by the kernel as a datagram that found the forwarder's receive queue
full. With --offload, which sends more than a forwarder on one core handles, the kernel counts messages of up to 64 datagrams. The forwarder's resident memory is read twice a second.

Needs target/release/ringtap-ndn and compare/forward; compare/hostile.sh builds both.
"""

import argparse
import json
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from measure import SEED, machine

MODES = ["idle", "beside", "flooded"]
INTERVAL_MS = 2  # between pings
SAMPLE_S = 0.5  # between samples of the memory


def bound_port():
    """A bound UDP socket, and its port."""
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    return one, one.getsockname()[1]


def free_port():
    one, port = bound_port()
    one.close()
    return port


def on_core(core, command):
    return ["taskset", "-c", str(core), *map(str, command)]


def start(command, **how):
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **how)


def end(process):
    """The report of a ringtap command."""
    process.send_signal(signal.SIGINT)
    return json.loads(process.communicate(timeout=60)[0])


class Memory(threading.Thread):
    """Samples the resident memory of a process, in kB."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.path, self.samples, self.is_over = f"/proc/{pid}/status", [], threading.Event()
        self.start()

    def run(self):
        while not self.is_over.wait(SAMPLE_S):
            with open(self.path) as file:
                resident = next(line for line in file if line.startswith("VmRSS:"))
            self.samples.append(int(resident.split()[1]))

    def end(self):
        self.is_over.set()
        self.join()
        return self.samples


def trial(options, mode):
    """Pings for the time of a flood; returns their times in µs and losses, and the counts of the flood."""
    with tempfile.TemporaryDirectory() as folder:
        answer_at, at = free_port(), free_port()
        # Never read: Interests that the forwarder sends there, and the flood beside it, are lost.
        (silent, silent_port), (beside, beside_port) = bound_port(), bound_port()
        config, path = f"{folder}/forward.toml", f"{folder}/ndn.sock"
        with open(config, "w") as file:
            file.write(
                f'[udp]\nlisten = "127.0.0.1:{at}"\n[unix]\nlisten = "{path}"\n[tables]\ncontent-store = 0\n'
                f'[[route]]\nprefix = "/served/udp"\nto = "udp://127.0.0.1:{answer_at}"\n'
                f'[[route]]\nprefix = "/void"\nto = "udp://127.0.0.1:{silent_port}"\n'
            )
        program = options.program
        forwarder = start(on_core(0, [program, "forward", "--report", "json", "--config", config]))
        running = [forwarder]
        try:
            while not os.path.exists(path):
                assert forwarder.poll() is None, "the forwarder exited"
                time.sleep(0.05)
            server = [program, "server", "--report", "json"]
            servers = [
                start(on_core(1, [*server, "/served/udp", "--listen", f"udp://127.0.0.1:{answer_at}"])),
                start(on_core(1, [*server, "/served/unix", "--to", f"unix:{path}"])),
            ]
            running += servers
            time.sleep(1)
            memory = Memory(forwarder.pid)
            words = ["ping", "-q", "--report", "json", "-i", f"{INTERVAL_MS}ms", "-W", "1s"]
            ways = {"/served/udp": f"udp://127.0.0.1:{at}", "/served/unix": f"unix:{path}"}
            pings = [start(on_core(1, [program, *words, name, "--to", to])) for name, to in ways.items()]
            running += pings
            flood = {"sent": 0, "unsent": 0, "answers": 0, "seconds": 0}
            seconds = options.count / options.rate
            if mode == "idle":
                time.sleep(min(seconds, options.idle))
            else:
                to = at if mode == "flooded" else beside_port
                command = [options.flood, "--to", f"127.0.0.1:{to}", "--prefix", "/void", "--count", options.count]
                command += ["--rate", options.rate, "--lifetime-ms", 3_600_000, *["--offload"][: options.offload]]
                process = start(on_core(1, ["chrt", "--idle", "0", *command]))
                running.append(process)
                flood = json.loads(process.communicate(timeout=20 * seconds + 60)[0])
            times = [end(ping) for ping in pings]
            kilobytes = memory.end()
            answered = sum(end(server)["data"] for server in servers)
            report = end(forwarder)
        finally:
            for process in running:
                process.kill()
            silent.close()
            beside.close()
    assert report["ledger"]["residual"] == 0, report["ledger"]
    # All datagrams and frames that were sent to the forwarder: pings, answers of the server, and the flood.
    sent = sum(ping["sent"] for ping in times) + answered
    sent += flood["sent"] - flood["unsent"] if mode == "flooded" else 0
    dropped = report["kernel_dropped"]
    missing = sent - report["packets"]["interests_in"] - report["packets"]["data_in"]
    missing -= report["packets"]["dropped"].get("worker-full", 0)
    is_counted = dropped <= missing <= 64 * dropped if options.offload else dropped == missing
    assert is_counted, f"{missing} packets are missing, and the kernel dropped {dropped}: {report}"
    row = {"memory": kilobytes, "rate": flood["sent"] / (flood["seconds"] or 1), "kernel": report["kernel_dropped"]}
    row["refused"] = report["packets"]["dropped"].get("face-share", 0)
    for name, ping in zip(("udp", "unix"), times):
        row[name, "p50"], row[name, "p99"] = ping["time_ns"]["p50"] / 1e3, ping["time_ns"]["p99"] / 1e3
        row[name, "sent"], row[name, "lost"] = ping["sent"], ping["lost"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--flood", required=True)
    parser.add_argument("--count", type=int, default=10_000_000, help="Interests of a flood")
    parser.add_argument("--rate", type=int, default=200_000, help="Interests of the flood a second")
    parser.add_argument("--offload", action="store_true", help="the flood uses UDP segmentation offload")
    parser.add_argument("--idle", type=float, default=20, help="longest duration of a round without a flood, in seconds")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.program, options.flood = os.path.abspath(options.program), os.path.abspath(options.flood)
    trials = {mode: [] for mode in MODES}
    order = random.Random(SEED)
    print(f"{machine()}; medians of {options.rounds} interleaved rounds, order by seed {SEED}", flush=True)
    for _ in range(options.rounds):
        for mode in order.sample(MODES, len(MODES)):
            trials[mode].append(trial(options, mode))
            print(mode, {**trials[mode][-1], "memory": ""}, file=sys.stderr, flush=True)
    rate = statistics.median(row["rate"] for row in trials["flooded"])
    print(f"\n{options.count:,} Interests at {rate:,.0f} a second; pings every {INTERVAL_MS} ms; times in µs\n")
    print("| | ping by | p50 | p99 | p99, times idle | pings | lost |\n|---|---|---|---|---|---|---|")
    for name in ("udp", "unix"):
        idle = statistics.median(row[name, "p99"] for row in trials["idle"])
        for mode, rows in trials.items():
            p50, p99 = (statistics.median(row[name, what] for row in rows) for what in ("p50", "p99"))
            sent, lost = (sum(row[name, what] for row in rows) for what in ("sent", "lost"))
            print(f"| {mode} | {name} | {p50:.0f} | {p99:.0f} | {p99 / idle:.1f} | {sent:,} | {lost:,} |")
    print("\n| flooded round | refused (face-share) | dropped by the kernel | resident memory at 0, 25, 50, 75, 100 % |")
    print("|---|---|---|---|")
    for number, row in enumerate(trials["flooded"], 1):
        memory = row["memory"]
        points = [memory[min(len(memory) * at // 4, len(memory) - 1)] for at in range(5)]
        text = ", ".join(f"{point:,}" for point in points)
        print(f"| {number} | {row['refused']:,} | {row['kernel']:,} | {text} kB |")


if __name__ == "__main__":
    main()
