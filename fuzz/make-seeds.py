#!/usr/bin/env python3
"""Writes the first inputs of the fuzz targets, built here byte by byte from the formats' documents.

Usage: fuzz/make-seeds.py OUTPUT    (makes a folder in OUTPUT for each target)

One frame of every link layer and of every way that leads from it to a transport header, then small capture files
made of those frames: each byte order, each resolution of time, each block, whole and cut short.
"""

import hashlib
import struct
import sys
from pathlib import Path

MAC = bytes.fromhex("02000a140001 02000a140002".replace(" ", ""))


def tcp(source=40000, target=80, flags=2, options=b"", payload=b""):
    words = 5 + len(options) // 4
    return struct.pack("!HHIIBBHHH", source, target, 1, 0, words << 4, flags, 1024, 0, 0) + options + payload


def udp(source=40000, target=53, payload=b"query"):
    return struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload


def icmp(kind=8, code=0, payload=b"\0\1\0\1"):
    return struct.pack("!BBH", kind, code, 0) + payload


def ipv4(payload, protocol, options=b"", flags=0, offset=0, total=None):
    words = 5 + len(options) // 4
    length = words * 4 + len(payload) if total is None else total
    head = struct.pack("!BBHHHBBH", 0x40 | words, 0, length, 7, flags << 13 | offset, 64, protocol, 0)
    return head + bytes([10, 20, 0, 1, 10, 20, 0, 2]) + options + payload


def ipv6(payload, following, length=None):
    head = struct.pack("!IHBB", 6 << 28, len(payload) if length is None else length, following, 64)
    return head + bytes.fromhex("fd20" + "00" * 13 + "01" + "fd20" + "00" * 13 + "02") + payload


def extension(following, payload, words=0):
    return bytes([following, words]) + bytes([1, 4 + 8 * words]) + bytes(4 + 8 * words) + payload


def fragment6(following, offset, more, payload):
    return struct.pack("!BBHI", following, 0, offset << 3 | more, 99) + payload


def ethernet(kind, payload):
    return MAC + struct.pack("!H", kind) + payload


def networks():
    """(EtherType, packet): what a link layer can carry."""
    syn = tcp(options=bytes([2, 4, 5, 180]))
    yield 0x0800, ipv4(syn, 6)
    yield 0x0800, ipv4(tcp(flags=0x18, payload=b"GET / HTTP/1.0\r\n\r\n"), 6, options=bytes([1, 1, 1, 0]))
    yield 0x0800, ipv4(udp(), 17)
    yield 0x0800, ipv4(icmp(), 1)
    yield 0x0800, ipv4(icmp(3, 3, bytes(4) + ipv4(udp(), 17)), 1)
    yield 0x0800, ipv4(struct.pack("!HHII", 5000, 80, 1, 0), 132)  # SCTP
    yield 0x0800, ipv4(struct.pack("!HHBBHI", 5001, 5002, 4, 0, 0, 1), 33)  # DCCP
    yield 0x0800, ipv4(ipv4(syn, 6), 4)  # IP in IP: the outermost header counts
    yield 0x0800, ipv4(ipv6(syn, 6), 41)
    yield 0x0800, ipv4(udp(payload=bytes(24)), 17, flags=1)
    yield 0x0800, ipv4(bytes(16), 17, offset=4)
    yield 0x0800, ipv4(syn, 6, total=0)  # a segment left to the card
    yield 0x0800, ipv4(syn, 6, total=65535)
    yield 0x0800, ipv4(syn, 6)[:30]
    yield 0x86DD, ipv6(syn, 6)
    yield 0x86DD, ipv6(udp(), 17)
    yield 0x86DD, ipv6(icmp(128), 58)
    yield 0x86DD, ipv6(extension(43, extension(60, extension(6, syn)), 1), 0)
    yield 0x86DD, ipv6(fragment6(17, 0, 1, udp(payload=bytes(24))), 44)
    yield 0x86DD, ipv6(fragment6(17, 4, 0, bytes(16)), 44)
    yield 0x86DD, ipv6(fragment6(6, 0, 0, syn), 44)  # atomic
    yield 0x86DD, ipv6(struct.pack("!BBHII", 6, 4, 0, 1, 1) + bytes(12) + syn, 51)  # AH
    yield 0x86DD, ipv6(bytes(16), 50)  # ESP
    yield 0x86DD, ipv6(b"", 59)
    yield 0x86DD, ipv6(extension(17, bytes([0xC2, 4]) + struct.pack("!I", 70000) + udp()), 0, length=0)  # jumbogram
    yield 0x86DD, ipv6(syn, 6)[:44]
    yield 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + bytes(20)


