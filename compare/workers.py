#!/usr/bin/env python3
"""One and two workers of `ringtap-ndn forward`, by kind of face and window: rates, CPU time, and their ratios.

    compare/workers.py target/release/ringtap-ndn [--kinds unix,tcp,udp] [--windows 1,16,64,256] [--rounds 5] [--seconds 2]

The load is `ringtap-ndn load`, the producer `ringtap-ndn server`; over TCP, a forwarder with one worker stands between each and the
measured one. Numbers of workers take turns; the table has medians. With four cores or more, all processes are pinned: the
measured forwarder to two cores, the others to the rest. Needs no root and only the loopback interface. Prints a Markdown table.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CORES = sorted(os.sched_getaffinity(0))


def pinned(role, command):
    """The measured forwarder has two cores; of the others, each process has one of its own if there are enough."""
    if len(CORES) < 4:
        return command
    others = CORES[2:]
    cores = CORES[:2] if role == 0 else [others[role % len(others)]]
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Setup:
    """Processes of a run, ended with it."""

    def __init__(self, program):
        self.program = program
        self.folder = tempfile.mkdtemp()
        self.running = []

    def start(self, role, words, said):
        """Starts a process, and waits for a line on stderr."""
        command = pinned(role, [self.program, *words])
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.running.append(process)
        for line in process.stderr:
            if said in line:
                return process
        sys.exit("a process has ended: " + " ".join(command))

    def forwarder(self, role, name, workers, more):
        """A forwarder with a Unix socket, whose path is returned, and `more` in its configuration."""
        config, path = f"{self.folder}/{name}.toml", f"{self.folder}/{name}.sock"
        with open(config, "w") as file:
            file.write(f'[unix]\nlisten = "{path}"\n[tables]\ncontent-store = 0\n'
                       f"[workers]\nnumber = {workers}\nhash-components = 3\n{more}")
        words = ["forward", "--report", "json", "--config", config]
        return path, self.start(role, words, "forwarding at unix://")

    def server(self, words):
        self.start(1, ["server", "/load", "--payload", "100", *words], "serving /load")

    def end(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGINT)
        for process in self.running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=20)
            process.kill()


def route(to):
    return f'[[route]]\nprefix = "/load"\nto = "{to}"\n'


def measure(program, kind, window, workers, seconds):
    """Data a second, and CPU time of the forwarder per Data, in µs."""
    setup = Setup(program)
    try:
        if kind == "unix":
            path, measured = setup.forwarder(0, "measured", workers, "")
            setup.server(["--to", f"unix:{path}"])
            to = f"unix:{path}"
        elif kind == "udp":
            server_at, port = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
            setup.server(["--listen", f"udp://127.0.0.1:{server_at}"])
            more = f'[udp]\nlisten = "127.0.0.1:{port}"\n' + route(f"udp://127.0.0.1:{server_at}")
            _, measured = setup.forwarder(0, "measured", workers, more)
            to = f"udp://127.0.0.1:{port}"
        else:
            ports = [free_port(socket.SOCK_STREAM) for _ in range(2)]
            listens = [f'[tcp]\nlisten = "127.0.0.1:{port}"\n' for port in ports]
            far, _ = setup.forwarder(2, "far", 1, listens[1])
            setup.server(["--to", f"unix:{far}"])
            more = listens[0] + route(f"tcp://127.0.0.1:{ports[1]}")
            _, measured = setup.forwarder(0, "measured", workers, more)
            near, _ = setup.forwarder(3, "near", 1, route(f"tcp://127.0.0.1:{ports[0]}"))
            to = f"unix:{near}"
        # Connections to neighbours are opened in the background.
        time.sleep(0.3)
        load = ["load", "/load", "--to", to, "--window", str(window), "--report", "json"]
        before, began = cpu_seconds(measured.pid), time.monotonic()
        command = pinned(4, [program, *load, "--duration", f"{seconds:g}s"])
        out = subprocess.run(command, check=True, capture_output=True, text=True)
        spent = cpu_seconds(measured.pid) - before
        result = json.loads(out.stdout)
        assert time.monotonic() - began >= seconds and result["answered"] > 0, result
        return result["answered_per_second"], 1e6 * spent / result["answered"]
    finally:
        setup.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kinds", default="unix,tcp,udp")
    parser.add_argument("--windows", default="1,16,64,256")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    print("| face | in flight | 1 worker, Data/s | CPU µs per Data | 2 workers, Data/s | CPU µs | ratio of rates | of CPU |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for kind in options.kinds.split(","):
        for window in map(int, options.windows.split(",")):
            results = {1: [], 2: []}
            for turn in range(options.rounds):
                # The order changes, so that a trend of the machine favours neither.
                for workers in (1, 2) if turn % 2 == 0 else (2, 1):
                    one = measure(options.program, kind, window, workers, options.seconds)
                    results[workers].append(one)
            median = {n: [statistics.median(column) for column in zip(*rows)] for n, rows in results.items()}
            (rate, cost), (two_rate, two_cost) = median[1], median[2]
            print(f"| {kind} | {window} | {rate:,.0f} | {cost:.2f} | {two_rate:,.0f} | {two_cost:.2f} "
                  f"| {two_rate / rate:.2f} | {two_cost / cost:.2f} |", flush=True)


if __name__ == "__main__":
    main()
