"""The main part of soak.sh. Runs in the monitor's network namespace.

Usage: soak.py RINGTAP LEFT FOLDER SECONDS

LEFT is the namespace that sends the frames. FOLDER is a small file system.
"""

import glob
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

RINGTAP, LEFT, FOLDER, SECONDS = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
HANGUP_EVERY = 30 if SECONDS >= 300 else 10
COLLECTOR_LIVES, COLLECTOR_DOWN = (20, 10) if SECONDS >= 300 else (6, 3)
DISK_FULL_EVERY, DISK_FULL_FOR = (60, 15) if SECONDS >= 300 else (15, 4)
IDLE_CONNECTIONS = 200
SCRAPE_TIMEOUT = 20
# Bound on the peak resident memory of the last third of the run, relative to that of the first two
# thirds. Allocators keep freed memory, so the peak may grow a little.
GROWTH = 1.15

begin = time.monotonic()
end = begin + SECONDS
# Set after the last frame, and after the end of the monitor.
over, ended = threading.Event(), threading.Event()
lines_deleted = 0
# Failures of threads, reported by the main thread.
failures = []


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tcp_collector(port):
    """Reads connections. Stops after COLLECTOR_LIVES seconds and restarts, until the run is over.

    It stays up while the monitor ends.
    """
    while not ended.is_set():
        with socket.create_server(("127.0.0.1", port), reuse_port=True) as server:
            server.settimeout(0.5)
            stop = time.monotonic() + COLLECTOR_LIVES
            connections = []
            while (time.monotonic() < stop or over.is_set()) and not ended.is_set():
                try:
                    connection, _ = server.accept()
                    connection.settimeout(0.05)
                    connections.append(connection)
                except TimeoutError:
                    pass
                for connection in list(connections):
                    try:
                        while connection.recv(1 << 20):
                            pass
                        connections.remove(connection)
                    except TimeoutError:
                        pass
                    except OSError:
                        connections.remove(connection)
            for connection in connections:
                # SO_LINGER of 0 resets the connection, as the kernel does for a killed process.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()
        over.wait(COLLECTOR_DOWN)


def udp_collector(port):
    while not ended.is_set():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", port))
            server.settimeout(0.2)
            stop = time.monotonic() + COLLECTOR_LIVES
            while (time.monotonic() < stop or over.is_set()) and not ended.is_set():
                try:
                    server.recv(65536)
                except TimeoutError:
                    pass
        over.wait(COLLECTOR_DOWN)


def count_and_delete(path):
    """Adds the lines of a finished file to lines_deleted and deletes the file to free space."""
    global lines_deleted
    with open(path, "rb") as file:
        lines_deleted += sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    os.remove(path)


def generate():
    """Sends frames at the highest possible rate until the run is over."""
    seed = 0
    while not over.is_set():
        seed += 1
        command = ["ip", "netns", "exec", LEFT, RINGTAP, "generate", "-i", "left"]
        command += ["--profile", "mix", "--packets", "2M", "--seed", str(seed)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while child.poll() is None and not over.is_set():
            time.sleep(0.1)
        child.terminate()
        _, errors = child.communicate()
        if child.returncode not in (0, -signal.SIGTERM, 130) and not over.is_set():
            failures.append(f"the generator failed: {errors.decode()}")
            return


class Idle:
    """Connections to the metrics port that send nothing."""

    def __init__(self, port):
        self.port, self.connections = port, []

    def fill(self):
        """Replaces connections that the server has closed."""
        alive = []
        for connection in self.connections:
            try:
                if connection.recv(1, socket.MSG_PEEK):
                    alive.append(connection)
                else:
                    connection.close()
            except BlockingIOError:
                alive.append(connection)
            except OSError:
                connection.close()
        self.connections = alive
        while len(self.connections) < IDLE_CONNECTIONS:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=5)
            connection.setblocking(False)
            self.connections.append(connection)


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def main():
    tcp, udp, metrics = (free_port(socket.SOCK_STREAM), free_port(socket.SOCK_DGRAM),
                         free_port(socket.SOCK_STREAM))
    for collector, port in ((tcp_collector, tcp), (udp_collector, udp)):
        threading.Thread(target=collector, args=(port,), daemon=True).start()
    flows = os.path.join(FOLDER, "flows.json")
    command = [RINGTAP, "monitor", "-i", "right", "--queues", "2", "--interval", "5s", "--idle-timeout", "2s",
               "--active-timeout", "10s", "--memory", "256M", "--report", "json", "--metrics", f"127.0.0.1:{metrics}",
               "--write", f"json:{flows}", "--export", f"ipfix+tcp://127.0.0.1:{tcp}",
               "--export", f"netflow9://127.0.0.1:{udp}"]
    with open("/dev/null") as nothing:
        monitor = subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    messages = []
    listening = threading.Event()

    def read_messages():
        for line in monitor.stderr:
            messages.append(line)
            if line.startswith("listening: "):
                listening.set()

    threading.Thread(target=read_messages, daemon=True).start()
    if not listening.wait(60):
        sys.exit("soak: the monitor does not listen: " + "".join(messages))
    generator = threading.Thread(target=generate, daemon=True)
    generator.start()
    idle, resident, slowest, scrapes = Idle(metrics), [], 0.0, 0
    ballast = os.path.join(FOLDER, "ballast")
    hangup, fill, freed = begin + HANGUP_EVERY, begin + DISK_FULL_EVERY / 2, None
    while time.monotonic() < end:
        time.sleep(1)
        now = time.monotonic()
        if monitor.poll() is not None:
            sys.exit("soak: the monitor ended: " + "".join(messages[-20:]))
        if failures:
            sys.exit("soak: " + "; ".join(failures))
        idle.fill()
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=SCRAPE_TIMEOUT) as answer:
            assert b"ringtap_packets_total" in answer.read()
        slowest, scrapes = max(slowest, time.monotonic() - now), scrapes + 1
        resident.append(resident_kib(monitor.pid))
        if freed is None and now >= fill:
            # Fills the disk, so that the next block of records does not fit.
            with open(ballast, "wb") as file:
                try:
                    while True:
                        file.write(bytes(1 << 20))
                        file.flush()
                except OSError:
                    pass
            freed = now + DISK_FULL_FOR
        elif freed is not None and now >= freed:
            os.remove(ballast)
            fill, freed = now + DISK_FULL_EVERY, None
        if now >= hangup:
            hangup = now + HANGUP_EVERY
            monitor.send_signal(signal.SIGHUP)
        # Finished files match; the file being written has a hidden name.
        for path in glob.glob(flows + "*"):
            count_and_delete(path)
    over.set()
    generator.join()
    if os.path.exists(ballast):
        os.remove(ballast)
    # Free space for the records that still wait.
    for _ in range(2):
        monitor.send_signal(signal.SIGHUP)
        time.sleep(6)
        for path in glob.glob(flows + "*"):
            count_and_delete(path)
    monitor.send_signal(signal.SIGINT)
    out = monitor.stdout.read()
    code = monitor.wait()
    ended.set()
    for path in glob.glob(flows + "*"):
        count_and_delete(path)
    report = json.loads(out)
    check(report, code, messages, resident, slowest, scrapes)