def frames():
    """(link type, frame)."""
    for kind, packet in networks():
        yield 1, ethernet(kind, packet)
    four, six = ipv4(tcp(), 6), ipv6(udp(), 17)
    for kind, packet in ((0x0800, four), (0x86DD, six)):
        inner = struct.pack("!H", kind) + packet
        yield 1, ethernet(0x8100, struct.pack("!H", 30) + inner)
        yield 1, ethernet(0x88A8, struct.pack("!HHH", 10, 0x8100, 30) + inner)
        yield 1, ethernet(0x9100, struct.pack("!HHHHH", 10, 0x8100, 20, 0x8100, 30) + inner)
        ppp = struct.pack("!H", 0x0021 if kind == 0x0800 else 0x0057) + packet
        pppoe = struct.pack("!BBHH", 0x11, 0, 1, len(ppp)) + ppp
        yield 1, ethernet(0x8864, pppoe)
        yield 51, pppoe
        labels = struct.pack("!II", 16 << 12 | 64, 17 << 12 | 1 << 8 | 64)
        yield 1, ethernet(0x8847, labels + packet)
        yield 1, ethernet(0x8847, labels + bytes(4) + ethernet(kind, packet))  # pseudowire with control word
        yield 9, ppp
        yield 9, b"\xff\x03" + ppp
        yield 50, b"\xff\x03" + ppp
        yield 104, b"\x0f\x00" + inner
        yield 1, MAC + struct.pack("!H", 8 + len(packet)) + b"\xaa\xaa\x03\0\0\0" + inner
        yield 113, struct.pack("!HHH8sH", 0, 1, 6, bytes(8), kind) + packet
        yield 276, struct.pack("!HHIHBB8s", kind, 0, 2, 1, 0, 6, bytes(8)) + packet
        family = 2 if kind == 0x0800 else 24
        yield 0, struct.pack("<I", family) + packet
        yield 0, struct.pack(">I", family) + packet
        yield 108, struct.pack(">I", family) + packet
        for raw in (12, 14, 101, 228 if kind == 0x0800 else 229):
            yield raw, packet
        wifi = b"\x08\x02\0\0" + MAC + bytes(6) + b"\x10\0" + b"\xaa\xaa\x03\0\0\0" + inner
        quality = b"\x88\x01\0\0" + MAC + bytes(6) + b"\x10\0" + b"\0\0" + b"\xaa\xaa\x03\0\0\0" + inner
        yield 105, wifi
        yield 105, quality
        yield 127, struct.pack("<BBHI", 0, 0, 8, 0) + wifi
        yield 163, struct.pack("!II", 0x80211001, 64) + bytes(56) + wifi
        yield 119, struct.pack("<II", 0x44, 144) + bytes(136) + wifi


def pcap(order="<", magic=0xA1B2C3D4, link=1, snaplen=65535, packets=(), cut=None):
    file = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snaplen, link)
    for number, frame in enumerate(packets):
        held = frame[:snaplen]
        file += struct.pack(order + "IIII", 1700000000, number, len(held), len(frame)) + held
    return file[:cut]


def option(order, code, value):
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(order, kind, body):
    length = 12 + len(body)
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def section(order, length=-1):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, length) + option(order, 4, b"seed") + bytes(4))


def interface(order, link=1, snaplen=0, options=b""):
    return block(order, 1, struct.pack(order + "HHI", link, 0, snaplen) + options + (bytes(4) if options else b""))


def enhanced(order, frame, number=0, when=0x60D0000000000, options=b""):
    head = struct.pack(order + "IIIII", number, when >> 32, when & 0xFFFFFFFF, len(frame), len(frame))
    return block(order, 6, head + frame + bytes(-len(frame) % 4) + options)


def simple(order, frame, wire=None):
    return block(order, 3, struct.pack(order + "I", wire or len(frame)) + frame + bytes(-len(frame) % 4))


