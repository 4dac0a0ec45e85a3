#!/usr/bin/env python3
"""What a monitor must say of a capture, worked out from tshark's fields and nothing of ours.

Usage: examples/expected.py FILE.pcap [--threshold N] > FILE.expected.json

Definitions (the same as the report's):
  packets        every frame; ipv4, ipv6, non_ip by what the link layer carries
  fragments      IPv4 with MF or an offset; IPv6 with a fragment header
  octets         wire: original lengths; captured: bytes held; ip: IPv4 total length, IPv6 40 + payload
  conversations  distinct unordered pairs of (address, port), TCP and UDP apart, ports read from
                 unfragmented packets and first fragments
  failed attempt a TCP SYN (no ACK, RST or FIN) to a distinct (address, port) that never answers the
                 source with a SYN-ACK
  vertical       one source, one target, more than the threshold of ports with failed attempts
  horizontal     one source, one port, more than the threshold of targets with failed attempts

For plain Ethernet captures: of tunnelled packets it would mix the layers.
"""

import argparse
import collections
import csv
import ipaddress
import json
import subprocess

FIELDS = """frame.len frame.cap_len frame.protocols
ip.src ip.dst ip.len ip.proto ip.flags.mf ip.frag_offset
ipv6.src ipv6.dst ipv6.plen ipv6.fraghdr.offset
tcp.srcport tcp.dstport tcp.flags udp.srcport udp.dstport""".split()

FIN, SYN, RST, ACK = 1, 2, 4, 16


def rows(path):
    """One dict a frame; of a field that occurs twice (ICMP quotes) the first, outer one."""
    command = ["tshark", "-n", "-r", path, "-T", "fields", "-E", "separator=,", "-E", "occurrence=f"]
    command += ["-E", "quote=d", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
    for field in FIELDS:
        command += ["-e", field]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as tshark:
        for values in csv.reader(tshark.stdout):
            yield dict(zip(FIELDS, values))
    if tshark.returncode != 0:
        raise SystemExit(f"tshark failed on {path} (exit {tshark.returncode})")


def number(text):
    return int(text, 0) if text else 0


def transport(row):
    """'tcp' or 'udp' if that is what the outermost IP header carries and its ports are here."""
    layers = row["frame.protocols"].split(":")
    for layer in layers[1 + next(i for i, l in enumerate(layers) if l in ("ip", "ipv6")) :]:
        if layer in ("tcp", "udp"):
            return layer if row[f"{layer}.srcport"] else None
        if not layer.startswith("ipv6."):
            return None
    return None


def by_address(text):
    address = ipaddress.ip_address(text)
    return (address.version, int(address))


def expected(path, threshold):
    packets = collections.Counter()
    octets = collections.Counter()
    conversations = {"tcp": set(), "udp": set()}
    attempts, answered = set(), set()
    for row in rows(path):
        packets["received"] += 1
        octets["wire"] += number(row["frame.len"])
        octets["captured"] += number(row["frame.cap_len"])
        packets["truncated"] += number(row["frame.cap_len"]) < number(row["frame.len"])
        if row["ip.src"]:
            packets["ipv4"] += 1
            octets["ip"] += number(row["ip.len"])
            source, target = row["ip.src"], row["ip.dst"]
            # tshark 4 writes booleans as 0/1 or True/False
            fragment = row["ip.flags.mf"] in ("1", "True") or number(row["ip.frag_offset"]) > 0
        elif row["ipv6.src"]:
            packets["ipv6"] += 1
            octets["ip"] += 40 + number(row["ipv6.plen"])
            source, target = row["ipv6.src"], row["ipv6.dst"]
            fragment = row["ipv6.fraghdr.offset"] != ""
        else:
            packets["non_ip"] += 1
            continue
        packets["fragments"] += fragment
        kind = transport(row)
        if kind is None:
            continue
        sport, dport = int(row[f"{kind}.srcport"]), int(row[f"{kind}.dstport"])
        conversations[kind].add(frozenset([(source, sport), (target, dport)]))
        if kind == "tcp" and row["tcp.flags"]:
            flags = number(row["tcp.flags"]) & (FIN | SYN | RST | ACK)
            if flags == SYN:
                attempts.add((source, target, dport))
            elif flags == SYN | ACK:
                answered.add((target, source, sport))

    ports, targets = collections.Counter(), collections.Counter()
    for source, target, port in attempts - answered:
        ports[source, target] += 1
        targets[source, port] += 1
    vertical = [
        {"source": s, "target": t, "ports": n}
        for (s, t), n in sorted(ports.items(), key=lambda e: (by_address(e[0][0]), by_address(e[0][1])))
        if n > threshold
    ]
    horizontal = [
        {"source": s, "port": p, "targets": n}
        for (s, p), n in sorted(targets.items(), key=lambda e: (by_address(e[0][0]), e[0][1]))
        if n > threshold
    ]
    names = ("received", "ipv4", "ipv6", "non_ip", "fragments", "truncated")
    return {
        "packets": {name: packets[name] for name in names},
        "octets": {name: octets[name] for name in ("wire", "captured", "ip")},
        "conversations": {kind: len(pairs) for kind, pairs in conversations.items()},
        "scan_threshold": threshold,
        "scans": {"vertical": vertical, "horizontal": horizontal},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("capture")
    parser.add_argument("--threshold", type=int, default=20)
    arguments = parser.parse_args()
    print(json.dumps(expected(arguments.capture, arguments.threshold), indent=2))


if __name__ == "__main__":
    main()
