"""Compares ringtap-ndn forward with ndnd under the same load, in turns; prints medians and their quotients.

The forwarder runs on one core, the load on another. Neither forwarder uses its content store; all names are new. On a
busy machine, the forwarder's CPU time per exchange is more reliable than the rate.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(path, process):
    for _ in range(100):
        if os.path.exists(path):
            return
        if process.poll() is not None:
            sys.exit("the forwarder exited: " + " ".join(process.args))
        time.sleep(0.05)
    sys.exit(f"the forwarder does not listen at {path}")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def on_core(core, command):
    return ["taskset", "-c", str(core), *command]


class Ringtap:
    name = "ringtap"

    def __init__(self, program, folder, answer_at):
        self.port = free_port()
        config, socket_at = f"{folder}/ringtap.toml", f"{folder}/ringtap.sock"
        with open(config, "w") as file:
            file.write(
                f'[udp]\nlisten = "127.0.0.1:{self.port}"\n[unix]\nlisten = "{socket_at}"\n'
                f'[tables]\ncontent-store = 0\n'
                f'[[route]]\nprefix = "/load"\nto = "udp://127.0.0.1:{answer_at}"\n'
            )
        command = on_core(0, [program, "forward", "--report", "json", "--config", config])
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        wait_for(socket_at, self.process)

    def end(self):
        self.process.send_signal(2)
        report = json.loads(self.process.communicate(timeout=20)[0])
        assert report["ledger"]["residual"] == 0, report["ledger"]


class Ndnd:
    name = "ndnd"

    def __init__(self, program, folder, answer_at):
        self.port = free_port()
        config, socket_at = f"{folder}/ndnd.yml", f"{folder}/ndnd.sock"
        with open(config, "w") as file:
            file.write(
                "core:\n  log_level: ERROR\n"
                "faces:\n  udp:\n    enabled_multicast: false\n"
                f"    port_unicast: {self.port}\n    default_mtu: 8800\n"
                "  tcp:\n    enabled: false\n  websocket:\n    enabled: false\n"
                f"  unix:\n    socket_path: {socket_at}\nfw:\n  threads: 1\n"
                "tables:\n  content_store:\n    admit: false\n    serve: false\n"
            )
        environment = {**os.environ, "GOMAXPROCS": "1"}
        self.process = subprocess.Popen(
            on_core(0, [program, "fw", "run", config]), env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        wait_for(socket_at, self.process)
        environment["NDN_CLIENT_TRANSPORT"] = f"unix://{socket_at}"
        subprocess.run(
            [program, "fw", "route-add", "prefix=/load", f"face=udp4://127.0.0.1:{answer_at}"],
            env=environment, check=True, stdout=subprocess.DEVNULL,
        )

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def measure(kind, program, load, window, seconds, content, offload):
    with tempfile.TemporaryDirectory() as folder:
        answer_at = free_port()
        forwarder = kind(program, folder, answer_at)
        try:
            command = [load, "--to", f"udp://127.0.0.1:{forwarder.port}"]
            command += ["--answer-at", f"udp://127.0.0.1:{answer_at}", "--window", str(window)]
            command += ["--seconds", str(seconds), "--content", str(content)]
            command += ["--offload"] if offload else []
            before = cpu_seconds(forwarder.process.pid)
            out = subprocess.run(on_core(1, command), check=True, capture_output=True, text=True)
            spent = cpu_seconds(forwarder.process.pid) - before
        finally:
            forwarder.end()
    result = json.loads(out.stdout)
    return {**result, "cpu_us": 1e6 * spent / max(result["answered"], 1)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--ndnd", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--windows", default="64,256,1024")
    parser.add_argument("--content", type=int, default=100)
    parser.add_argument("--offload", action="store_true", help="the load uses UDP segmentation offload and costs less CPU time")
    options = parser.parse_args()
    if not os.access(options.ndnd, os.X_OK):
        sys.exit(f"{options.ndnd} is missing: scripts/setup-test.sh builds it")
    kinds = [(Ringtap, options.program), (Ndnd, options.ndnd)]
    load = "offloaded" if options.offload else "plain"
    print(f"load average {os.getloadavg()[0]:.1f}, {options.content} bytes of content, {load} load")
    print("| in flight | ringtap, Data/s | ndnd, Data/s | times | ringtap, CPU µs | ndnd, CPU µs | times | lost |")
    print("|---|---|---|---|---|---|---|---|")
    for window in map(int, options.windows.split(",")):
        results = {kind.name: [] for kind, _ in kinds}
        for turn in range(options.rounds):
            for kind, program in kinds if turn % 2 == 0 else reversed(kinds):
                results[kind.name].append(
                    measure(
                        kind, program, options.load, window, options.seconds, options.content,
                        options.offload,
                    )
                )

        def median(name, what):
            return statistics.median(row[what] for row in results[name])

        ours, theirs = (median(kind.name, "data_per_second") for kind, _ in kinds)
        our_cpu, their_cpu = (median(kind.name, "cpu_us") for kind, _ in kinds)
        lost = [sum(row["lost"] + row["nacks"] for row in results[kind.name]) for kind, _ in kinds]
        print(
            f"| {window} | {ours:,.0f} | {theirs:,.0f} | {ours / max(theirs, 1):.1f} "
            f"| {our_cpu:.1f} | {their_cpu:.1f} | {their_cpu / max(our_cpu, 0.01):.1f} "
            f"| {lost[0]}, {lost[1]} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
