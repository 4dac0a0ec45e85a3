"""Answers of `ringtap query` from records in JSON lines, without SQL.

Arguments: the records, the events. Prints an object: each question with its rows, as lists."""

import datetime
import ipaddress
import json
import re
import statistics
import sys
from collections import Counter, defaultdict

flows = [json.loads(line) for line in open(sys.argv[1])]
events = [json.loads(line) for line in open(sys.argv[2])]


def address(row, end):
    return row.get(f"{end}IPv4Address") or row.get(f"{end}IPv6Address")


for row in flows:
    row["src"], row["dst"] = address(row, "source"), address(row, "destination")
    row["out"], row["in"] = row["octetDeltaCount"], row.get("reverseOctetDeltaCount", 0)
    row["pout"], row["pin"] = row["packetDeltaCount"], row.get("reversePacketDeltaCount", 0)
    row["flow"] = int(row.get("flowPart", 0) == 0)


def top(keys, by=0, where=lambda row: True, limit=10):
    sums = defaultdict(lambda: [0, 0, 0])
    for row in filter(where, flows):
        for key, octets, packets in keys(row):
            for at, amount in enumerate((octets, packets, row["flow"])):
                sums[key][at] += amount
    rows = sorted(sums.items(), key=lambda item: (-item[1][by], item[0]))
    return [[*key, *amounts] for key, amounts in rows[:limit]]


def both(row):
    return row["out"] + row["in"], row["pout"] + row["pin"]


def pairs(row):
    return [((min(row["src"], row["dst"]), max(row["src"], row["dst"])), *both(row))]


def ports(row):
    source, destination = row.get("sourceTransportPort", 0), row.get("destinationTransportPort", 0)
    # The first packet may be an answer, unless the begin of the connection was seen.
    rank = [sum(port >= first for first in (1024, 32768)) if port else 3 for port in (source, destination)]
    is_source = row["biflowDirection"] == 0 and rank[0] < rank[1]
    port = source if is_source else destination
    return [((row["protocolIdentifier"], port), *both(row))] if port else []


def sources(row):
    if row["pout"]:
        yield (row["src"],), row["out"], row["pout"]
    if row["pin"]:
        yield (row["dst"],), row["in"], row["pin"]


def destinations(row):
    if row["pout"]:
        yield (row["dst"],), row["out"], row["pout"]
    if row["pin"]:
        yield (row["src"],), row["in"], row["pin"]


def applications(row):
    return [((row.get("application", "unknown"),), *both(row))]


def protocols(row):
    return [((row["protocolIdentifier"],), *both(row))]


def first_names(row):
    lists = [row.get("tlsServerName"), *row.get("httpHost", [])[:1], *row.get("dnsQueryName", [])[:1]]
    return [((name,), *both(row)) for name in [name for name in lists if name][:1]]


def sides(key, where=lambda row: True, limit=10):
    """Octets, those sent and received, packets and flows of keys at both ends."""
    sums = defaultdict(lambda: [0] * 5)
    for row in filter(where, flows):
        ends = [(key(row, "source"), row["out"], row["in"]), (key(row, "destination"), row["in"], row["out"])]
        for at, (name, sent, received) in enumerate(ends):
            if name and not (at and name == ends[0][0]):
                amounts = (sent + received, sent, received, both(row)[1], row["flow"])
                sums[name] = [own + more for own, more in zip(sums[name], amounts)]
    return [[name, *own] for name, own in sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))[:limit]]


def within(text):
    network = ipaddress.ip_network(text)
    return lambda row: any(ipaddress.ip_address(row[end]) in network for end in ("src", "dst"))


def names(row):
    found = [row.get("tlsServerName")] + row.get("httpHost", []) + row.get("dnsQueryName", [])
    return [name for name in found if name]


def port(number):
    return lambda row: number in (row.get("sourceTransportPort"), row.get("destinationTransportPort"))


FILTERS = {
    "tcp port 443": lambda row: row["protocolIdentifier"] == 6 and port(443)(row),
    "net 10.0.0.0/8": within("10.0.0.0/8"),
    "net 192.168.0.0/19": within("192.168.0.0/19"),
    "net 2001:db8::/33": within("2001:db8::/33"),
    "net fe80::/10": within("fe80::/10"),
    "not udp": lambda row: row["protocolIdentifier"] != 17,
    "octets > 2k and packets < 20": lambda row: sum(both(row)[:1]) > 2000 and both(row)[1] < 20,
    'name ~ "exam|goog"': lambda row: any(re.search("exam|goog", name, re.I) for name in names(row)),
    "not (name ~ a)": lambda row: not any(re.search("a", name, re.I) for name in names(row)),
    "duration >= 500ms": lambda row: row["flowEndMilliseconds"] - row["flowStartMilliseconds"] >= 500,
    "minimumTTL < 65": lambda row: row.get("minimumTTL", 99) < 65,
    "status 200": lambda row: 200 in row.get("httpStatus", []),
    "app = dns": lambda row: row.get("application", "").lower() == "dns",
    "failed": lambda row: row["protocolIdentifier"] == 6 and row.get("tcpControlBits", 0) & 2 and not row["pin"],
    "src port 53 or dst portrange 1-1023": lambda row: row.get("sourceTransportPort") == 53
    or 1 <= row.get("destinationTransportPort", 0) <= 1023,
}

