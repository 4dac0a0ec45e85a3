"""A run releases the interpreter, and an interrupt ends it."""

import os
import signal
import subprocess
import sys
import threading

import ringtap

# Ends a test that hangs.
LIMIT_S = 120

READING = """
import sys, ringtap
print("reading", flush=True)
try:
    ringtap.monitor(sys.argv[1], write="json:" + sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
    print(ringtap.monitor(sys.argv[3]).report["packets"]["received"], flush=True)
"""


def test_an_interrupt_ends_a_run(office, tmp_path):
    pipe, records = tmp_path / "pipe", tmp_path / "flows.json"
    os.mkfifo(pipe)
    process = subprocess.Popen([sys.executable, "-c", READING, pipe, records, office], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "reading\n"
    # Opening waits for the reader. The writer stays: the run itself does not end.
    with pipe.open("wb") as writer:
        writer.write(office.read_bytes())
        writer.flush()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
    rest, _ = process.communicate(timeout=LIMIT_S)
    assert int(rest) > 0, "a later run is complete"
    assert process.returncode == 0
    assert records.exists(), "the records so far are written"


def test_other_threads_work_during_a_run(office, tmp_path):
    """The capture comes from a thread of the same interpreter."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    runs = []
    thread = threading.Thread(target=lambda: runs.append(ringtap.monitor(pipe)), daemon=True)
    thread.start()
    with pipe.open("wb") as writer:
        for byte in range(0, office.stat().st_size, 4096):
            writer.write(office.read_bytes()[byte:byte + 4096])
    thread.join(LIMIT_S)
    assert runs[0].report["packets"]["received"] == ringtap.monitor(office).report["packets"]["received"]
