#!/usr/bin/env python3
"""Compares arrangements of threads on mutated captures.

Each case changes a capture (bytes, lengths, order, clocks, floods of one packet with other
addresses), chooses flags of `ringtap monitor`, and runs it under the reference and two other
arrangements. It fails if a run panics, hangs, refuses the flags, has a residual other than 0 or
needs more memory than `--memory` and an empty run together, or if the digests differ though no table
was full.

Usage: scripts/mutate.py RINGTAP [--seconds N] [--seed N] [--cases N] [--keep FOLDER]

A case depends on its seed and on the captures alone: examples/, traffic that RINGTAP generates, and
the folders in CAPTURES (separated by colons; by default ../shared/traces and those in it, if
present). `--seed N --cases 1` repeats one case. The file of a case that fails is kept.
"""

import argparse
import glob
import gzip
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECOND = 1_000_000_000
# No case takes this long, even on a busy machine.
TIME_LIMIT = 300
# Allocators and threads need a little beyond the memory of an empty run.
SLACK = 16 << 20


# Captures ----------------------------------------------------------------------------------------


def read_pcap(data):
    """Link type and packets of a pcap file (not pcapng): [time in ns, octets on the wire, bytes]."""
    magic = data[:4]
    formats = {b"\xd4\xc3\xb2\xa1": ("<", 1000), b"\xa1\xb2\xc3\xd4": (">", 1000),
               b"\x4d\x3c\xb2\xa1": ("<", 1), b"\xa1\xb2\x3c\x4d": (">", 1)}
    if magic not in formats:
        return None
    order, unit = formats[magic]
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    packets, at = [], 24
    while at + 16 <= len(data):
        seconds, part, captured, original = struct.unpack_from(order + "IIII", data, at)
        at += 16
        if captured > 1 << 18 or at + captured > len(data):
            break
        packets.append([seconds * SECOND + part * unit, original, data[at:at + captured]])
        at += captured
    return (link, packets) if packets else None


def content(path):
    with open(path, "rb") as file:
        return file.read()


def write_pcap(link, packets):
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, link)]
    for stamp, original, frame in packets:
        stamp = min(max(stamp, 0), (1 << 32) * SECOND - 1)
        parts.append(struct.pack("<IIII", stamp // SECOND, stamp % SECOND, len(frame),
                                 min(max(original, len(frame)), 0xFFFFFFFF)))
        parts.append(frame)
    return b"".join(parts)


# Mutations: each gets the random generator, packets and the paths of captures, and returns packets -----


def some(rng, packets):
    """Indices of a random sample, from one packet to a quarter of all."""
    count = min(len(packets), max(1, int(len(packets) * 4 ** -rng.uniform(1, 6))))
    return rng.sample(range(len(packets)), count)


def change_bytes(rng, packets, _):
    for index in some(rng, packets):
        frame = bytearray(packets[index][2])
        for _ in range(rng.randint(1, 4) if frame else 0):
            at = min(int(rng.expovariate(1 / 60)), len(frame) - 1)
            frame[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256), frame[at] ^ (1 << rng.randrange(8))])
        packets[index][2] = bytes(frame)
    return packets


def change_lengths(rng, packets, _):
    """Sets the length of the IP packet behind an Ethernet header, or any other two bytes."""
    for index in some(rng, packets):
        frame = bytearray(packets[index][2])
        if len(frame) < 40:
            continue
        at = {b"\x08\x00": 16, b"\x86\xdd": 18}.get(bytes(frame[12:14]), 0)
        if not at or rng.random() < 0.3:
            at = rng.randrange(len(frame) - 1)
        frame[at:at + 2] = struct.pack(">H", rng.choice([0, 1, 20, 40, 0xFFFF, rng.randrange(1 << 16)]))
        packets[index][2] = bytes(frame)
    return packets


def cut(rng, packets, _):
    limit = rng.choice([0, 14, 34, 54, 68, 96, 128])
    chosen = set(some(rng, packets)) if rng.random() < 0.5 else range(len(packets))
    for index in chosen:
        packets[index][2] = packets[index][2][:limit]
    return packets


