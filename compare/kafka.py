#!/usr/bin/env python3
"""Measures how fast flow records reach a broker of Kafka, beside librdkafka (kcat), interleaved: with the broker on loopback,
and behind a relay that delays both directions, so that a round trip takes the given time.

A trial of ringtap is a whole run over a generated capture (profile w2, one flow per three packets) with two queues and only
the analysis `flows`, so reading and metering count, too. kcat sends the same JSON lines with the same keys and headers of
about the same size, from a file in the page cache, as an idempotent producer with the acknowledgement of all replicas; with
its defaults, and with large batches. A trial ends when all messages are acknowledged, which is checked by the broker's
offsets. The first line of the table has no output. Each round runs every candidate once, in a new random order (seeded). The
table has medians; CPU time is that of the sender alone.

The broker is that of the tests, which `RINGTAP_FULL=1 scripts/setup-test.sh` fetches. Its data are in TMPDIR.

Usage: compare/kafka.py RINGTAP… [--packets N] [--partitions N] [--round-trips MS,…] [--rounds N]      (needs java and kcat)
"""

import argparse
import json
import os
import queue
import random
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from measure import SEED, machine

JARS = Path(__file__).resolve().parent.parent / "target/test-tools/kafka"
CHUNK = 256 << 10
FORMATS = {
    "JSON": "format=json",
    "JSON, snappy": "format=json&compression=snappy",
    "protobuf": "format=protobuf",
}
KCAT = {
    "kcat": [],
    "kcat, large batches": ["-X", "linger.ms=50", "-X", "batch.size=900000", "-X", "batch.num.messages=100000"],
    "kcat, snappy": ["-z", "snappy"],
}


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Relay:
    """Passes connections on to a port, and delays each direction."""

    def __init__(self, port, to, delay_s):
        self.to, self.delay_s = to, delay_s
        self.server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            one = self.server.accept()[0]
            other = socket.create_connection(("127.0.0.1", self.to))
            for side in (one, other):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target in ((one, other), (other, one)):
                chunks = queue.SimpleQueue()
                threading.Thread(target=self.read, args=(source, chunks), daemon=True).start()
                threading.Thread(target=self.write, args=(target, chunks), daemon=True).start()

    def read(self, source, chunks):
        chunk = b"-"
        while chunk:
            try:
                chunk = source.recv(CHUNK)
            except OSError:
                chunk = b""
            chunks.put((time.monotonic() + self.delay_s, chunk))

    def write(self, target, chunks):
        while True:
            due, chunk = chunks.get()
            time.sleep(max(0, due - time.monotonic()))
            try:
                if not chunk:
                    return target.shutdown(socket.SHUT_WR)
                target.sendall(chunk)
            except OSError:
                return


class Broker:
    """A broker that is its own controller, with a listener for each round trip in milliseconds."""

    def __init__(self, folder, round_trips, partitions):
        controller, *ports = free_ports(1 + 2 * len(round_trips))
        listeners, advertised, names = [], [], []
        self.address = {}
        for round_trip in round_trips:
            name, own = f"RT{round_trip}", ports.pop()
            public = ports.pop() if round_trip else own
            if round_trip:
                Relay(public, own, round_trip / 2000)
            listeners.append(f"{name}://127.0.0.1:{own}")
            advertised.append(f"{name}://127.0.0.1:{public}")
            names.append(name)
            self.address[round_trip] = f"127.0.0.1:{public}"
        properties = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": names[0],
            "listeners": ",".join([*listeners, f"CONTROLLER://127.0.0.1:{controller}"]),
            "advertised.listeners": ",".join(advertised),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in [*names, "CONTROLLER"]),
            "log.dirs": f"{folder}/data",
            "num.partitions": partitions,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "file.delete.delay.ms": 0,
        }
        self.properties = f"{folder}/server.properties"
        with open(self.properties, "w") as file:
            file.writelines(f"{name}={value}\n" for name, value in properties.items())
        cluster = ["format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", self.properties]
        self.tool("kafka.tools.StorageTool", *cluster)
        self.bootstrap = self.address[round_trips[0]]
        with open(f"{folder}/log", "w") as log:
            self.process = subprocess.Popen(self.java("kafka.Kafka", "1g", self.properties), stdout=log, stderr=log)
        while subprocess.run(["kcat", "-L", "-b", self.bootstrap], capture_output=True, check=False).returncode:
            assert self.process.poll() is None, f"the broker ended: {Path(folder, 'log').read_text()}"
            time.sleep(0.2)

    @staticmethod
    def java(program, memory, *words):
        log_level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return ["java", f"-Xmx{memory}", f"-Xms{memory}", log_level, "-cp", f"{JARS}/*", program, *map(str, words)]

    def tool(self, program, *words):
        return subprocess.run(self.java(program, "128m", *words), check=True, capture_output=True, text=True).stdout

    def create(self, name):
        """Creates a topic: kcat asks for it."""
        while True:
            out = subprocess.run(["kcat", "-L", "-b", self.bootstrap, "-t", name], check=True, capture_output=True, text=True)
            if "isrs: 1" in out.stdout:
                return
            time.sleep(0.1)

    def delete(self, names):
        self.tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", self.bootstrap, "--delete", "--topic", names)

    def count(self, name, partitions):
        """The messages of a topic: each of its partitions begins at 0."""
        ends = [word for number in range(partitions) for word in ("-t", f"{name}:{number}:-1")]
        out = subprocess.run(["kcat", "-Q", "-b", self.bootstrap, *ends], check=True, capture_output=True, text=True)
        return sum(int(line.rsplit(" ", 1)[1]) for line in out.stdout.splitlines())


