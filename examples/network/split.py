#!/usr/bin/env python3
"""Divides a capture by address pair, as if probes at several sites had seen a part of the network each.

Usage: split.py CAPTURE.pcap OUTPUT.pcap…     (Ethernet)
"""

import struct
import sys


def main():
    capture, outputs = sys.argv[1], sys.argv[2:]
    with open(capture, "rb") as file:
        data = file.read()
    parts = [bytearray(data[:24]) for _ in outputs]
    at = 24
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 8)
        frame = data[at + 16 : at + 16 + length]
        # Both addresses, of IPv4 or IPv6.
        addresses = frame[26:34] if frame[12:14] == b"\x08\x00" else frame[22:54]
        parts[sum(addresses) % len(parts)] += data[at : at + 16 + length]
        at += 16 + length
    for path, part in zip(outputs, parts):
        with open(path, "wb") as file:
            file.write(part)


main()