def check(report, code, messages, resident, slowest, scrapes):
    faults = []

    def expect(condition, fault):
        if not condition:
            faults.append(fault)

    packets, records = report["packets"], report["flows"]["records"]
    expect(report["ledger"]["residual"] == 0, f"residual {report['ledger']['residual']}")
    expect(packets["handled"] > 100_000, f"only {packets['handled']} packets handled")
    file, (tcp, udp) = report["write"][0], report["export"]
    lost = sum(file["not_written"].values())
    expect(file["records"] + lost == records, f"file: {file['records']} written + {lost} lost is not {records}")
    expect(lines_deleted == file["records"], f"file: {lines_deleted} lines, but {file['records']} in the report")
    for one, each_direction in ((tcp, False), (udp, True)):
        counted = one["sent"]["packets"] + sum(lost["packets"] for lost in one["not_sent"].values())
        expect(counted > 0, f"{one['collector']}: no packets in the report")
        if not each_direction:
            counted = one["sent"]["records"] + sum(lost["records"] for lost in one["not_sent"].values())
            expect(counted == records, f"{one['collector']}: {counted} of {records} records accounted for")
    expect(tcp["sent"]["records"] > 0 and udp["sent"]["records"] > 0, "a collector received no records")
    third = len(resident) // 3
    early, late = max(resident[:third * 2]), max(resident[-third:])
    expect(late <= early * GROWTH, f"memory grew from {early} to {late} KiB")
    text = "".join(messages)
    expect("No space left" in text, "a full disk was never reported")
    expect("trying again" in text, "a collector that was down was never reported")
    expect(scrapes > 0, "no scrape succeeded")
    expect(code == 0, f"exit code {code}: " + "".join(messages[-5:]))
    dropped = sum(packets["dropped"].values())
    print(f"soak: {SECONDS} s, {packets['received']:,} frames received, {dropped:,} dropped "
          f"({', '.join(f'{reason} {count:,}' for reason, count in packets['dropped'].items()) or 'none'}), residual "
          f"{report['ledger']['residual']}")
    print(f"soak: {records:,} flow records; file {file['records']:,}, lost {file['not_written']}; "
          f"TCP {tcp['sent']['records']:,}, UDP {udp['sent']['records']:,} records sent")
    for one in (tcp, udp):
        lost = {reason: counts["records"] for reason, counts in one["not_sent"].items()}
        print(f"soak: {one['collector']} lost {lost}")
    print(f"soak: peak resident memory {early:,} KiB in the first two thirds, {late:,} KiB in the last third; "
          f"{scrapes} scrapes, the slowest {slowest:.2f} s; exit code {code}")
    if faults:
        sys.exit("soak: " + "; ".join(faults))


main()