answers = {
    "top 10 pairs by packets": top(pairs, 1),
    "top 10 ports": top(ports),
    "top 10 sources": top(sources),
    "top 10 applications by flows": top(applications, 2),
    "top 10 destinations": top(destinations),
    "top 10 protocols by packets": top(protocols, 1),
    "top 10 names": top(first_names),
    "top 10 networks": sides(lambda row, end: row.get(f"{end}Network")),
    "top 10 hosts": sides(address),
}
periods = sorted({row["flowEndMilliseconds"] // 5000 for row in flows})
answers["top 2 applications every 5s"] = [
    own for at in periods for own in top(applications, 0, lambda row: row["flowEndMilliseconds"] // 5000 == at, 2)
]
for text, where in FILTERS.items():
    answers[f"top 5 pairs where {text}"] = top(pairs, 0, where, 5)

if answers["top 10 hosts"]:
    host = answers["top 10 hosts"][0][0]
    periods = defaultdict(lambda: [0, 0, 0, 0, 0, set()])
    for row in flows:
        if host in (row["src"], row["dst"]):
            own, is_source = periods[row["flowEndMilliseconds"] // 5000], row["src"] == host
            sent, received = (row["out"], row["in"]) if is_source else (row["in"], row["out"])
            for at, amount in enumerate((*both(row)[:1], sent, received, both(row)[1], row["flow"])):
                own[at] += amount
            own[5].add(row["dst"] if is_source else row["src"])
    answers[f"timeline of {host} every 5s"] = [[*own[:5], len(own[5])] for _, own in sorted(periods.items())]

answered = {row["flowId"] for row in flows if row["pin"]}
failed = defaultdict(list)
for row in filter(FILTERS["failed"], flows):
    if row["flow"] and row["flowId"] not in answered:
        failed[row["dst"], row["destinationTransportPort"]].append(row["src"])
failed = [[*key, len(hosts), len(set(hosts)), min(hosts)] for key, hosts in failed.items()]
answers["failed"] = sorted(failed, key=lambda row: (-row[2], *row[:2]))[:10]

asked, ends = Counter(), []
for event in events:
    if event["event"] == "dns" and event["dnsKind"] == "query":
        for name in event.get("dnsQueryName", []):
            asked[address(event, "source"), name.lower()] += 1
            ends.append(name.lower().rsplit(".", 1)[-1])
end = next(filter(str.isalpha, ends), "com")
asked = {key: count for key, count in asked.items() if f".{key[1]}".endswith(f".{end}")}
answers[f"who asked {end}"] = [[*key, count] for key, count in sorted(asked.items(), key=lambda item: (-item[1], item[0]))[:10]]

long = defaultdict(lambda: [2**63, 0, 0, 0])
for row in flows:
    key = (row["protocolIdentifier"], row["src"], row.get("sourceTransportPort"), row["dst"], row.get("destinationTransportPort"), row["flowId"])
    own = long[key]
    own[0], own[1] = min(own[0], row["flowStartMilliseconds"]), max(own[1], row["flowEndMilliseconds"])
    own[2], own[3] = own[2] + both(row)[0], own[3] + both(row)[1]
answers["long"] = sorted([(own[1] - own[0]) / 1000, own[2], own[3]] for own in long.values())[::-1][:10]

servers = defaultdict(list)
for row in flows:
    if row.get("responseCount") or "tcpServerHandshakeRttMicroseconds" in row:
        servers[row["dst"], row.get("destinationTransportPort"), row.get("application")].append(row)
answers["servers 1000"] = []
for key, rows in servers.items():
    timed = [(row["responseMicroseconds"], row["responseCount"]) for row in rows if row.get("responseCount")]
    number = sum(count for _, count in timed)
    mean = round(sum(us * count for us, count in timed) / number) if timed else None
    rtts = [row["tcpServerHandshakeRttMicroseconds"] for row in rows if "tcpServerHandshakeRttMicroseconds" in row]
    rtt = [round(statistics.median(rtts)), max(rtts)] if rtts else [None, None]
    answers["servers 1000"].append([*key, number, mean, max((us for us, _ in timed), default=None), *rtt])

named = Counter()
for event in events:
    by, is_server = event["event"], address(event, "destination") == address(events[0], "destination")
    if address(events[0], "destination") in event.get("dnsAnswers", []):
        named.update((name.lower(), "dns") for name in event.get("dnsQueryName", []))
    if is_server and event.get("tlsServerName"):
        named[event["tlsServerName"].lower(), by] += 1
    if is_server:
        named.update((name.lower(), by) for name in event.get("httpHost", []))
if events:
    rows = sorted(named.items(), key=lambda item: (-item[1], item[0]))[:10]
    answers[f"names of {address(events[0], 'destination')}"] = [[*key, count] for key, count in rows]

print(json.dumps(answers))
