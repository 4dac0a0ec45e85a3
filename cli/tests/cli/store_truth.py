"""Octets and packets by minute from a store, and from the packets themselves, read by tshark.

Arguments: the capture, the store, its probe. Prints a JSON object: `seconds` that the capture spans, `packets`, and
`wrong`, the sums that differ (at most ten), by table: hosts, pairs, ports. Ports are left out if there are fragments, whose
ports tshark does not know."""

import glob
import ipaddress
import json
import subprocess
import sys
from collections import Counter

import duckdb

capture, store, probe = sys.argv[1:]
MINUTE = 60_000
FIELDS = ["frame.time_epoch", "ip.src", "ip.dst", "ip.len", "ip.proto", "ipv6.src", "ipv6.dst", "ipv6.plen",
          "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "ip.flags.mf", "ip.frag_offset",
          "ipv6.fraghdr.nxt", "frame.protocols"]


def address(text):
    return str(ipaddress.ip_address(text))


def packets():
    """Time in ms, source, destination, octets, protocol, ports, whether it is a fragment."""
    command = ["tshark", "-r", capture, "-n", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE",
               "-o", "tcp.desegment_tcp_streams:FALSE", "-T", "fields", "-E", "occurrence=f"]
    for field in FIELDS:
        command += ["-e", field]
    out = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for line in out.splitlines():
        value = dict(zip(FIELDS, line.split("\t")))
        # Some blocks of pcapng have no time.
        seconds, _, fraction = (value["frame.time_epoch"] or "0").partition(".")
        ms = int(seconds) * 1000 + int((fraction + "000")[:3])
        is_v4 = value["ip.src"] != ""
        if is_v4 and value["ip.len"]:
            ends, octets = (value["ip.src"], value["ip.dst"]), int(value["ip.len"])
        elif value["ipv6.src"] and value["ipv6.plen"]:
            ends, octets = (value["ipv6.src"], value["ipv6.dst"]), 40 + int(value["ipv6.plen"])
        else:
            continue
        # The header behind the outermost IP header: ICMP has ports of other packets in it.
        names = value["frame.protocols"].split(":")
        names = names[min(names.index(name) for name in ("ip", "ipv6") if name in names) + 1:]
        name = next((name for name in names if not name.startswith("ipv6.")), "")
        protocol = {"tcp": 6, "udp": 17}.get(name, 0)
        ports = [value[f"{name}.{end}"] for end in ("srcport", "dstport")] if protocol else []
        fragment = value["ip.flags.mf"] in ("1", "True") or value["ip.frag_offset"] not in ("", "0") \
            or value["ipv6.fraghdr.nxt"] != ""
        yield ms, address(ends[0]), address(ends[1]), octets, protocol, [int(port) for port in ports if port], fragment


def add(tables, ms, source, destination, octets, packets, protocol, ports):
    """Adds what one end sent to the other."""
    minute = ms // MINUTE
    hosts, pairs, numbers = tables
    for what, amount in (("octets", octets), ("packets", packets)):
        hosts[minute, source, what] += amount
        pairs[minute, min(source, destination), max(source, destination), what] += amount
        for port in set(ports):
            numbers[minute, protocol, port, what] += amount


truth, stored = ([Counter() for _ in range(3)] for _ in range(2))
times, count, has_fragments = [], 0, False
for ms, source, destination, octets, protocol, ports, fragment in packets():
    times.append(ms)
    count += 1
    has_fragments |= fragment
    add(truth, ms, source, destination, octets, 1, protocol, ports)

files = glob.glob(f"{store}/flows/*/*/*/*-{probe}*.parquet")
if files:
    rows = duckdb.sql(f"""select epoch_ms(flowEndMilliseconds), sourceIPAddress, destinationIPAddress, octetDeltaCount,
        packetDeltaCount, reverseOctetDeltaCount, reversePacketDeltaCount, protocolIdentifier, sourceTransportPort,
        destinationTransportPort from read_parquet({files!r})""").fetchall()
    for ms, source, destination, octets, packets_, back, packets_back, protocol, *ports in rows:
        ports = [port for port in ports if port is not None] if protocol in (6, 17) else []
        ends = address(source), address(destination)
        for (one, other), amount, number in ((ends, octets, packets_), (ends[::-1], back, packets_back)):
            if number:
                add(stored, ms, one, other, amount, number, protocol, ports)

wrong = []
for name, own, found in list(zip(("hosts", "pairs", "ports"), truth, stored))[:2 if has_fragments else 3]:
    for key in sorted(set(own) | set(found), key=str):
        if own[key] != found[key]:
            wrong.append([name, list(key), own[key], found[key]])
print(json.dumps({
    "seconds": (max(times) - min(times)) / 1000 if times else 0,
    "packets": count,
    "wrong": wrong[:10],
}))