def pcap_files():
    some = [frame for link, frame in frames() if link == 1][:6]
    for order in "<>":
        for magic in (0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34):
            yield pcap(order, magic, packets=some[:2])
    yield pcap(packets=())
    yield pcap(packets=some, snaplen=40)
    yield pcap(packets=some, cut=-5)
    yield pcap(packets=some[:2], cut=30)
    yield pcap(packets=some, cut=20)
    yield pcap(packets=some[:2]) + struct.pack("<IIII", 1, 2, 0x7FFFFFFF, 9)
    for link in (101, 113, 276, 147):
        yield pcap(link=link, packets=some[:1])
    yield pcap(link=1 | 4 << 28 | 1 << 26, packets=some[:1])  # the FCS bits of the link field


def pcapng_files():
    some = [frame for link, frame in frames() if link == 1][:6]
    for order in "<>":
        yield section(order) + interface(order) + b"".join(enhanced(order, frame) for frame in some[:3])
        yield section(order) + interface(order, snaplen=60) + simple(order, some[0]) + simple(order, some[1][:60], 900)
        for resolution in (b"\x03", b"\x09", b"\x8a", b"\xff"):
            yield section(order) + interface(order, options=option(order, 9, resolution)) + enhanced(order, some[0])
        offset = option(order, 14, struct.pack(order + "q", -3600))
        yield section(order) + interface(order, options=offset) + enhanced(order, some[0])
    both = interface("<") + interface("<", link=101)
    yield section("<") + both + enhanced("<", some[0]) + enhanced("<", ipv4(tcp(), 6), 1) + enhanced("<", some[1], 2)
    yield section("<") + interface("<") + enhanced("<", some[0]) + section(">") + interface(">") + enhanced(">", some[1])
    names = block("<", 4, struct.pack("<HH4s", 1, 9, bytes(4)) + b"host\0" + bytes(7) + bytes(4))
    statistics = block("<", 5, struct.pack("<III", 0, 0, 0) + option("<", 4, bytes(8)) + bytes(4))
    obsolete = block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 9, 4, 4) + b"abcd")
    custom = block("<", 0xBAD, struct.pack("<I", 32473) + b"custom..")
    whole = section("<") + interface("<") + names + statistics + custom + obsolete + enhanced("<", some[0])
    yield whole
    yield whole[:-7]
    yield whole[:40]
    yield section("<") + enhanced("<", some[0])  # a packet before its interface
    yield section("<") + struct.pack("<III", 6, 13, 0)
    yield section("<", length=8) + interface("<")


# The link types in the order of LinkType::SUPPORTED.
LINKS = [0, 1, 9, 12, 14, 50, 51, 101, 104, 105, 108, 113, 119, 127, 163, 228, 229, 276]


