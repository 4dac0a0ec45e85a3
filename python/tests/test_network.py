"""A network of probes, a broker of Kafka and Spark: the example, and the report when parts of it fail."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ringtap

import kafka
from conftest import OFFICE
from kafka import EXAMPLE

kafka.skip_without_kafka()

SITES = ["north", "south", "west"]

# The report of one run over all packets.
WHOLE = ringtap.monitor(OFFICE, digest=True, interval="1s", flows=False).report


@pytest.fixture(scope="module")
def program():
    program = os.environ.get("RINGTAP")
    assert program, "set RINGTAP to the program"
    return program


def wait(is_done, what, seconds=180):
    """Waits until `is_done()` is true, and returns its result."""
    for _ in range(10 * seconds):
        if result := is_done():
            return result
        time.sleep(0.1)
    raise AssertionError(f"{what} within {seconds} s")


def processes(words):
    """The numbers of processes whose command line has these words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if words.encode() in path.read_bytes().replace(b"\0", b" "):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_the_example_starts_prints_one_report_and_stops(program, tmp_path):
    folder = tmp_path / "network"
    environment = os.environ | {"RINGTAP": program, "PYTHON": sys.executable, "PORT": str(kafka.free_port())}
    run = lambda name: subprocess.run([EXAMPLE / name, folder], env=environment, capture_output=True, text=True, timeout=500)
    started = run("start")
    try:
        log = folder / "log"
        assert started.returncode == 0, started.stderr + (log.read_text() if log.exists() else "")
        assert "Vertical scans" in started.stdout
        network = json.loads((folder / "network.json").read_text())
        assert network["exact"] and network["digest"] == WHOLE["digest"]
        rows = [json.loads(path.read_text()) for path in folder.glob("reports/*.json")]
        assert len(rows) > 2 and not any(row["incomplete"] or row["errors"] for row in rows)
        again = run("start")
        assert again.returncode == 1 and "is in use" in again.stderr
        assert processes(str(folder))
    finally:
        stopped = run("stop")
    assert stopped.returncode == 0, stopped.stderr
    assert not processes(str(folder))


class Network:
    """A broker, and Spark with two executors that reports to a folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "broker").mkdir()
        self.broker = kafka.Broker(folder / "broker")
        self.start_spark()

    def start_spark(self):
        words = [sys.executable, EXAMPLE / "report.py", self.broker.address, kafka.TOPIC, self.folder]
        words += ["--probes", ",".join(SITES), "--master", "local-cluster[2,1,1024]", "--jars", kafka.connector()]
        with open(self.folder / "spark.log", "ab") as log:
            self.spark = subprocess.Popen(words, stdout=log, stderr=log)

    def rows(self):
        assert self.spark.poll() is None, (self.folder / "spark.log").read_text()[-5000:]
        return [json.loads(path.read_text()) for path in sorted(self.folder.glob("reports/*.json"))]

    def executors(self):
        """The processes of executors of this Spark."""
        return [pid for pid in processes("CoarseGrainedExecutorBackend") if is_within(pid, self.spark.pid)]

    def end(self):
        self.spark.terminate()
        self.spark.wait()
        self.broker.kill()


def is_within(pid, ancestor):
    """Whether a process descends from another."""
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            return False
    return False


@pytest.fixture
def network(tmp_path):
    network = Network(tmp_path)
    yield network
    network.end()


def test_a_network_with_failures_has_the_report_of_one_run_or_names_what_it_lacks(program, network, tmp_path):
    captures = {site: tmp_path / f"{site}.pcap" for site in SITES}
    subprocess.run([EXAMPLE / "split.py", OFFICE, *captures.values()], check=True)

    def probe(site, source="-", **options):
        words = [program, "monitor", "-q", "-r", source, "--probe", site, "--interval", "1s", "--report", "json"]
        words += ["--export", network.broker.url]
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def check(process):
        report, errors = process.communicate()
        assert process.returncode == 0, errors
        sent = json.loads(report)["export"][0]
        assert sent["sent"]["records"] >= 1 and sent["not_sent"] == {}

    check(probe("north", captures["north"]))
    wait(lambda: any(row["probes"] == ["north"] for row in network.rows()), "a report of one probe")

    # A probe is killed in the middle of its capture.
    killed = probe("south")
    data = captures["south"].read_bytes()
    killed.stdin.write(data[: len(data) // 2])
    killed.stdin.flush()
    time.sleep(1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    # The broker is killed while a probe runs, and an executor while the broker is down.
    west = probe("west")
    data = captures["west"].read_bytes()
    west.stdin.write(data[: len(data) // 2])
    west.stdin.flush()
    network.broker.kill()
    executors = wait(network.executors, "an executor")
    os.kill(executors[0], signal.SIGKILL)
    time.sleep(2)
    network.broker.start()
    west.stdin.write(data[len(data) // 2 :])
    check(west)

    def network_report():
        path = tmp_path / "network.json"
        report = json.loads(path.read_text()) if path.exists() else {"runs": []}
        return report if {"north", "west"} <= {run["probe"] for run in report["runs"]} else None

    report = wait(network_report, "a report of two probes")
    south = [run for run in report["runs"] if run["probe"] == "south"]
    assert "digest" not in report or report["digest"] != WHOLE["digest"]
    if south:
        # The states of its first intervals arrived.
        assert not south[0]["ended"] and not report["exact"]
        return
    assert any("south" in row["missing"] for row in network.rows())
    # No state of it had arrived, so it may run again.
    check(probe("south", captures["south"]))
    wait(lambda: (tmp_path / "complete").exists(), "the report of all probes")
    report = json.loads((tmp_path / "network.json").read_text())
    assert (report["exact"], report["digest"], len(report["runs"])) == (True, WHOLE["digest"], 3)
    assert all(row["incomplete"] == row["errors"] == [] for row in network.rows())


def test_a_restarted_spark_continues_from_its_checkpoint(program, network, tmp_path):
    captures = [tmp_path / f"{site}.pcap" for site in SITES]
    subprocess.run([EXAMPLE / "split.py", OFFICE, *captures], check=True)
    for number, (site, capture) in enumerate(zip(SITES, captures)):
        words = [program, "monitor", "-q", "-r", capture, "--probe", site, "--interval", "1s", "--export", network.broker.url]
        assert subprocess.run(words, capture_output=True).returncode == 0
        wait(lambda: any(site in row["probes"] for row in network.rows()), f"a report with {site}")
        if number == 0:
            # The driver, and with it all executors.
            network.spark.kill()
            network.spark.wait()
            network.start_spark()
    wait(lambda: (tmp_path / "complete").exists(), "the report of all probes")
    report = json.loads((tmp_path / "network.json").read_text())
    assert report["digest"] == WHOLE["digest"]