def repeat(rng, packets, _):
    for index in sorted(some(rng, packets), reverse=True):
        stamp, original, frame = packets[index]
        later = index + 1 + min(int(rng.expovariate(0.2)), len(packets) - index - 1)
        packets.insert(later, [stamp + rng.choice([0, 1, SECOND // 1000, 3 * SECOND]), original, frame])
    return packets


def lose(rng, packets, _):
    lost = set(some(rng, packets))
    return [packet for index, packet in enumerate(packets) if index not in lost] or packets


def swap(rng, packets, _):
    for index in some(rng, packets):
        other = min(index + rng.randint(1, 5), len(packets) - 1)
        packets[index], packets[other] = packets[other], packets[index]
    return packets


def skew_clock(rng, packets, _):
    """A second observation point: the packets of some address pairs have another clock."""
    offset = rng.choice([-1, 1]) * int(SECOND * 10 ** rng.uniform(-3, 4))
    salt = rng.randrange(1 << 30)
    for packet in packets:
        # Both directions have the same sum.
        if hash((salt, sum(packet[2][26:34]))) % 3 == 0:
            packet[0] += offset
    return packets


def leap(rng, packets, _):
    at = rng.randrange(len(packets))
    by = rng.choice([-1, 1]) * int(SECOND * 10 ** rng.uniform(-2, 7))
    for packet in packets[at:]:
        packet[0] += by
    return packets


def stamp_ahead(rng, packets, _):
    for _ in range(rng.randint(1, 3)):
        packets[rng.randrange(len(packets))][0] += int(SECOND * 10 ** rng.uniform(0, 9))
    return packets


def shake_clock(rng, packets, _):
    width = int(SECOND * 10 ** rng.uniform(-4, 2))
    for packet in packets:
        packet[0] += rng.randint(-width, width)
    return packets


def stretch(rng, packets, _):
    begin, factor = packets[0][0], 10 ** rng.uniform(-2, 3)
    for packet in packets:
        packet[0] = begin + int((packet[0] - begin) * factor)
    return packets


def join(rng, packets, captures):
    """Interleaves another capture of the same link type, with its own clock."""
    link, other = read_pcap(content(rng.choice(captures)))
    if link != 1:
        return packets
    shift = packets[0][0] - other[0][0] + int(rng.uniform(-60, 60) * SECOND)
    merged, queues = [], [packets, [[stamp + shift, size, frame] for stamp, size, frame in other]]
    at = [0, 0]
    while at[0] < len(queues[0]) or at[1] < len(queues[1]):
        side = rng.randrange(2)
        if at[side] == len(queues[side]):
            side = 1 - side
        merged.append(queues[side][at[side]])
        at[side] += 1
    return merged


def flood(rng, packets, _):
    """Repeats a few packets with other addresses."""
    models = [packet for packet in rng.sample(packets, min(len(packets), 40))
              if packet[2][12:14] in (b"\x08\x00", b"\x86\xdd") and len(packet[2]) >= 54][:rng.randint(1, 4)]
    if not models:
        return packets
    step = int(SECOND * 10 ** rng.uniform(-7, -3))
    stamp = packets[-1][0]
    for number in range(rng.choice([2_000, 20_000, 200_000])):
        original, frame = models[number % len(models)][1:]
        at = 28 if frame[12] == 8 else 34
        frame = b"".join([frame[:at], struct.pack(">I", rng.randrange(1 << 32)), frame[at + 4:]])
        stamp += step
        packets.append([stamp, original, frame])
    return packets


MUTATIONS = [change_bytes, change_bytes, change_lengths, cut, repeat, lose, swap, skew_clock, skew_clock, leap,
             stamp_ahead, stamp_ahead, shake_clock, stretch, join, join, flood]


def change_file(rng, data):
    """Changes the bytes of a whole file, headers of blocks and packets included."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 30)):
        kind = rng.randrange(4)
        at = rng.randrange(len(data))
        if kind == 0:
            data[at] = rng.randrange(256)
        elif kind == 1:
            data[at:at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\1\0", b"\1\0\0\0"])
        elif kind == 2:
            del data[at:at + rng.randint(1, 64)]
        elif len(data) < 1 << 23:
            data[at:at] = data[at:at + rng.randint(1, 512)]
        if not data:
            return b"\0"
    return bytes(data[:rng.randrange(len(data)) + 1] if rng.random() < 0.3 else data)


# Flags -------------------------------------------------------------------------------------------


def flags(rng):
    """Flags that affect the answer."""
    chosen = []
    for probability, *choices in [
        (0.3, "--dedup 1ms", "--dedup 1s", "--dedup 1h"),
        (0.2, "--vlan-in-key"),
        (0.2, "--uniflow"),
        (0.3, "--interval 100ms", "--interval 1s", "--interval 1h"),
        (0.3, "--analyses all,tcp", "--analyses flows", "--analyses scans,talkers", "--analyses all,tcp,activity"),
        (0.2, "--extract none", "--extract tls,quic", "--extract dns,http,ssh"),
        (0.3, "--tunnels outer", "--tunnels both"),
        (0.2, "--sample 1:2", "--sample 1:10"),
        (0.2, "--idle-timeout 10ms", "--idle-timeout 1s", "--active-timeout 1s", "--timeouts zeek", "--timeouts yaf"),
        (0.2, "--filter tcp", "--filter udp or icmp", "--filter not port 53"),
    ]:
        if rng.random() < probability:
            name, _, value = rng.choice(choices).partition(" ")
            chosen += [name, value] if value else [name]
    # A flag without an effect is an error.
    if "flows" not in chosen and rng.random() < 0.2:
        chosen += ["--scan-threshold", "2"]
    return chosen


def arrangement(rng):
    """Flags of a parallel arrangement."""
    skeleton = rng.choice(["farm", "pipeline", "shared-pipeline", "multi-queue", "multi-queue", "sync"])
    chosen = ["--skeleton", skeleton, "--queues", str(rng.randint(1, 4))]
    if skeleton != "multi-queue":
        chosen += ["-w", str(rng.randint(1, 4))]
    if rng.random() < 0.5:
        chosen += ["--ring", rng.choice(["lock", "lamport", "fastforward", "mcring", "vernier"]),
                   "--ring-capacity", rng.choice(["16", "256", "4096"])]
    return chosen


# Runs --------------------------------------------------------------------------------------------


class Failure(Exception):
    pass


def run(ringtap, path, chosen):
    """Exit status and report (None if the file is no capture, or the arrangement needs more memory)."""
    command = [ringtap, "monitor", "-r", path, *chosen, "--report", "json", "--digest", "--fail-on-drop", "--quiet"]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        try:
            status = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors,
                                    timeout=TIME_LIMIT).returncode
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {TIME_LIMIT} s: {' '.join(command)}") from None
        out.seek(0)
        errors.seek(0)
        text, complaint = out.read(), errors.read().decode("utf-8", "replace")
    if status == 2 and "invalid memory limit" in complaint:
        return status, None
    if status not in (0, 1, 3) or "panicked" in complaint:
        raise Failure(f"exit status {status}: {' '.join(command)}\n{complaint}")
    report = json.loads(text) if text.strip() else None
    if status != 1 and report is None:
        raise Failure(f"no report: {' '.join(command)}\n{complaint}")
    if report and report["ledger"]["residual"] != 0:
        raise Failure(f"residual {report['ledger']['residual']}: {' '.join(command)}")
    return status, report


def find_captures(ringtap, folder):
    """Paths of captures: (pcap, all)."""
    paths = sorted(glob.glob(os.path.join(ROOT, "examples", "*.pcap")))
    shared = os.path.join(ROOT, "..", "shared", "traces")
    folders = os.environ.get("CAPTURES", f"{shared}:{shared}/applications:{shared}/found").split(":")
    for each in folders:
        paths += sorted(glob.glob(os.path.join(each, "*.pcap*")))
    for profile, seed in [("mix", 1), ("scans", 2), ("mix", 3)]:
        path = os.path.join(folder, f"{profile}-{seed}.pcap")
        subprocess.run([ringtap, "generate", "--profile", profile, "--packets", "20k", "--flows", "2k",
                        "--seed", str(seed), "-w", path], check=True, capture_output=True)
        paths.append(path)
    return [path for path in paths if read_pcap(content(path))], paths


def build(rng, captures, files):
    """A description and the bytes of a mutated capture. `captures` and `files` are paths."""
    if rng.random() < 0.2:
        path = rng.choice(files)
        data = change_file(rng, content(path))
        return f"{os.path.basename(path)}: change_file", gzip.compress(data, 1) if rng.random() < 0.2 else data
    path = rng.choice(captures)
    link, packets = read_pcap(content(path))
    steps = []
    for _ in range(rng.randint(1, 4)):
        mutation = rng.choice(MUTATIONS)
        if mutation in (join, flood) and (link != 1 or mutation.__name__ in steps):
            continue
        packets = mutation(rng, packets, captures)
        steps.append(mutation.__name__)
    return f"{os.path.basename(path)}: {', '.join(steps)}", write_pcap(link, packets)


def case(ringtap, seed, captures, files, folder, empty):
    """Runs a case. Returns whether its digests were compared."""
    rng = random.Random(seed)
    description, data = build(rng, captures, files)
    chosen = flags(rng)
    memory = rng.choice([None, None, 64, 256])
    if memory:
        chosen += ["--memory", f"{memory}M"]
    path = os.path.join(folder, "mutated.pcap")
    with open(path, "wb") as file:
        file.write(data)
    results = []
    try:
        for arranged in [["--sequential"], arrangement(rng), arrangement(rng) if rng.random() < 0.7 else []]:
            status, report = run(ringtap, path, chosen + arranged)
            peak = report["performance"]["peak_rss_bytes"] if report else 0
            if memory and peak > (memory << 20) + empty + SLACK:
                raise Failure(f"{peak >> 20} MiB with --memory {memory}M: {' '.join(chosen + arranged)}")
            if status != 2:
                results.append((arranged, status, report and report["digest"]))
        compared = len(results) > 1 and all(status != 3 for _, status, _ in results)
        if compared and len({result[1:] for result in results}) != 1:
            raise Failure("different answers:\n" + "\n".join(f"  {result}" for result in results))
        return compared
    except Failure as failure:
        raise Failure(f"{description}; {' '.join(chosen)}\n{failure}") from None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ringtap")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--keep", default=os.path.join(ROOT, "target", "mutated"))
    options = parser.parse_args()
    ringtap = os.path.abspath(options.ringtap)
    with tempfile.TemporaryDirectory() as folder:
        captures, files = find_captures(ringtap, folder)
        nothing = os.path.join(folder, "empty.pcap")
        with open(nothing, "wb") as file:
            file.write(write_pcap(1, []))
        empty = run(ringtap, nothing, ["--memory", "64M"])[1]["performance"]["peak_rss_bytes"]
        begin, seed, compared, failures = time.monotonic(), options.seed, 0, 0
        while seed - options.seed != options.cases and time.monotonic() - begin < options.seconds:
            try:
                compared += case(ringtap, seed, captures, files, folder, empty)
            except Failure as failure:
                failures += 1
                os.makedirs(options.keep, exist_ok=True)
                kept = os.path.join(options.keep, f"{seed}.pcap")
                os.replace(os.path.join(folder, "mutated.pcap"), kept)
                print(f"case {seed}: {failure}\n  file: {kept}", flush=True)
            seed += 1
    print(f"{seed - options.seed} cases from seed {options.seed}, {compared} with equal digests, "
          f"{seed - options.seed - compared - failures} not compared (a full table), {failures} failed")
    sys.exit(1 if failures or not compared else 0)


main()