def measured(command, **how):
    """Wall time, CPU time and stdout of a command."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
    out = process.communicate()[0]
    wall, after = time.monotonic() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, f"failed: {command}"
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out


def monitor(ringtap, capture, *flags):
    words = ["monitor", "-q", "--report", "json", "--analyses", "flows", "--queues", "2", "--seed", "1"]
    return [ringtap, *words, "-r", capture, *flags]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ringtap", nargs="+")
    parser.add_argument("--packets", default="3M")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--round-trips", default="0,20", help="milliseconds")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    round_trips = [int(number) for number in options.round_trips.split(",")]
    programs = {os.path.relpath(path): os.path.realpath(path) for path in options.ringtap}
    with tempfile.TemporaryDirectory() as folder:
        capture, lines = f"{folder}/w2.pcap", f"{folder}/lines"
        ringtap = next(iter(programs.values()))
        generate = ["generate", "--profile", "w2", "--packets", options.packets, "--seed", "1", "-w", capture]
        subprocess.run([ringtap, *generate], check=True, capture_output=True)
        records = prepare(ringtap, capture, lines)

        # Function of an address and a topic: a command, and the number of messages that it adds.
        candidates = {}
        for name, path in programs.items():
            for label, query in FORMATS.items():
                candidates[f"{name}, {label}"] = lambda address, topic, path=path, query=query: monitor(
                    path, capture, "--probe", "site", "--export", f"kafka://{address}/{topic}?{query}"
                )
        for name, more in KCAT.items():
            words = ["-P", "-K", "\t", "-X", "enable.idempotence=true", "-X", "acks=all", *more, "-l", lines]
            for header in ("format=json", "probe=site", "run=0123456789abcdef", "sequence=500000", "partition-sequence=125000"):
                words += ["-H", header]
            candidates[name] = lambda address, topic, words=words: ["kcat", "-b", address, "-t", topic, *words]

        broker = Broker(folder, round_trips, options.partitions)
        try:
            trials = {(rtt, name): [] for rtt in round_trips for name in candidates}
            alone = []
            order = random.Random(SEED)
            for number in range(options.rounds):
                alone.append(measured(monitor(ringtap, capture))[0])
                for place, (rtt, name) in enumerate(order.sample(list(trials), len(trials))):
                    topic = f"flows-{number}-{place}"
                    broker.create(topic)
                    wall, cpu, out = measured(candidates[name](broker.address[rtt], topic), stderr=subprocess.DEVNULL)
                    sent = json.loads(out)["export"][0]["sent"]["messages"] if out else records
                    # Ringtap adds a message with statistics.
                    count = broker.count(topic, options.partitions)
                    assert count in (sent, sent + bool(out)), f"{name}: {sent} messages sent, {count} in the topic"
                    trials[rtt, name].append((sent / wall, wall, cpu / sent * 1e6))
                broker.delete(f"flows-{number}-.*")
        finally:
            broker.process.kill()
            broker.process.wait()
    print(f"{machine()}; {records:,} records, {options.partitions} partitions, {options.rounds} rounds;", end=" ")
    print(f"a run without output takes {statistics.median(alone):.2f} s\n")
    print("| round trip | sender | messages/s: median, range | wall s | CPU µs a message |\n|---|---|---|---|---|")
    for (rtt, name), all_rounds in trials.items():
        rates, walls, cpus = zip(*all_rounds)
        rate = f"{statistics.median(rates):,.0f}, {min(rates):,.0f}–{max(rates):,.0f}"
        print(f"| {rtt} ms | {name} | {rate} | {statistics.median(walls):.2f} | {statistics.median(cpus):.2f} |")


def prepare(ringtap, capture, lines):
    """Writes the records as kcat reads them: key, tab, line. Returns their number."""
    subprocess.run(monitor(ringtap, capture, "--write", f"json:{lines}.json"), check=True, stdout=subprocess.DEVNULL)
    count = 0
    with open(f"{lines}.json") as records, open(lines, "w") as keyed:
        for line in records:
            key = line.split('"communityId":"', 1)[1].split('"', 1)[0]
            keyed.write(f"{key}\t{line}")
            count += 1
    os.remove(f"{lines}.json")
    return count


if __name__ == "__main__":
    assert shutil.which("java") and shutil.which("kcat"), "java or kcat is missing"
    main()
