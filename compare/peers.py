#!/usr/bin/env python3
"""Compares flow records of ringtap with those of softflowd, pmacctd and nfpcapd over the same captures, record by record.

Usage: compare/peers.py [--only PEER,…] [--cases N] [--least PERCENT] PROGRAM FILE…

A record is of one direction: addresses, protocol and ports, first and last packet in milliseconds, packets, octets and TCP
flags. Two records are equal if all of these are. Each other record needs a reason of the list REASONS, whose condition
tests the packets of the record as tshark reads them; most reasons hold only if both programs have the same packets and
octets in all. Prints tables, and on stderr the records without a reason, and up to N of each reason. The exit code is 1 if
a record has no reason, or if less than --least percent of ringtap's records have an equal one, or one that differs in
octets of the frame alone; records of files and links that a peer does not read are not counted there. Needs tshark,
tcpdump, nfcapd and nfdump; peers that are not installed (Debian packages softflowd, pmacct, nfdump) are left out, with a
message.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

# Debian installs administrative programs here; nfdump prints local time.
os.environ["PATH"] += ":/usr/sbin:/sbin"
os.environ["TZ"] = "UTC"

TIME_LIMIT = 60  # seconds of one program
ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
WITH_PORTS = {TCP, UDP, 33, 132, 136}  # DCCP, SCTP, UDP-Lite
FIN, SYN, RST, ACK = 1, 2, 4, 16


class Record(NamedTuple):
    """Of one direction. ICMP has no ports."""

    source: str
    destination: str
    protocol: int
    ports: tuple
    first: int
    last: int
    packets: int
    octets: int
    flags: int


def record(source, destination, protocol, ports, *values, flags):
    ports = tuple(ports) if protocol in WITH_PORTS else (0, 0)
    return Record(source, destination, protocol, ports, *values, flags if protocol == TCP else 0)


# How records are made.


def milliseconds(text):
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


def run(command):
    """The output and the messages of a program."""
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIME_LIMIT, check=False)
    return done.stdout, done.stderr


def rows_of(folder):
    """What nfdump prints of the records in files of nfcapd or nfpcapd."""
    lines, errors = run(["nfdump", "-q", "-R", str(folder), "-o", "json"])
    if "rror" in errors:
        raise SystemExit(f"nfdump: {errors}")
    lines = lines.strip().removesuffix(",")
    return json.loads(f"[{lines}]") if lines.startswith("{") else []


def ends_of(row):
    return [row.get(f"{end}4_addr") or row[f"{end}6_addr"] for end in ("src", "dst")]


def flags_of(row):
    return sum(bit for bit, letter in zip((128, 64, 32, 16, 8, 4, 2, 1), row.get("tcp_flags", "")) if letter != ".")


def nfdump(folder):
    """The records in files of nfcapd or nfpcapd."""
    for row in rows_of(folder):
        ports = row.get("src_port", 0), row.get("dst_port", 0)
        times = milliseconds(row["first"]), milliseconds(row["last"])
        yield record(*ends_of(row), row["proto"], ports, *times, row["in_packets"], row["in_bytes"], flags=flags_of(row))


def queued(port):
    """The octets that wait at a UDP port, and the datagrams that it lost; None if it is closed."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(f":{port:04X}"):
            return int(words[4].split(":")[1], 16), int(words[-1])
    return None


