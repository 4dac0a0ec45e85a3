"""Octets and packets by minute from a store, and from the packets themselves, read by tshark; and by application, from
the records of a run without parts.

Arguments: the capture, the store, its probe, and the pattern of the JSON files of the run without parts. Prints a JSON
object: `seconds` that the capture spans, `packets`, `labels`, the number of applications, and `wrong`, the sums that differ
(at most ten), by table: hosts, pairs, ports, labels, minutes. All parts of a flow count for its last label. `labels` are sums
over the capture; `minutes` by application, of packets whose addresses, protocol and ports are those of one label alone.
Ports and minutes are left out if there are fragments, whose ports tshark does not know."""

import glob
import ipaddress
import json
import subprocess
import sys
from collections import Counter, defaultdict

import duckdb

capture, store, probe, records = sys.argv[1:]
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


def key(one, other, protocol, ports):
    """Of both directions of a flow. `ports` are in the order of the addresses."""
    ends = zip((one, other), list(ports) + [None, None]) if protocol in (6, 17) else ((one, 0), (other, 0))
    return protocol if protocol in (6, 17) else 0, *sorted(ends, key=str)


def whole_flows():
    """The labels by key, and the sums by label, of records without parts."""
    labels, sums = defaultdict(set), Counter()
    for path in glob.glob(records):
        for line in open(path, encoding="utf-8"):
            record = json.loads(line)
            ends = [record.get(f"{end}IPv4Address", record.get(f"{end}IPv6Address")) for end in ("source", "destination")]
            ports = [record.get(f"{end}TransportPort") for end in ("source", "destination")]
            label = record.get("application")
            labels[key(*map(address, ends), record["protocolIdentifier"], ports)].add(label)
            for what, field in (("octets", "OctetDeltaCount"), ("packets", "PacketDeltaCount")):
                sums[label, what] += record[field[0].lower() + field[1:]] + record.get("reverse" + field, 0)
    return {at: found.pop() for at, found in labels.items() if len(found) == 1}, sums


truth, stored = ([Counter() for _ in range(3)] for _ in range(2))
label_of, by_label = whole_flows()
minutes, stored_minutes, stored_labels = Counter(), Counter(), Counter()
times, count, has_fragments = [], 0, False
for ms, source, destination, octets, protocol, ports, fragment in packets():
    times.append(ms)
    count += 1
    has_fragments |= fragment
    add(truth, ms, source, destination, octets, 1, protocol, ports)
    at = key(source, destination, protocol, ports)
    if at in label_of:
        for what, amount in (("octets", octets), ("packets", 1)):
            minutes[ms // MINUTE, label_of[at], what] += amount

files = glob.glob(f"{store}/flows/*/*/*/*-{probe}*.parquet")
if files:
    rows = duckdb.sql(f"""select epoch_ms(flowEndMilliseconds), sourceIPAddress, destinationIPAddress, octetDeltaCount,
        packetDeltaCount, reverseOctetDeltaCount, reversePacketDeltaCount, protocolIdentifier, sourceTransportPort,
        destinationTransportPort, flowId, flowPart, application from read_parquet({files!r})""").fetchall()
    last = {}
    for *_, flow, part, label in rows:
        if label is not None and last.get(flow, (-1,))[0] < part:
            last[flow] = part, label
    for ms, source, destination, octets, packets_, back, packets_back, protocol, *ports, flow, part, label in rows:
        label = last.get(flow, (0, None))[1]
        at = key(address(source), address(destination), protocol, ports)
        for what, amount in (("octets", octets + back), ("packets", packets_ + packets_back)):
            stored_labels[label, what] += amount
            if at in label_of:
                stored_minutes[ms // MINUTE, label, what] += amount
        ports = [port for port in ports if port is not None] if protocol in (6, 17) else []
        ends = address(source), address(destination)
        for (one, other), amount, number in ((ends, octets, packets_), (ends[::-1], back, packets_back)):
            if number:
                add(stored, ms, one, other, amount, number, protocol, ports)

wrong = []
tables = [("labels", by_label, stored_labels), *zip(("hosts", "pairs"), truth, stored)]
if not has_fragments:
    tables += [("ports", truth[2], stored[2]), ("minutes", minutes, stored_minutes)]
for name, own, found in tables:
    for key in sorted(set(own) | set(found), key=str):
        if own[key] != found[key]:
            wrong.append([name, list(key), own[key], found[key]])
print(json.dumps({
    "seconds": (max(times) - min(times)) / 1000 if times else 0,
    "packets": count,
    "labels": len({label for label, _ in by_label if label is not None}),
    "wrong": wrong[:10],
}))
