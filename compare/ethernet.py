"""Compares the methods of Ethernet faces under the same load, in turns; prints medians and their quotients.

    namespace FAR: load ── left ── right ──▶ forwarder ──▶ out ── far ── load: answers         namespace NEAR: forwarder

The load sends and receives by AF_PACKET. The kernel handles a frame on the core that sent it, so the CPU time of the forwarder
has what the kernel does for the frames it sends, up to their queue at the load.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import tempfile
import time

from forward import cpu_seconds, on_core
from live import FAR, NEAR, inside, ip, set_up, tear_down

METHODS = ["af-packet", "af-xdp"]
RIGHT, ANSWERER = "02:00:00:00:00:02", "02:00:00:00:00:04"


def run(options, method, window, content):
    """Data per second, CPU seconds of the forwarder per million exchanges, and lost Interests."""
    with tempfile.TemporaryDirectory() as folder:
        config = f"{folder}/forward.toml"
        with open(config, "w") as file:
            file.write(
                f'[[ethernet]]\ninterface = "right"\nmethod = "{method}"\nstrangers = true\n'
                f'[[ethernet]]\ninterface = "out"\nmethod = "{method}"\n'
                f'[tables]\ncontent-store = 0\n[workers]\nnumber = {options.workers}\n'
                f'[[route]]\nprefix = "/load"\nto = "ether://out/{ANSWERER}"\n'
            )
        command = [options.program, "forward", "--report", "json", "--config", config]
        forwarder = subprocess.Popen(
            inside(NEAR, on_core(0, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # One line for each interface.
        started = [forwarder.stderr.readline() for _ in range(2)]
        assert all("forwarding at dev://" in line for line in started), started
        load = [options.load, "--to", f"ether://left/{RIGHT}", "--answer-at", "ether://far"]
        load += ["--window", window, "--seconds", options.seconds, "--content", content]
        before = cpu_seconds(forwarder.pid)
        out = subprocess.run(inside(FAR, on_core(1, map(str, load))), check=True, capture_output=True, text=True)
        spent = cpu_seconds(forwarder.pid) - before
        forwarder.send_signal(signal.SIGINT)
        report = json.loads(forwarder.communicate(timeout=20)[0])
    assert report["ledger"]["residual"] == 0, report["ledger"]
    result = json.loads(out.stdout)
    answered = max(result["answered"], 1)
    return result["data_per_second"], 1e6 * spent / answered, result["lost"] + result["nacks"], started


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--windows", default="16,64,200")
    parser.add_argument("--contents", default="100,1000")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    set_up()
    try:
        ip(f"link add far netns {FAR} type veth peer name out netns {NEAR}")
        ip(f"-n {NEAR} link set right address {RIGHT}")
        ip(f"-n {FAR} link set far address {ANSWERER} up")
        ip(f"-n {NEAR} link set out up")
        time.sleep(2)  # until the interfaces send
        print(f"load average {os.getloadavg()[0]:.1f}, medians of {options.rounds}")
        print("| in flight | content | AF_PACKET, Data/s | AF_XDP, Data/s | ratio | AF_PACKET, CPU µs | AF_XDP, CPU µs | ratio | lost |")
        print("|---|---|---|---|---|---|---|---|---|")
        for content in map(int, options.contents.split(",")):
            for window in map(int, options.windows.split(",")):
                results = {method: [] for method in METHODS}
                for turn in range(options.rounds):
                    for method in METHODS if turn % 2 == 0 else reversed(METHODS):
                        results[method].append(run(options, method, window, content))
                rates, cpus = ([statistics.median(row[at] for row in results[method]) for method in METHODS] for at in (0, 1))
                lost = [sum(row[2] for row in results[method]) for method in METHODS]
                print(
                    f"| {window} | {content} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.2f} "
                    f"| {cpus[0]:.2f} | {cpus[1]:.2f} | {cpus[0] / max(cpus[1], 0.01):.2f} | {lost[0]}, {lost[1]} |",
                    flush=True,
                )
        print(results["af-xdp"][0][3])
    finally:
        tear_down()


if __name__ == "__main__":
    main()
