"""Flow records while a run goes on."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow
import pytest

import ringtap

# Ends a test that hangs.
LIMIT_S = 120


def rows(*tables):
    """The rows of Arrow tables, in an order of their own."""
    return sorted(str(row) for table in tables for row in pyarrow.table(table).to_pylist())


def test_batches_are_the_flows_of_a_run(office):
    stream = ringtap.stream(office)
    batches = list(stream)
    whole = ringtap.monitor(office, state=False)
    assert rows(*batches) == rows(whole.flows)
    assert stream.run.report["flows"] == whole.report["flows"]
    assert stream.run.flows is None and stream.run.state is None
    assert list(stream) == []


def test_periods_filters_and_columns_choose(office):
    ports = ["sourceTransportPort", "destinationTransportPort"]
    stream = ringtap.stream(office, every="1s", flows="udp port 53", columns=ports, idle_timeout="1s")
    batches = [pyarrow.table(batch) for batch in stream]
    assert len(batches) > 1, "the capture has 6.8 seconds"
    assert all(batch.column_names == ports for batch in batches)
    found = [row for batch in batches for row in batch.to_pylist()]
    assert found and all(53 in row.values() for row in found)
    every = pyarrow.table(ringtap.monitor(office, state=False, idle_timeout="1s").flows).to_pylist()
    dns = [row for row in every if row["protocolIdentifier"] == 17 and 53 in (row[ports[0]], row[ports[1]])]
    assert len(found) == len(dns)


def test_a_filter_is_of_the_stream_alone(office, tmp_path):
    written = tmp_path / "all.json"
    count = sum(len(batch) for batch in ringtap.stream(office, flows="udp port 53", write=f"json:{written}"))
    assert 0 < count < len(written.read_text().splitlines())


def test_a_slow_consumer_gets_all_records(office):
    count = 0
    for batch in ringtap.stream(office, every="1s", waiting=1, idle_timeout="1s"):
        time.sleep(0.05)
        count += len(batch)
    assert count == len(ringtap.monitor(office, state=False, idle_timeout="1s").flows)


@pytest.mark.parametrize("kind", ["close", "with", "deleted"])
def test_a_consumer_that_stops_ends_the_run(office, tmp_path, kind):
    """The capture never ends: its writer stays."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = threading.Event()

    def write():
        try:
            with pipe.open("wb") as writer:
                writer.write(office.read_bytes())
                writer.flush()
                ended.wait(LIMIT_S)
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    stream = ringtap.stream(pipe, idle_timeout="1s", every="1s")
    assert len(next(stream)) > 0
    if kind == "close":
        stream.close()
        assert stream.run.report["packets"]["received"] > 0
    elif kind == "with":
        with pytest.raises(ZeroDivisionError), stream:
            1 / 0
        assert stream.run is not None
    else:
        del stream
        gc.collect()
    ended.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


READING = """
import sys, ringtap
try:
    for batch in ringtap.stream(sys.argv[1], idle_timeout="1s", every="1s"):
        print("batch", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_an_interrupt_ends_a_stream(office, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen([sys.executable, "-c", READING, pipe], stdout=subprocess.PIPE, text=True)
    with pipe.open("wb") as writer:
        writer.write(office.read_bytes())
        writer.flush()
        assert process.stdout.readline() == "batch\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LIMIT_S)
    assert rest.endswith("interrupted\n")
    assert process.returncode == 0


def test_what_cannot_be_streamed_is_an_error(office, tmp_path):
    with pytest.raises(ringtap.Error, match="no such file"):
        next(ringtap.stream(tmp_path / "none.pcap"))
    with pytest.raises(ringtap.Error, match="the expression"):
        ringtap.stream(office, flows="tcp prot 53")
    with pytest.raises(ringtap.Error, match="nothing"):
        next(ringtap.stream(office, columns=["nothing"]))
    with pytest.raises(ringtap.Error, match="stream has flow records"):
        next(ringtap.stream(office, analyses="volumes"))
    with pytest.raises(ringtap.Error, match="invalid strings"):
        ringtap.stream(office, strings="long")
    with pytest.raises(ringtap.Error, match="duration cannot be used in Python"):
        ringtap.stream(office, duration="1s")


def test_an_interface_is_streamed():
    stream = ringtap.stream("lo", duration="2s", filter="tcp port 9")
    try:
        assert sum(len(batch) for batch in stream) == 0
    except ringtap.Error as error:
        if "CAP_NET_RAW" not in str(error):
            raise
        pytest.skip("packet sockets need CAP_NET_RAW")
    assert stream.run.report["packets"]["dropped"] == {}
