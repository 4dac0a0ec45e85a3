"""Compares a TCP transfer through ringtap filter with one through a bridge with nft, in turns; prints medians.

    namespace client: left ── right ── filter, or bridge and nft ── out ── far: namespace server

The veth pairs have their default offloads: TCP sends super-frames of up to 64 KiB without checksums. The filter has as many
bans as the set of nft has addresses. Rounds are in a new random order each (seeded). The frames of the server's interface show
whether super-frames arrive whole.
"""

import argparse
import ipaddress
import json
import os
import random
import signal
import statistics
import subprocess
import tempfile
import time

from measure import SEED, machine

CLIENT, MIDDLE, SERVER = (f"ringtap-offload-{os.getpid()}-{end}" for end in "abc")
PORT = "5201"


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def inside(namespace, command):
    return ["ip", "netns", "exec", namespace, *map(str, command)]


def set_up():
    for namespace in (CLIENT, MIDDLE, SERVER):
        ip(f"netns add {namespace}")
        ip(f"-n {namespace} link set lo up")
    for namespace, host, link, peer in ((CLIENT, 1, "left", "right"), (SERVER, 2, "far", "out")):
        ip(f"link add {link} netns {namespace} type veth peer name {peer} netns {MIDDLE}")
        ip(f"-n {namespace} addr add 10.7.0.{host}/24 dev {link}")
        ip(f"-n {namespace} link set {link} up")
        ip(f"-n {MIDDLE} link set {peer} up")


def tear_down():
    for namespace in (CLIENT, MIDDLE, SERVER):
        subprocess.run(["ip", "netns", "delete", namespace], check=False)


def banned(count):
    """Addresses that no packet has."""
    return [str(ipaddress.ip_address(0xC0000000 + 7 * number)) for number in range(count)]


class Bridge:
    """A bridge; with `addresses`, nft drops those of a set."""

    def __init__(self, addresses, directory):
        ip(f"-n {MIDDLE} link add bridge type bridge")
        for link in ("right", "out"):
            ip(f"-n {MIDDLE} link set {link} master bridge")
        ip(f"-n {MIDDLE} link set bridge up")
        if not addresses:
            return
        path = f"{directory}/set.nft"
        with open(path, "w") as file:
            file.write("table bridge filter {\n  set banned { type ipv4_addr; elements = { ")
            file.write(", ".join(banned(addresses)))
            file.write(" } }\n  chain forward { type filter hook forward priority 0; ip saddr @banned drop; }\n}\n")
        subprocess.run(inside(MIDDLE, ["nft", "-f", path]), check=True)

    def end(self):
        ip(f"-n {MIDDLE} link delete bridge")
        subprocess.run(inside(MIDDLE, ["nft", "flush", "ruleset"]), check=True)
        return {}


class Filter:
    def __init__(self, ringtap, flags, addresses, directory):
        rules = f"{directory}/rules"
        with open(rules, "w") as file:
            file.write("default allow\n" + "".join(f"ban {address}\n" for address in banned(addresses)))
        command = [ringtap, "filter", "-i", "right", "-o", "out", "--both-ways", "--rules", rules, "--report", "json"]
        self.process = subprocess.Popen(
            inside(MIDDLE, command + flags), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        time.sleep(1.5)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        report = json.loads(self.process.communicate(timeout=30)[0])
        assert report["ledger"]["residual"] == 0, report["ledger"]
        return report.get("super_frames") or {}


def received():
    """Frames that the server's interface has received."""
    out = subprocess.run(["ip", "-n", SERVER, "-j", "-s", "link", "show", "far"], check=True, capture_output=True)
    return json.loads(out.stdout)[0]["stats64"]["rx"]["packets"]


def congestion_control():
    """The system's default. A namespace that is new has it, too."""
    with open("/proc/sys/net/ipv4/tcp_congestion_control") as file:
        return file.read().strip()


def transfer(seconds, congestion):
    """Bits per second, and bytes per received frame."""
    before = received()
    client = ["iperf3", "--client", "10.7.0.2", "--port", PORT, "--time", seconds, "--congestion", congestion, "--json"]
    out = subprocess.run(inside(CLIENT, client), check=True, capture_output=True, text=True)
    end = json.loads(out.stdout)["end"]["sum_received"]
    return end["bits_per_second"], end["bytes"] / max(received() - before, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ringtap", required=True, action="append", help="a program; several are compared")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5, help="duration of a transfer")
    parser.add_argument("--addresses", type=int, default=10_000, help="in the set of nft, and banned by the filter")
    parser.add_argument("--congestion", default=congestion_control(), help="TCP's congestion control; the system's by default")
    options = parser.parse_args()
    count = options.addresses
    paths = {"bridge": lambda at: Bridge(0, at), "bridge, nft set": lambda at: Bridge(count, at)}
    for number, ringtap in enumerate(map(os.path.abspath, options.ringtap), 1):
        name = "ringtap filter" if len(options.ringtap) == 1 else f"ringtap filter ({number})"
        paths[name] = lambda at, ringtap=ringtap: Filter(ringtap, [], count, at)
        paths[f"{name}, --send af-xdp"] = lambda at, ringtap=ringtap: Filter(ringtap, ["--send", "af-xdp"], count, at)
    results = {name: [] for name in paths}
    order = random.Random(SEED)
    rounds = f"medians of {options.rounds} interleaved rounds of {options.seconds} s"
    print(f"{machine()}; {count:,} addresses; {options.congestion}; {rounds}", flush=True)
    set_up()
    server = subprocess.Popen(inside(SERVER, ["iperf3", "--server", "--port", PORT]), stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        for _ in range(options.rounds):
            for name in order.sample(list(paths), len(paths)):
                with tempfile.TemporaryDirectory() as directory:
                    path = paths[name](directory)
                    try:
                        measured = transfer(options.seconds, options.congestion)
                    finally:
                        supers = path.end()
                results[name].append((*measured, supers))
        reference = statistics.median(rate for rate, _, _ in results["bridge, nft set"])
        print("| path | Gbit/s | of the bridge with nft | bytes of TCP per frame at the server | sent whole, cut |")
        print("|---|---|---|---|---|")
        for name, rows in results.items():
            rates = sorted(rate for rate, _, _ in rows)
            middle, size = statistics.median(rates), statistics.median(size for _, size, _ in rows)
            whole, cut = (sum(supers.get(kind, 0) for *_, supers in rows) for kind in ("whole", "cut"))
            kinds = f"{whole:,}, {cut:,}" if whole + cut else "–"
            spread = f"{rates[0] / 1e9:.1f} to {rates[-1] / 1e9:.1f}"
            print(f"| {name} | {middle / 1e9:.1f} ({spread}) | {middle / reference:.2f} | {size:,.0f} | {kinds} |")
    finally:
        server.kill()
        server.wait()
        tear_down()


if __name__ == "__main__":
    main()
