"""`ringtap.analysis`: results in order, whatever the pool, and errors of each kind end it."""

import os
import signal
import subprocess
import sys
import threading

import pyarrow
import pytest

import ringtap

from test_stream import LIMIT_S

FLAGS = {"every": "1s", "idle_timeout": "1s", "sequential": True, "columns": ["flowStartMilliseconds", "octetDeltaCount"]}

# Batches in the pool, for each worker.
IN_POOL = 2


def rows(batch):
    return pyarrow.table(batch).to_pylist()


def length(batch):
    return len(batch)


def divided(batch):
    return 1 // 0


def killed(batch):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_results_are_those_of_a_loop_in_its_order(office, workers, processes):
    alone = [rows(batch) for batch in ringtap.stream(office, **FLAGS)]
    assert len(alone) > 3, "the capture has 6.8 seconds"
    stream = ringtap.stream(office, **FLAGS)
    assert list(ringtap.analysis(rows, stream, workers=workers, processes=processes)) == alone
    assert stream.run.report["flows"]["records"] == sum(map(len, alone))


def test_by_default_there_is_a_worker_for_each_core(office):
    whole = len(ringtap.monitor(office, idle_timeout="1s").flows)
    assert sum(ringtap.analysis(length, ringtap.stream(office, idle_timeout="1s"))) == whole


def test_few_batches_are_in_the_pool(office):
    """The first call waits until the pool is full, and no batch follows then."""
    full, started = threading.Event(), []

    class Counted:
        """A stream that counts its batches."""

        def __init__(self, stream):
            self.stream, self.taken = stream, 0
            self.close = stream.close

        def __iter__(self):
            for batch in self.stream:
                self.taken += 1
                if self.taken == IN_POOL:
                    full.set()
                yield batch

    def slow(batch):
        assert full.wait(LIMIT_S)
        started.append(counted.taken)

    counted = Counted(ringtap.stream(office, **FLAGS))
    results = ringtap.analysis(slow, counted, workers=1)
    next(results)
    assert started[0] == IN_POOL and counted.taken == IN_POOL
    results.close()
    assert counted.stream.run is not None


@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_an_exception_has_the_number_of_its_batch_and_ends_the_run(office, processes):
    stream = ringtap.stream(office, **FLAGS)
    with pytest.raises(ringtap.Error, match="^batch 1: ZeroDivisionError: ") as raised:
        list(ringtap.analysis(divided, stream, workers=2, processes=processes))
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert stream.run is not None and list(stream) == []


def test_the_results_before_an_exception_are_there(office):
    numbers = iter(range(1, 100))

    def third(batch):
        number = next(numbers)
        if number == 3:
            raise LookupError("the third")
        return number

    found = []
    with pytest.raises(ringtap.Error, match="^batch 3: LookupError: the third$"):
        for result in ringtap.analysis(third, ringtap.stream(office, **FLAGS), workers=1):
            found.append(result)
    assert found == [1, 2]


def test_a_killed_process_is_an_error(office):
    stream = ringtap.stream(office, **FLAGS)
    with pytest.raises(ringtap.Error, match="a process of the pool was killed"):
        list(ringtap.analysis(killed, stream, workers=2, processes=True))
    assert stream.run is not None


def test_a_function_that_is_of_no_module_needs_threads(office):
    with pytest.raises(ringtap.Error, match="^batch 1: .*pickle"):
        list(ringtap.analysis(lambda batch: 1, ringtap.stream(office, **FLAGS), workers=1, processes=True))
    assert set(ringtap.analysis(lambda batch: 1, ringtap.stream(office, **FLAGS), workers=1)) == {1}


def test_an_error_of_the_run_follows_the_results(office, tmp_path):
    text = tmp_path / "text.pcap"
    text.write_text("hello, this is a text\n")
    results = ringtap.analysis(length, ringtap.stream([office, text]), workers=2)
    found = []
    with pytest.raises(ringtap.Error, match="text.pcap") as raised:
        for result in results:
            found.append(result)
    assert raised.value.run.report["flows"]["records"] >= sum(found)


def test_a_pool_has_a_worker(office):
    with pytest.raises(ValueError, match="greater than 0"):
        next(ringtap.analysis(length, ringtap.stream(office), workers=0))


READING = """
import sys, time, ringtap

def slow(batch):
    time.sleep(0.1)
    return len(batch)

if __name__ == "__main__":
    stream = ringtap.stream(sys.argv[1], idle_timeout="1s", every="1s")
    try:
        for result in ringtap.analysis(slow, stream, workers=2, processes=sys.argv[2] == "processes"):
            print("result", flush=True)
    except KeyboardInterrupt:
        print("interrupted", stream.run is not None, flush=True)
"""


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_interrupt_ends_an_analysis(office, tmp_path, kind):
    """The capture never ends: its writer stays. Workers get the interrupt of a terminal, too."""
    script, pipe = tmp_path / "reading.py", tmp_path / "pipe"
    script.write_text(READING)
    os.mkfifo(pipe)
    words = [sys.executable, script, pipe, kind]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    with pipe.open("wb") as writer:
        writer.write(office.read_bytes())
        writer.flush()
        assert process.stdout.readline() == "result\n"
        os.killpg(process.pid, signal.SIGINT)
        rest, errors = process.communicate(timeout=LIMIT_S)
    assert rest.endswith("interrupted True\n"), errors
    assert process.returncode == 0 and errors == ""