def decodes():
    """Index of the link type, then (seconds since the last, captured length, lack / 8, frame)."""
    for link, frame in frames():
        yield bytes([LINKS.index(link), 0, len(frame), 0]) + frame
        yield bytes([LINKS.index(link), 0, len(frame) * 2 // 3, 9]) + frame[: len(frame) * 2 // 3]
    # First and later fragments, together and a minute apart.
    for step in (0, 60):
        parts = [ethernet(kind, packet) for kind, packet in networks()]
        yield bytes([1]) + b"".join(bytes([step, len(part), 0]) + part for part in parts)


def scripts():
    """Kind, item type, capacity, batch, then operations."""
    for kind in range(8):
        for item in range(4):
            operations = bytes((step * 37 + kind * 11 + item) % 256 for step in range(40))
            yield bytes([kind, item, 3 + kind, 2]) + operations


def tlv(kind, value=b""):
    """One element of NDN's packet format, type and length in their shortest forms."""
    number = lambda n: bytes([n]) if n < 253 else struct.pack("!BH", 253, n)
    return number(kind) + number(len(value)) + value


def ndn_packets():
    """Interest and Data with each of their elements, then what the link protocol puts around them."""
    name = tlv(0x07, tlv(0x08, b"a") + tlv(0x08, b"b") + tlv(0x36, b"\1"))
    nonce, hops = tlv(0x0A, b"\1\2\3\4"), tlv(0x22, b"\7")
    hint = tlv(0x1E, tlv(0x07, tlv(0x08, b"h")))
    digest = tlv(0x07, tlv(0x08, b"a") + tlv(0x01, bytes(32)))
    bare = tlv(0x05, name + nonce)
    full = tlv(0x05, name + tlv(0x21) + tlv(0x12) + hint + nonce + tlv(0x0C, b"\x0f\xa0") + hops)
    meta = tlv(0x14, tlv(0x18, b"\0") + tlv(0x19, b"\x03\xe8") + tlv(0x1A, tlv(0x08, b"z")))
    signature = tlv(0x16, tlv(0x1B, b"\0")) + tlv(0x17, bytes(32))
    data = tlv(0x06, name + meta + tlv(0x15, b"content" * 40) + signature)
    plain = tlv(0x06, name + signature)
    yield from ([bare], [full], [tlv(0x05, digest + nonce)], [data], [plain])
    nack = tlv(800, tlv(801, b"\x96"))
    fields = tlv(0x62, b"token") + tlv(832, b"\1") + tlv(820, tlv(821, b"\1"))
    yield [tlv(0x64, tlv(0x50, full))]
    yield [tlv(0x64, fields + tlv(0x50, data))]
    yield [tlv(0x64, nack + tlv(0x50, full))]
    # In pieces, in order and not; an unknown element, critical or not.
    pieces = [data[at : at + 100] for at in range(0, len(data), 100)]
    sent = [
        tlv(0x64, tlv(0x51, struct.pack("!Q", 9 + at)) + tlv(0x52, bytes([at])) + tlv(0x53, bytes([len(pieces)])) + tlv(0x50, piece))
        for at, piece in enumerate(pieces)
    ]
    yield sent
    yield sent[::-1]
    yield [tlv(0x05, name + nonce + tlv(0xFC, b"x")), tlv(0x05, name + nonce + tlv(0xFB, b"x"))]


def ndn():
    """(time step, neighbour and length, packet), whole and cut short."""
    for packets in ndn_packets():
        for keep in (1, 2 / 3):
            parts = [packet[: int(len(packet) * keep)] for packet in packets]
            yield b"".join(struct.pack("!BH", 1, len(part)) + part for part in parts)


def forward():
    """(time step, sender and length, frame) for a relay: exchanges between neighbours and programs, commands, fragments."""
    step = lambda time, sender, frame: struct.pack("!BH", time, sender << 13 | len(frame)) + frame
    component = lambda text: tlv(0x08, text.encode())
    name = lambda text: tlv(0x07, b"".join(map(component, text.split("/"))))
    lp = lambda fields, packet: tlv(0x64, fields + tlv(0x50, packet))
    signature = tlv(0x16, tlv(0x1B, b"\0")) + tlv(0x17, bytes(32))
    nacked = tlv(800, tlv(801, b"\x96"))

    def interest(text, nonce=1, flags=b"", lifetime=b"\x02\x00"):
        return tlv(0x05, name(text) + flags + tlv(0x0A, struct.pack("!I", nonce)) + tlv(0x0C, lifetime))

    def data(text, size=20, fresh=b"\x10"):
        return tlv(0x06, name(text) + tlv(0x14, tlv(0x19, fresh)) + tlv(0x15, b"7" * size) + signature)

    def command(module, verb, *parameters):
        words = b"".join(map(component, ["localhost", "nfd", module, verb]))
        parameters = tlv(0x08, tlv(0x68, b"".join(parameters))) if parameters else b""
        return tlv(0x05, tlv(0x07, words + parameters) + tlv(0x21) + tlv(0x12) + tlv(0x0A, b"\1\2\3\4"))

    face, origin, flags = tlv(0x69, struct.pack("!H", 258)), tlv(0x6F, b"\x41"), tlv(0x6C, b"\1") + tlv(0x70, b"\1")
    expires = tlv(0x6D, b"\x40")
    # A neighbour asks, the upstream neighbour answers; again from the store; a prefix; a Nack, after which another asks.
    yield step(0, 4, interest("a/b")) + step(1, 2, data("a/b")) + step(1, 5, interest("a/b", 2))
    yield step(0, 4, interest("a", 3, tlv(0x21) + tlv(0x12))) + step(9, 5, interest("a", 4, tlv(0x21))) + step(1, 2, data("a/b"))
    yield step(0, 4, interest("a/n", 5)) + step(0, 2, lp(nacked, interest("a/n", 5))) + step(0, 5, interest("a/n", 6))
    yield step(0, 4, interest("m/x", 7)) + step(0, 2, data("m/x")) + step(0, 3, data("m/x"))
    yield b"".join(step(1, 4 + number % 3, interest(f"a/{number}", number)) for number in range(12)) + step(200, 7, b"")
    # A program registers, answers, exposes a prefix to a daemon, and is closed.
    register = step(0, 0, command("rib", "register", name("p"), expires))
    yield register + step(0, 4, interest("p/1")) + step(0, 0, data("p/1")) + step(200, 7, b"") + step(0, 4, interest("p/2"))
    daemon = step(0, 1, command("rib", "register", name("localhost/nlsr")))
    yield daemon + step(0, 0, command("rib", "register", name("p"), origin)) + step(0, 0, command("rib", "unregister", name("p"), origin))
    yield step(0, 0, command("faces", "update", flags)) + step(0, 4, interest("p/1")) + step(0, 1, command("rib", "register", name("q"), face))
    yield step(0, 0, command("faces", "destroy", face)) + step(0, 2, interest("m/x")) + step(0, 1, command("faces", "list"))
    yield step(0, 0, command("strategy-choice", "set", name("a"), tlv(0x6B, name("localhost/nfd/strategy/multicast"))))
    yield step(0, 1, command("rib", "list")) + step(0, 1, command("status", "general")) + step(0, 1, command("cs", "info"))
    yield step(0, 1, lp(tlv(816, b"\1\2"), interest("a/f"))) + step(0, 1, interest("localhop/a")) + step(0, 4, interest("localhost/a"))
    # Fragments of two senders, mixed and out of order.
    whole = data("a/g", 150)
    parts = [whole[:100], whole[100:]]
    for order in ([0, 1], [1, 0]):
        script = step(0, 4, interest("a/g"))
        for at in order:
            fragment = tlv(0x51, struct.pack("!Q", 5 + at)) + tlv(0x52, bytes([at])) + tlv(0x53, b"\2") + tlv(0x50, parts[at])
            script += step(0, 2, tlv(0x64, fragment)) + step(0, 6, tlv(0x64, fragment))
        yield script
    for packets in ndn_packets():
        yield b"".join(step(1, sender, packet) for sender in (4, 2, 0) for packet in packets)


def dns_messages():
    """Questions and answers with each type of record that is read, names with pointers, EDNS, other operations."""
    name = b"\3www\7example\3org\0"
    question = lambda kind=1, kind_class=1: name + struct.pack("!HH", kind, kind_class)
    record = lambda kind, data, owner=b"\xc0\x0c": owner + struct.pack("!HHIH", kind, 1, 300, len(data)) + data
    message = lambda flags, counts, rest: struct.pack("!HH4H", 7, flags, *counts) + rest
    edns = lambda code=0: record(41, b"", b"\0")[:5] + bytes([code]) + bytes(5)
    for kind in (1, 28, 65, 255, 65534):
        yield message(0x0100, (1, 0, 0, 0), question(kind))
    yield message(0x0120, (1, 0, 0, 1), question() + edns())
    yield message(0x0100, (2, 0, 0, 0), question() + b"\xc0\x10\0\1\0\1")
    datas = [
        (1, bytes(4)), (28, bytes(16)), (2, b"\xc0\x10"), (5, b"\1a\xc0\x10"), (12, b"\0"), (15, b"\0\1\2mx\xc0\x10"),
        (16, b"\4text\2xy"), (33, bytes(6) + b"\xc0\x0c"), (6, bytes(22)),
    ]
    for data in datas:
        yield message(0x8180, (1, 1, 0, 0), question(data[0]) + record(*data))
    answers = b"".join(record(*data) for data in datas)
    yield message(0x8180, (1, len(datas), 0, 1), question() + answers + edns())
    yield message(0x8181, (1, 0, 0, 1), question() + edns(1))
    yield message(0x8180, (1, 30, 0, 0), question() + record(1, bytes(4)) * 30)
    yield message(0x8400, (0, 1, 0, 0), record(1, bytes(4), name))
    yield message(0x2800, (1, 1, 0, 0), question(6) + record(1, b""))
    yield message(0x3000, (0, 0, 0, 0), bytes(4))
    yield message(0x8180, (1, 1, 0, 0), question() + record(5, b"\xc0\x2d"))


def dns():
    """A datagram, or messages of a stream; the last byte says where the stream is cut."""
    frame = lambda message: struct.pack("!H", len(message)) + message
    messages = list(dns_messages())
    for message in messages:
        yield message
        yield frame(message) + b"\x80"
    yield b"".join(frame(message) for message in messages)


def http():
    """Segments with one message or several; the last byte says where the stream is cut."""
    lines = lambda *list: "\r\n".join((*list, "", "")).encode()
    host, agent = "Host: example.org", "User-Agent: test/1 (x)"
    get = lines("GET /a?b HTTP/1.1", host, agent)
    post = lines("POST /p HTTP/1.0", host, "Content-Length: 3") + b"abc"
    okay = lines("HTTP/1.1 200 OK", "Content-Length: 5") + b"hello"
    search = lines("M-SEARCH * HTTP/1.1", "HOST: 239.255.255.250:1900", 'MAN: "ssdp:discover"')
    messages = [
        get, post, okay, search, lines("HTTP/1.1 304 Not Modified", "Content-Length: 9"), lines("HTTP/1.1 100 Continue"),
        lines("CONNECT example.org:443 HTTP/1.1"), lines("GET http://user@example.org/x HTTP/1.1"),
        lines("HTTP/1.1 200 OK", "Transfer-Encoding: chunked") + b"1\r\nx\r\n0\r\n\r\n",
        lines("NOTIFY * HTTP/1.1", "NT: upnp:rootdevice"), b"GET / HTTP/1.0\nhost : h\n folded\nno colon\n\n",
        lines("OPTIONS sip:a@example.org SIP/2.0"), lines("HTTP/1.1 101 Switching Protocols", "Upgrade: x"),
    ]
    for message in messages:
        yield message
        yield message + get + b"\x80"
    yield b"".join(messages)
    yield get + b"\r\n" + post + get + okay + okay + get


def hellos(dtls):
    """(type, body): hellos of clients and servers with the extensions that are read."""
    vector = lambda size, content: len(content).to_bytes(size, "big") + content
    numbers = lambda *list: b"".join(struct.pack("!H", number) for number in list)
    name = numbers(0) + vector(2, vector(2, b"\0" + vector(2, b"example.org")))
    others = [
        numbers(16) + vector(2, vector(2, vector(1, b"h2") + vector(1, b"http/1.1"))),
        numbers(10) + vector(2, vector(2, numbers(0x3A3A, 29, 23))),
        numbers(11) + vector(2, vector(1, b"\0")),
        numbers(13) + vector(2, vector(2, numbers(0x0403, 0x0804))),
        numbers(43) + vector(2, vector(1, numbers(0xFEFC, 0xFEFD) if dtls else numbers(0x7A7A, 0x0304, 0x0303))),
        numbers(0x0A0A) + vector(2, b""),
    ]
    cookie = vector(1, b"cookie") if dtls else b""
    version = numbers(0xFEFD if dtls else 0x0303)
    for extensions in ([], [name], [name, *others], others):
        ciphers = vector(2, numbers(0x1A1A, 0x1301, 0xC02F, 0x002F))
        tail = vector(2, b"".join(extensions)) if extensions else b""
        yield 1, version + bytes(32) + vector(1, bytes(8)) + cookie + ciphers + b"\1\0" + tail
    selected = numbers(43) + vector(2, numbers(0xFEFC if dtls else 0x0304))
    for extensions in (b"", vector(2, selected), vector(2, others[0])):
        yield 2, version + bytes(32) + vector(1, b"") + numbers(0x1301) + b"\0" + extensions
    yield 2, numbers(0x7F12) + bytes(32) + numbers(0x1301) + vector(2, b"")


def der(tag, *parts):
    content = b"".join(parts)
    size = bytes([len(content)]) if len(content) < 128 else b"\x82" + struct.pack("!H", len(content))
    return bytes([tag]) + size + content


def oid(*octets):
    return der(6, bytes(octets))


def certificate(algorithm, key, names, times=(b"260131000000Z", b"260430235959Z")):
    """A certificate whose signature is wrong (RFC 5280, section 4.1)."""
    sequence = lambda *parts: der(0x30, *parts)
    name = lambda text: sequence(der(0x31, sequence(oid(0x55, 4, 3), der(12, text))))
    validity = sequence(*(der(23 if len(time) == 13 else 24, time) for time in times))
    signature = sequence(oid(0x2A, 0x86, 0x48, 0xCE, 0x3D, 4, 3, 2))
    extension = sequence(oid(0x55, 29, 17), der(4, sequence(*names)))
    own = sequence(
        der(0xA0, der(2, b"\2")), der(2, b"\0\xba\xdc"), signature, name(b"Example CA"), validity, name(b"www.example.org"),
        sequence(algorithm, der(3, b"\0" + key)), der(0xA3, sequence(extension)),
    )
    return sequence(own, signature, der(3, b"\0" + der(0x30, der(2, b"\1"), der(2, b"\1"))))


def flights():
    """What follows the hello of a server before TLS 1.3: certificates in one record or several, tickets, alerts."""
    numbers = lambda *values: struct.pack(f"!{len(values)}H", *values)
    record = lambda kind, fragment: bytes([kind]) + numbers(0x0303, len(fragment)) + fragment
    message = lambda kind, body: bytes([kind]) + struct.pack("!I", len(body))[1:] + body
    hello = message(2, numbers(0x0303) + bytes(32) + b"\0" + numbers(0xC02F) + b"\0")
    elliptic = der(0x30, oid(0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1), oid(0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7))
    rsa = der(0x30, oid(0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1), der(5))
    names = [der(0x82, b"*.example.net"), der(0x87, bytes([192, 0, 2, 1])), der(0x81, b"me@example.org"), der(0xA4, der(0x30))]
    own = [
        certificate(elliptic, b"\4" + bytes(64), names),
        certificate(rsa, der(0x30, der(2, b"\0" + b"\xff" * 128), der(2, b"\1\0\1")), names[:1], (b"20260131000000Z",) * 2),
    ]
    for chain in (own[:1], own[1:], own, []):
        each = b"".join(struct.pack("!I", len(one))[1:] + one for one in chain)
        flight = hello + message(11, struct.pack("!I", len(each))[1:] + each) + message(14, b"")
        yield record(22, flight)
        yield b"".join(record(22, flight[at:at + 100]) for at in range(0, len(flight), 100))
        yield record(22, flight[:-20])
    yield record(22, hello) + record(22, message(4, bytes(40))) + record(20, b"\1")
    yield record(22, hello) + record(20, b"\1")
    yield record(22, hello) + record(21, b"\2\x28") + record(21, b"\1\0")
    yield record(21, b"\2\x46")
    yield b"\x80\x1f\1\3\1\0\6\0\0\0\x10\1\0\x80\0\0\5" + bytes(16)


def proxies():
    """Headers of the PROXY protocol."""
    yield b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\nGET / HTTP/1.1\r\n\r\n"
    yield b"PROXY TCP6 2001:db8::1 2001:db8::2 56324 443\r\n"
    yield b"PROXY UNKNOWN ffff:: ffff:: 1 2\r\n"
    yield b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 70000\r\n"
    head = b"\r\n\r\n\0\r\nQUIT\n"
    four = bytes([192, 0, 2, 1, 198, 51, 100, 1]) + struct.pack("!HH", 56324, 443)
    yield head + b"\x21\x11\0\x0c" + four + b"\x16\3\1"
    yield head + b"\x21\x11\0\x0f" + four + b"\4\0\0"
    yield head + b"\x21\x21\0\x24" + bytes(36)
    yield head + b"\x21\x31\0\xd8" + bytes(216)
    yield head + b"\x20\0\0\0"
    yield head + b"\x21\x11\0\4" + bytes(4)


def syns():
    """TCP headers of SYNs; the first byte says whether it is an answer."""
    usual = bytes([2, 4, 5, 0xB4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7])
    for first in (0, 1):
        head = bytes([first]) + bytes(13) + struct.pack("!HHH", 64240, 0, 0)
        for options in (usual, b"", bytes([3, 3, 0, 3, 3, 9, 0, 2]), bytes([1, 2, 4, 2, 0, 8, 1]), bytes([254, 4, 1, 2])):
            yield head + options
    yield bytes(19)


def tls():
    yield from flights()
    """A segment or datagram; the last byte says where the stream is cut."""
    record = lambda kind, fragment: struct.pack("!BHH", kind, 0x0301, len(fragment)) + fragment
    for kind, body in hellos(dtls=False):
        message = struct.pack("!I", kind << 24 | len(body)) + body
        for before in (b"", record(20, b"\1"), record(21, b"\1\x70")):
            yield before + record(22, message) + b"\x80"
        yield record(22, message[:3]) + record(22, message[3:]) + b"\xc0"
    for kind, body in hellos(dtls=True):
        for parts in ([(0, len(body))], [(30, len(body)), (0, 40)]):
            datagram = b""
            for start, end in parts:
                head = struct.pack("!IHI", kind << 24 | len(body), 0, start << 8)[:9] + (end - start).to_bytes(3, "big")
                fragment = head + body[start:end]
                datagram += struct.pack("!BHHHIH", 22, 0xFEFD, 0, 0, 0, len(fragment)) + fragment
            yield datagram


def quic():
    """(action, length, datagram or frames): hellos whole, in parts, and after changes of the connection."""
    step = lambda action, data: struct.pack("!BH", action, len(data)) + data
    crypto = lambda offset, data: b"\x06" + struct.pack("!HH", 0x4000 | offset, 0x4000 | len(data)) + data
    pad = bytes(20)
    name = b"\0\0\0\x10\0\x0e\0\0\x0bexample.org"
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + struct.pack("!H", len(name)) + name
    client = struct.pack("!I", 1 << 24 | len(body)) + body
    body = b"\3\3" + bytes(32) + b"\0\x13\1\0\0\6\0\x2b\0\2\3\4"
    server = struct.pack("!I", 2 << 24 | len(body)) + body
    chlo = b"CHLO\1\0\0\0SNI\0\x0b\0\0\0example.org"
    ack, close = b"\2\1\0\0\1", b"\x1c\x0a\6\3bad"
    hello, answer = step(2, crypto(0, client) + pad), step(3, ack + crypto(0, server) + pad)
    for version in range(8):
        kind = version << 4
        frame = b"\x08" if version >= 5 else b"\x06"
        yield step(kind | 2, frame + crypto(0, chlo if version == 5 else client)[1:] + pad)
        yield step(kind | 3, frame + crypto(0, server)[1:] + pad)
    yield hello + answer
    yield hello + hello + answer + answer + step(2, ack + pad)
    yield step(2, crypto(30, client[30:]) + pad) + step(2, crypto(0, client[:30]) + b"\1" + close + pad)
    yield step(2, crypto(50, client[50:]) + crypto(0, client[:20]) + crypto(10, client[10:60]) + pad)
    yield step(2, crypto(0, client[:30]) + pad) + step(6, pad) * 3 + hello
    yield hello + step(1, b"\xf0\0\0\0\1\0\7another" + bytes(20)) + step(0x8A, crypto(0, client) + pad)
    yield hello + step(0x12, crypto(0, client) + pad) + step(0x13, crypto(0, server) + pad)
    yield step(1, b"\x80\0\0\0\0\0\1a\0\0\0\1") + hello
    yield step(0, b"\xc3Q046\x50identify\0\0\0\1")
    yield step(1, b"\xe0\0\0\0\1\0\1a\5xxxxx") + step(1, b"\xc0\0\0\0\1\x09")
    yield step(2, crypto(0x3FFF, client) + pad) + step(2, b"\x30" + pad)
    yield step(0x62, b"\x75\0\1\0\0\1\0\1\2\0\3\2" + bytes(8) + b"\x40\1\0\0\1\0\7" + pad)


def write(folder, inputs):
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    output = Path(sys.argv[1])
    write(output / "decode", decodes())
    write(output / "dns", dns())
    write(output / "forward", forward())
    write(output / "http", http())
    write(output / "ndn", ndn())
    write(output / "pcap", pcap_files())
    write(output / "pcapng", pcapng_files())
    write(output / "proxy", proxies())
    write(output / "quic", quic())
    write(output / "ring", scripts())
    write(output / "syn", syns())
    write(output / "tls", tls())


if __name__ == "__main__":
    main()