def collected(command, read=nfdump):
    """What `read` makes of nfcapd's folder, and the messages of the program that `command` makes of a port."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        # Its buffer has room for all datagrams.
        own = ["nfcapd", "-b", "127.0.0.1", "-p", str(port), "-B", "8000000", "-t", "86400", "-w", folder]
        with subprocess.Popen(own, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as nfcapd:
            begin = time.monotonic()
            while queued(port) is None:
                if nfcapd.poll() is not None or time.monotonic() > begin + TIME_LIMIT:
                    raise SystemExit("nfcapd does not listen")
                time.sleep(0.01)
            try:
                messages = run(command(port))
                while queued(port)[0]:
                    time.sleep(0.01)
                lost = queued(port)[1]
            finally:
                nfcapd.terminate()
        if lost:
            raise SystemExit(f"nfcapd lost {lost} datagrams")
        return list(read(folder)), "".join(messages)


def softflowd(path):
    # -a: the times of the packets; -A milli: absolute ones, because those of NetFlow count from a whole second.
    flags = ["-a", "-d", "-c", "none", "-m", "4000000", "-v", "10", "-A", "milli"]
    return collected(lambda port: ["softflowd", "-r", path, *flags, "-n", f"127.0.0.1:{port}"])


def pmacctd(path):
    with tempfile.NamedTemporaryFile("w") as file:
        def command(port):
            lines = ["daemonize: false", "plugins: nfprobe", f"nfprobe_receiver: 127.0.0.1:{port}", "nfprobe_version: 9",
                     "nfprobe_maxflows: 4000000", "aggregate: src_host, dst_host, src_port, dst_port, proto, tcpflags"]
            file.write("".join(f"{line}\n" for line in lines))
            file.flush()
            return ["pmacctd", "-f", file.name, "-I", path]
        return collected(command)


def nfpcapd(path):
    with tempfile.TemporaryDirectory() as folder:
        messages = run(["nfpcapd", "-r", path, "-w", folder, "-t", "86400", "-e", "3600,3600"])
        return list(nfdump(folder)), "".join(messages)


# softflowd -r and pmacctd -I end all flows at the end of the file. nfpcapd takes no longer timeouts than an hour.
NEVER = ["--timeouts", "tcp.fin=36500d,tcp.rst=36500d", "--idle-timeout", "36500d", "--active-timeout", "0"]
HOUR = ["--timeouts", "tcp.fin=1h,tcp.rst=1h", "--idle-timeout", "1h", "--active-timeout", "1h"]


def directions(program, path):
    """ringtap's records as NetFlow v9 has them: one for each direction, with the times of the flow."""
    command = [program, "monitor", "-q", "-r", path, "--tunnels", "outer", *NEVER]
    return collected(lambda port: [*command, "--export", f"netflow9://127.0.0.1:{port}"])[0]


