"""A broker of Kafka on loopback, as in examples/network, for tests with Spark."""

import os
import shutil
import socket
import subprocess

import pytest

from conftest import ROOT

EXAMPLE = ROOT / "examples/network"
JARS = ROOT / "target/test-tools/spark"
TOPIC = "states"


def skip_without_kafka():
    """Skips a module of tests unless the long tests run."""
    if os.environ.get("RINGTAP_FULL") != "1":
        pytest.skip("tests with Spark and Kafka run with RINGTAP_FULL=1 (make test-all)", allow_module_level=True)
    assert JARS.is_dir() and shutil.which("java"), "RINGTAP_FULL=1 scripts/setup-test.sh"


def connector():
    """The connector of Spark to Kafka, for the setting spark.jars."""
    return ",".join(map(str, JARS.glob("*.jar")))


def free_port():
    """A port that is free, as the one after it is."""
    while True:
        with socket.socket() as one, socket.socket() as other:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
            try:
                other.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):
                continue


class Broker:
    """A running broker with the topic TOPIC."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.url = f"kafka://{self.address}/{TOPIC}?format=state"
        self.start()

    def start(self):
        with open(self.folder / "log", "ab") as log:
            words = [EXAMPLE / "broker", self.folder / "kafka", str(self.port)]
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        subprocess.run([EXAMPLE / "topic", self.address, TOPIC], check=True, capture_output=True)

    def kill(self):
        self.process.kill()
        self.process.wait()
