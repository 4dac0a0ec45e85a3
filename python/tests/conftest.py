"""Fixtures, and a summary in the form that scripts/summarise.sh reads."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OFFICE = ROOT / "examples/office.pcap"
TRACES = ROOT.parent / "shared/traces"


def captures():
    """The bundled capture, and captures of real traffic if `shared/traces` exists."""
    found = [path for path in TRACES.glob("**/*") if ".pcap" in path.name or path.suffix == ".trace"]
    return [OFFICE, *sorted(found)]


@pytest.fixture(scope="session")
def command():
    """Runs `ringtap` and returns its finished process. RINGTAP is the program."""
    program = os.environ.get("RINGTAP") or shutil.which("ringtap")
    if program is None:
        pytest.skip("the program ringtap is not built: set RINGTAP to its path")
    environment = {name: value for name, value in os.environ.items() if name not in ("RINGTAP_LOG", "CLICOLOR_FORCE")}

    def run(*words, **options):
        return subprocess.run([program, *map(str, words)], capture_output=True, env=environment | {"NO_COLOR": "1"}, **options)

    return run


@pytest.fixture
def office():
    return OFFICE


@pytest.fixture(scope="session")
def spark():
    """A session with two executors, each a process. Only with pyspark, which `make test-all` installs."""
    reason = "pyspark is missing (RINGTAP_FULL=1 scripts/setup-test.sh installs it)"
    builder = pytest.importorskip("pyspark.sql", reason=reason).SparkSession.builder
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # merge_stream says why.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        # The connector to Kafka.
        "spark.jars": ",".join(map(str, ROOT.glob("target/test-tools/spark/*.jar"))),
    }
    builder = builder.master("local-cluster[2,1,1024]").appName("ringtap")
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Rows have times of UTC.
    os.environ["TZ"] = "UTC"
    time.tzset()
    session = builder.getOrCreate()
    yield session
    session.stop()


def pytest_generate_tests(metafunc):
    if "capture" in metafunc.fixturenames:
        metafunc.parametrize("capture", captures(), ids=lambda path: path.name)


def pytest_terminal_summary(terminalreporter):
    """Prints failed and skipped tests and the total as Rust's tests do. A skipped test counts as passed and has a line."""
    if not TRACES.exists():
        print("SKIPPED: no folder of real captures next to the project (shared/traces)")
    reports = {kind: terminalreporter.stats.get(kind, []) for kind in ("passed", "failed", "error", "skipped")}
    for report in reports["skipped"]:
        print(f"SKIPPED: {report.longrepr[2].removeprefix('Skipped: ')}")
    failed = [(report.nodeid.replace(" ", "_"), report) for report in reports["failed"] + reports["error"]]
    for name, _ in failed:
        print(f"test {name} ... FAILED")
    for name, report in failed:
        print(f"---- {name} stdout ----\n{report.longreprtext}")
    print("failures:")
    passed = len(reports["passed"]) + len(reports["skipped"])
    print(f"test result: {'FAILED' if failed else 'ok'}. {passed} passed; {len(failed)} failed; 0 ignored")
