#!/usr/bin/env python3
"""What the library costs beside flows alone and beside nfstream: a Markdown table with each program's CPU time, packets per CPU
second, and how many instructions it executes more than flows alone by packet and by record. Times are those behind the fastest tenth of
interleaved rounds. Instructions are counted by callgrind: they do not depend on the machine's load, and show differences
of less than a nanosecond.

Usage: cargo build --release --manifest-path examples/analyses/Cargo.toml       # and Debian package valgrind
       compare/library.py FOLDER [--rounds N] [--nfstream PYTHON] FILE.pcap…

FOLDER has the programs: examples/analyses/target/release. --nfstream adds the same top networks as a plugin of nfstream
(PyPI) in this Python, one round in three.
"""

import argparse
import json
import os
import re
import subprocess

from versions import rounds

NONE = "flows"
COSTS = {NONE: "none", "an empty analysis": "empty", "a function for packets": "packet", "a function for records": "flow",
         "a filter of records": "filter", "the flows of one port alone": "port"}
NETWORKS = "networks /24"
FLAGS = ["monitor", "-q", "--sequential", "--extract", "none", "--idle-timeout", "1h", "--active-timeout", "1h"]
NFSTREAM = """
import sys
from nfstream import NFPlugin, NFStreamer

class Networks(NFPlugin):
    def on_expire(self, flow):
        for address, octets in ((flow.src_ip, flow.src2dst_bytes), (flow.dst_ip, flow.dst2src_bytes)):
            if flow.ip_version == 4:
                network = address.rsplit(".", 1)[0]
                SUMS[network] = SUMS.get(network, 0) + octets

SUMS = {}
if __name__ == "__main__":
    for flow in NFStreamer(source=sys.argv[1], udps=Networks(), accounting_mode=1, n_dissections=0, idle_timeout=3600,
                           active_timeout=3600, n_meters=1):
        pass
"""


def counts(program, file):
    """Packets and flow records of a file."""
    words = [program, *FLAGS, "--analyses", "flows", "--report", "json", "-r", file]
    report = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    return report["packets"]["handled"], report["flows"]["records"]


def instructions(command):
    """Instructions of a command; None for one that callgrind cannot count."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*valgrind, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    return int(counted[1]) if done.returncode == 0 and counted else None


def fast(times):
    """The time behind the fastest tenth of the rounds."""
    return sorted(own for _, own in times)[len(times) // 10]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--nfstream")
    options = parser.parse_args()
    cost, networks = (os.path.join(options.folder, name) for name in ("cost", "networks"))
    candidates = {name: lambda file, what=what: [cost, what, file] for name, what in COSTS.items()}
    candidates[NETWORKS] = lambda file: [networks, *FLAGS, "--analyses", "flows,networks", "-r", file]
    if options.nfstream:
        candidates["nfstream, networks /24"] = lambda file: [options.nfstream, "-c", NFSTREAM, file]
    print(f"{options.rounds} rounds\n\n| file | candidate | CPU s | million packets a CPU second | instructions a packet | more a packet "
          "| more a record |")
    print("|---|---|---|---|---|---|---|")
    for file in options.files:
        packets, records = counts(networks, file)
        times = rounds({name: command(file) for name, command in candidates.items()}, options.rounds)
        base = instructions(candidates[NONE](file))
        for name, command in candidates.items():
            own = fast(times[name])
            counted = instructions(command(file)) if not name.startswith("nfstream") else None
            more = "– | – | –"
            if counted and base:
                more = f"{counted / packets:.1f} | {(counted - base) / packets:.1f} | {(counted - base) / records:.1f}"
            print(f"| {os.path.basename(file)} | {name} | {own:.3f} | {packets / own / 1e6:.2f} | {more} |", flush=True)


main()
