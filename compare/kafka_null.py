#!/usr/bin/env python3
"""Measures the CPU time in which ringtap sends flow records to Kafka, without a broker's: the peer acknowledges all batches and
keeps none. A Markdown table of messages per CPU second, whole and beyond a run without output, medians of interleaved rounds.

Usage: compare/kafka_null.py RINGTAP FILE.pcap [--rounds N] [--partitions N]
"""

import argparse
import json
import os
import resource
import socket
import statistics
import struct
import subprocess
import threading

from measure import machine

FORMATS = ["protobuf", "protobuf&compression=snappy", "json", "json&compression=snappy"]


class Peer:
    """Leads all partitions of every topic."""

    def __init__(self, partitions):
        self.partitions, self.messages, self.lock = partitions, 0, threading.Lock()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.server.accept()[0],), daemon=True).start()

    def serve(self, stream):
        reader = stream.makefile("rb", 1 << 20)
        while len(length := reader.read(4)) == 4:
            request = reader.read(int.from_bytes(length))
            key, _, number, name = struct.unpack_from(">hhih", request)
            body = {0: self.produce, 3: self.metadata, 18: self.versions, 22: self.producer}[key](request[10 + max(name, 0) :])
            stream.sendall(struct.pack(">ii", 4 + len(body), number) + body)

    def versions(self, _):
        known = [(0, 3, 7), (3, 0, 4), (18, 0, 3), (22, 0, 1)]
        body = b"".join(struct.pack(">hhhx", *version) for version in known)
        return bytes([0, 0, len(known) + 1]) + body + bytes(5)

    def metadata(self, request):
        (topic,) = struct.unpack_from(">4xh", request) if len(request) > 6 else (0,)
        name = request[6 : 6 + topic]
        body = struct.pack(">iiih9si", 0, 1, 7, 9, b"127.0.0.1", self.port) + b"\xff" * 4 + struct.pack(">ii", 7, 1)
        body += struct.pack(">hh", 0, topic) + name + struct.pack(">xi", self.partitions)
        return body + b"".join(struct.pack(">hiiiiii", 0, at, 7, 1, 7, 1, 7) for at in range(self.partitions))

    def producer(self, _):
        return bytes(6) + struct.pack(">qh", 77, 0)

    def produce(self, request):
        (topic,) = struct.unpack_from(">12xh", request)
        at = 14 + topic
        partition, length = struct.unpack_from(">4xii", request, at)
        (messages,) = struct.unpack_from(">i", request, at + 12 + 57)
        with self.lock:
            self.messages += messages
        return struct.pack(">ih", 1, topic) + request[14:at] + struct.pack(">iih", 1, partition, 0) + bytes(28)


def cpu(command):
    """CPU seconds and stdout of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringtap")
    parser.add_argument("capture")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    peer = Peer(options.partitions)
    words = ["monitor", "-q", "--report", "json", "--analyses", "flows", "--extract", "none", "--seed", "1", "--sequential"]
    run = [os.path.realpath(options.ringtap), *words, "-r", options.capture]
    times = {form: [] for form in ["", *FORMATS]}
    for _ in range(options.rounds):
        for form, own in times.items():
            peer.messages = 0
            more = ["--export", f"kafka://127.0.0.1:{peer.port}/flows?format={form}"] if form else []
            seconds, out = cpu([*run, *more])
            report = json.loads(out)
            if form:
                sent = report["export"][0]["sent"]
                assert peer.messages >= sent["messages"], (peer.messages, sent)
            own.append((seconds, sent["messages"] if form else 0))
    none = statistics.median(seconds for seconds, _ in times.pop(""))
    print(f"{machine()}; {options.rounds} rounds; a run without output takes {none:.3f} s of CPU\n")
    print("| format | messages | CPU s | messages/CPU s | of the output alone |\n|---|---|---|---|---|")
    for form, own in times.items():
        seconds, messages = statistics.median(seconds for seconds, _ in own), own[0][1]
        alone = messages / (seconds - none)
        print(f"| {form.replace('&compression=', ', ')} | {messages:,} | {seconds:.2f} | {messages / seconds:,.0f} | {alone:,.0f} |")


if __name__ == "__main__":
    main()