def uniflows(program, path):
    """ringtap's records with --uniflow: the times are those of the direction."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "flows.json")
        run([program, "monitor", "-q", "-r", path, *HOUR, "--uniflow", "--write", f"json:{file}"])
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    made = []
    for row in rows:
        ends = [row.get(f"{end}IPv4Address") or row[f"{end}IPv6Address"] for end in ("source", "destination")]
        ports = row.get("sourceTransportPort", 0), row.get("destinationTransportPort", 0)
        values = [row[name] for name in ("flowStartMilliseconds", "flowEndMilliseconds", "packetDeltaCount", "octetDeltaCount")]
        made.append(record(*ends, row["protocolIdentifier"], ports, *values, flags=row.get("tcpControlBits", 0)))
    return made


# What tshark reads.

FIELDS = ["frame.time_epoch", "frame.len", "frame.cap_len", "frame.protocols", "ip.src", "ip.dst", "ip.len", "ip.proto", "ip.flags.mf",
          "ip.frag_offset", "ip.hdr_len", "ipv6.src", "ipv6.dst", "ipv6.plen", "ipv6.nxt", "ipv6.fraghdr.nxt",
          "ipv6.fraghdr.offset", "tcp.srcport", "tcp.dstport", "udp.srcport", "udp.dstport", "tcp.flags", "tcp.hdr_len", "icmp.type",
          "icmp.code", "icmpv6.type", "icmpv6.code"]
# The octets of link headers, as far as a peer reads them that counts octets of frames; it counts labels of MPLS.
LINK = {"eth": 14, "vlan": 4, "sll": 16, "null": 4, "ppp": 4}


class Frame(NamedTuple):
    """A frame with its outermost IP header, if it has one."""

    number: int
    time: float
    link: tuple  # names of the headers up to it
    pairs: frozenset  # the addresses of all IP headers, by unordered pair
    ends: tuple  # source, destination
    protocol: int
    ports: tuple
    octets: int  # of the IP packet
    beyond: int  # octets of the frame behind its link header that are not of the IP packet
    is_fragment: bool
    is_later: bool  # a fragment, not the first one
    extension: bool  # a header of IPv6 before that of the protocol
    flags: int
    kind: tuple  # of ICMP: types and codes
    is_cut: bool  # within the header of TCP
    is_damaged: bool  # no header of IP, or a length that contradicts that of the frame


def frames(path):
    command = ["tshark", "-r", path, "-n", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o",
               "tcp.desegment_tcp_streams:FALSE", "-T", "fields", "-E", "aggregator=|"]
    lines, _ = run([*command, *(word for name in FIELDS for word in ("-e", name))])
    return [frame(number, dict(zip(FIELDS, line.split("\t")))) for number, line in enumerate(lines.splitlines())]


def frame(number, fields):
    every = {name: text.split("|") if text else [] for name, text in fields.items()}
    value = {name: values[0] if values else "" for name, values in every.items()}
    names = value["frame.protocols"].split(":")
    version = next((name for name in names if name in ("ip", "ipv6")), "")
    at = names.index(version) if version else len(names)
    is_v4 = version == "ip"
    octets = int(value["ip.len"] or 0) if is_v4 else 40 + int(value["ipv6.plen"] or 0)
    following = int((value["ip.proto"] if is_v4 else value["ipv6.nxt"]) or 0)
    behind = next((name for name in names[at + 1 :] if not name.startswith("ipv6.")), "")
    has_ports = behind in ("tcp", "udp") and value[f"{behind}.srcport"]
    sources, destinations = (every[f"ip.{end}"] + every[f"ipv6.{end}"] for end in ("src", "dst"))
    link = sum(LINK.get(name, 0) for name in names[:at])
    beyond = int(value["frame.len"]) - link - octets
    headers = link + int(value["ip.hdr_len"] or 40) + int(value["tcp.hdr_len"] or 0)
    return Frame(
        number,
        float(value["frame.time_epoch"] or 0),
        tuple(names[: at + 1]),
        frozenset(map(frozenset, zip(sources, destinations))),
        (value[f"{version}.src"], value[f"{version}.dst"]) if version else ("", ""),
        {"tcp": TCP, "udp": UDP, "icmp": ICMP, "icmpv6": ICMP6}.get(behind, following),
        tuple(int(value[f"{behind}.{end}port"]) for end in ("src", "dst")) if has_ports else (0, 0),
        octets,
        beyond,
        value["ip.flags.mf"] in ("1", "True") or value["ip.frag_offset"] not in ("", "0") or value["ipv6.fraghdr.nxt"] != "",
        value["ip.frag_offset"] not in ("", "0") or value["ipv6.fraghdr.offset"] not in ("", "0"),
        not is_v4 and following in (0, 43, 44, 51, 60, 135),
        int(value["tcp.flags"] or "0", 16),
        (*every["icmp.type"], *every["icmp.code"], *every["icmpv6.type"], *every["icmpv6.code"]),
        int(value["frame.cap_len"]) < headers,
        version == "" or not value[f"{version}.src"] or not 0 <= beyond <= 64,
    )


# Reasons.


@dataclass
class Group:
    """All records and frames of a pair of addresses, or of a protocol or of ports of it. Of both directions."""

    peer: str
    is_set_back: bool  # the clock, within the capture
    is_damaged: bool  # one of the capture's headers of IP
    ours: list = field(default_factory=list)
    theirs: list = field(default_factory=list)
    frames: list = field(default_factory=list)

    def is_same(self):
        """Whether both sides have the same packets and octets, in each direction."""
        sums = Counter()
        for side, sign in ((self.ours, 1), (self.theirs, -1)):
            for r in side:
                sums[r.source, r.destination, "packets"] += sign * r.packets
                sums[r.source, r.destination, "octets"] += sign * r.octets
        if self.peer == "softflowd":
            for f in self.frames:
                sums[(*f.ends, "octets")] += f.beyond
        return not any(sums.values())

    def missing(self):
        """Packets that the peer has not."""
        return sum(r.packets for r in self.ours) - sum(r.packets for r in self.theirs)


def back(times):
    """By how much time goes back."""
    return max((before - now for before, now in zip(times, times[1:])), default=0)


def new_connection(group):
    ended = False
    for f in group.frames:
        if ended and f.flags & (SYN | ACK) == SYN:
            return True
        ended |= f.flags & (FIN | RST) != 0
    return False


def octets_of_frames(group):
    """All values but the octets are equal."""
    ours, theirs = (Counter(r._replace(octets=0) for r in side) for side in (group.ours, group.theirs))
    return ours == theirs and group.is_same()


# What is equal in all records of a group: addresses, protocol and ports; addresses and protocol; addresses.
def by_ports(ends, protocol, ports):
    return frozenset(zip(ends, ports)) | {protocol, frozenset(ends)}


def by_protocol(ends, protocol, _):
    return frozenset(ends), protocol


def by_pair(ends, _, __):
    return frozenset(ends)


def a_packet_each(group):
    kinds = {ICMP, ICMP6} & {r.protocol for r in group.theirs} or any(53 in r.ports for r in group.theirs)
    return bool(kinds) and group.is_same() and all(r.packets == 1 for r in group.theirs)


ALL = ("softflowd", "pmacctd", "nfpcapd")
BOTH, SOFTFLOWD, NFPCAPD = ALL[:2], ALL[:1], ALL[2:]

FILE = "the file is not read: its link type, several link types, or a cut end"
HEADERS = "the link header, or IPv6 behind it, is not read"
FRAMES = "octets of the frame behind its link header, with padding and labels"

# The reason, the peers that it is for, what its groups have in common, and its condition. The first one that holds counts.
# FILE and HEADERS precede them.
REASONS = [
    (FRAMES, SOFTFLOWD, by_ports, octets_of_frames),
    ("a record for each packet of ICMP, and of UDP port 53", NFPCAPD, by_ports, a_packet_each),
    ("flows of ICMP by direction, type and code", BOTH, by_ports,
     lambda g: g.is_same() and len({(f.ends, f.kind) for f in g.frames if f.kind}) > 1),
    ("times in the order of packets, whose times are not in order", ALL, by_ports,
     lambda g: g.is_same() and back([f.time for f in g.frames]) > 0),
    ("a SYN after FIN or RST begins a record in ringtap", ALL, by_ports, lambda g: g.is_same() and new_connection(g)),
    ("all flows end in ringtap when the clock is set back", ALL, by_ports, lambda g: g.is_same() and g.is_set_back),
    ("labels of MPLS in the key", SOFTFLOWD, by_ports, lambda g: g.is_same() and any("mpls" in f.link for f in g.frames)),
    ("one flow for each direction between equal addresses", BOTH, by_ports,
     lambda g: g.is_same() and len({*g.ours[0][:2]}) == 1),
    ("timeouts tested now and then", NFPCAPD, by_ports,
     lambda g: g.is_same() and g.frames[-1].time - g.frames[0].time >= 3600),
    ("no ports of SCTP", ALL, by_protocol, lambda g: g.is_same() and g.ours[0].protocol == 132),
    ("no ports, or another protocol, for later fragments", ALL, by_pair,
     lambda g: g.is_same() and any(f.is_later for f in g.frames)),
    ("headers of IPv6 before that of the protocol are not read", ALL, by_pair,
     lambda g: g.is_same() and any(f.extension for f in g.frames)),
    ("fragments of a packet are joined, or left out if some are missing", ("pmacctd", "nfpcapd"), by_pair,
     lambda g: 0 < sum(f.is_fragment for f in g.frames) >= g.missing() >= 0),
    ("other tunnels are opened", NFPCAPD, by_pair,
     lambda g: any(len(f.pairs) > 1 or f.protocol in (4, 41, 47) for f in g.frames)),
    ("packets cut within the header of TCP are left out", NFPCAPD, by_ports,
     lambda g: 0 < g.missing() <= sum(f.is_cut for f in g.frames)),
    ("damaged headers", ALL, by_pair,
     lambda g: any(f.is_damaged for f in g.frames) or g.is_damaged and not g.frames),
]


def groups(empty, reason, records, ours, theirs, read):
    """The groups of `records`, which begin as `empty`, with all other records of their keys, and frames."""
    made = {reason(r[:2], r.protocol, r.ports): Group(*empty) for r in records}
    for side, name in ((ours, "ours"), (theirs, "theirs")):
        for r in side:
            group = made.get(reason(r[:2], r.protocol, r.ports))
            if group:
                getattr(group, name).append(r)
    for f in read:
        keys = {reason(f.ends, f.protocol, f.ports)} | (f.pairs if reason is by_pair else set())
        for group in filter(None, map(made.get, keys)):
            group.frames.append(f)
    return made


def explain(peer, path, ours, theirs, messages):
    """The number of equal records, and a reason and `ours` or `theirs` for each other record; None without a reason."""
    own, other = Counter(ours), Counter(theirs)
    rest = {"ours": list((own - other).elements()), "theirs": list((other - own).elements())}
    equal = sum((own & other).values())
    found = []

    def take(name, condition):
        for side, records in rest.items():
            found.extend((name, side, r) for r in records if condition(r))
            rest[side] = [r for r in records if not condition(r)]

    if rest["ours"] or rest["theirs"]:
        is_readable = subprocess.run(["tcpdump", "-r", path, "-w", os.devnull], capture_output=True, check=False).returncode == 0
        if not theirs and ("unsupported" in messages.lower() or not is_readable):
            take(FILE, lambda _: True)
    if rest["ours"] or rest["theirs"]:
        read = frames(path)
        pairs = {frozenset(r[:2]) for r in theirs}
        # Link headers of frames of which the peer has no record at all.
        by_link = defaultdict(set)
        for f in read:
            by_link[f.link] |= f.pairs
        unread = set().union(*(ends for ends in by_link.values() if not ends & pairs))
        take(HEADERS, lambda r: frozenset(r[:2]) in unread)
        is_set_back, is_damaged = back([f.time for f in read]) > 60, any(f.is_damaged for f in read)
        for name, peers, key, condition in REASONS:
            if peer in peers:
                made = groups((peer, is_set_back, is_damaged), key, rest["ours"] + rest["theirs"], ours, theirs, read)
                true = {at for at, group in made.items() if condition(group)}
                take(name, lambda r: key(r[:2], r.protocol, r.ports) in true)
    for side in rest:
        found += [(None, side, r) for r in rest[side]]
    return equal, found


# The comparison.

# The function for the records of a peer, and that for ringtap's.
PEERS = {"softflowd": (softflowd, directions), "pmacctd": (pmacctd, directions), "nfpcapd": (nfpcapd, uniflows)}


def compare(program, path, peers):
    """By peer: the numbers of records of ringtap and of the peer, the equal ones, and the others with their reasons."""
    made = {own: own(program, path) for own in {PEERS[peer][1] for peer in peers}}
    result = {}
    for peer in peers:
        theirs, messages = PEERS[peer][0](path)
        ours = made[PEERS[peer][1]]
        result[peer] = len(ours), len(theirs), *explain(peer, path, ours, theirs, messages)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="ringtap")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--only", default=",".join(PEERS), help="these peers")
    parser.add_argument("--cases", type=int, default=0, help="print so many records of each reason")
    parser.add_argument("--least", type=float, default=0, help="percent of ringtap's records that are equal, at least")
    arguments = parser.parse_args()
    peers = arguments.only.split(",")
    for peer in [peer for peer in peers if not shutil.which(peer)]:
        print(f"SKIPPED: {peer} is not installed", file=sys.stderr)
        peers.remove(peer)
    # pmacctd sleeps most of the time.
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda path: compare(arguments.program, path, peers), arguments.files))
    print("| | records of ringtap | read by the peer | equal | equal but for octets of the frame |\n|---|---|---|---|---|")
    fails, rows = False, []
    for peer in peers:
        ours, theirs, equal = (sum(result[peer][at] for result in results) for at in range(3))
        rest = Counter((name, side) for result in results for name, side, _ in result[peer][3])
        read = ours - rest[FILE, "ours"] - rest[HEADERS, "ours"]
        share, framed = (100 * number / max(read, 1) for number in (equal, rest[FRAMES, "ours"]))
        print(f"| {peer} | {ours:,} | {read:,} | {equal:,}: {share:.1f} % | {rest[FRAMES, 'ours']:,}: {framed:.1f} % |")
        names = sorted({name for name, _ in rest}, key=lambda name: (-rest[name, "ours"], str(name)))
        rows += [f"| {peer} | {name or 'NO REASON'} | {rest[name, 'ours']:,} | {rest[name, 'theirs']:,} |" for name in names]
        fails |= None in names or share + framed < arguments.least
        for name in names:
            cases = [(path, side, r) for path, result in zip(arguments.files, results)
                     for found, side, r in result[peer][3] if found == name]
            for path, side, r in cases if name is None else cases[: arguments.cases]:
                print(f"{peer}: {name or 'NO REASON'}: {path}: {side} {tuple(r)}", file=sys.stderr)
    print("\n| | reason | records of ringtap | of the peer |\n|---|---|---|---|", *rows, sep="\n")
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
