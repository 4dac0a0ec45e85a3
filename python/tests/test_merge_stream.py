"""`ringtap.spark.merge_stream` with a broker of Kafka and two executors."""

import json
import re
import time
from datetime import datetime, timedelta, timezone

import pytest
import ringtap

import kafka
from conftest import ROOT
from test_states import split

kafka.skip_without_kafka()

import ringtap.spark

# The beginning of an interval of a minute.
BEGIN = datetime(2026, 11, 21, 2, 8, tzinfo=timezone.utc)
CHUNK = 8_000


@pytest.fixture
def broker(tmp_path):
    folder = tmp_path / "broker"
    folder.mkdir()
    broker = kafka.Broker(folder)
    yield broker
    broker.kill()


def messages(state, probe, run, minute, part=0, last=True):
    """The messages of a state whose time is this minute after BEGIN."""
    begin = BEGIN + timedelta(minutes=minute)
    ns = int(begin.timestamp()) * 1_000_000_000
    chunks = [state[at : at + CHUNK] for at in range(0, len(state), CHUNK)]
    texts = {"format": "state", "probe": probe, "part": part, "last": str(last).lower(), "from": ns + 1, "until": ns + 60 * 10**9}
    texts |= {"chunks": len(chunks), "run": run, "sequence": 0}
    return [(f"{probe} {run} {part}", chunk, texts | {"chunk": number}) for number, chunk in enumerate(chunks)]


def send(spark, broker, all_messages):
    """Sends messages: key, value and headers."""
    pack = lambda headers: [(name, str(value).encode()) for name, value in headers.items()]
    rows = [(key.encode(), bytes(value), pack(headers)) for key, value, headers in all_messages]
    columns = "key binary, value binary, headers array<struct<key string, value binary>>"
    frame = spark.createDataFrame(rows, columns).coalesce(1)
    options = {"kafka.bootstrap.servers": broker.address, "topic": kafka.TOPIC, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()


class Query:
    """A running query that collects its rows by the beginning of their interval."""

    def __init__(self, spark, broker, folder, mode, **options):
        # Rows of intervals by their beginning, and those of states that are in none.
        self.rows, self.counted = {}, []
        options = {"brokers": broker.address, "topic": kafka.TOPIC, "interval": "60s", "mode": mode, "digest": True} | options
        frame = ringtap.spark.merge_stream(spark, options)
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(folder / "checkpoint"))
        self.query = writer.foreachBatch(self.take).start()

    def take(self, batch, _):
        for row in batch.collect():
            counted = {"late": row.late, "ahead": row.ahead}
            if row.late or row.ahead:
                self.counted.append((row.start.replace(tzinfo=timezone.utc), counted))
            else:
                self.rows.setdefault(row.start.replace(tzinfo=timezone.utc), []).append(row)

    def wait(self, is_done):
        """Returns the rows when `is_done(rows)`."""
        for _ in range(6000):
            assert self.query.exception() is None, self.query.exception()
            if is_done(self.rows):
                return self.rows
            time.sleep(0.1)
        raise AssertionError(f"no such rows: {self.rows}")

    def stop(self):
        self.query.stop()


def of(rows, minute):
    """The latest row of the interval at this minute."""
    return rows[BEGIN + timedelta(minutes=minute)][-1]


@pytest.fixture
def states(office, tmp_path):
    """The states of two probes, and the digest of one run over both."""
    parts = [ringtap.monitor(path, flows=False, probe=name) for path, name in zip(split(office, tmp_path), "ab")]
    return [(part.state, part.report) for part in parts], ringtap.monitor(office, digest=True).report["digest"]


def test_intervals_have_one_report_each(spark, broker, states, office, tmp_path):
    parts, digest = states
    runs = [run["run"] for state, _ in parts for run in ringtap.merge([state]).report["runs"]]
    a, b = (messages(state, name, run, 0) for (state, _), name, run in zip(parts, "ab", runs))
    assert len(a) > 2, "several chunks"
    later = [ringtap.monitor(office, probe=name).state for name in "aab"]
    damaged = bytes(1000)
    bad = [
        ("no headers", b"x", {}),
        ("another format", b"{}", {"format": "json", "run": "0", "sequence": 1}),
        ("no number", b"x", a[0][2] | {"chunk": "one"}),
        ("a number beyond all", b"x", a[0][2] | {"chunk": 7, "chunks": 10**30}),
        ("a wrong clock", b"x", a[0][2] | {"run": "f" * 16, "from": 9 * 10**18, "chunk": 0, "chunks": 1}),
        ("a time beyond all", b"x", a[0][2] | {"from": 10**19}),
    ]
    # Repeated chunks, in any order.
    send(spark, broker, bad + a + b[::-1] + a[1:] + b)
    query = Query(spark, broker, tmp_path, "update", probes=["a", "b", "c"])
    rows = query.wait(lambda rows: query.counted and rows and of(rows, 0).probes == ["a", "b"])
    row = of(rows, 0)
    assert (row.missing, row.incomplete, row.errors) == (["c"], [], [])
    assert json.loads(row.report)["digest"] == digest
    assert ringtap.merge([row.state], digest=True).report["digest"] == digest
    assert list(rows) == [BEGIN]
    assert [counted for _, counted in query.counted] == [{"late": None, "ahead": {"a": 1}}]

    one = messages(later[0], "a", "1" * 16, 2)
    other = messages(later[1], "b", "2" * 16, 2)
    send(spark, broker, one[:-1] + other + messages(damaged, "c", "3" * 16, 2))
    rows = query.wait(lambda rows: BEGIN + timedelta(minutes=2) in rows and of(rows, 2).errors)
    row = of(rows, 2)
    assert (row.probes, row.missing) == (["b"], ["a", "c"])
    assert row.incomplete == [f"a, run {'1' * 16}, part 0: {len(one) - 1} of {len(one)} chunks"]
    assert len(row.errors) == 1 and row.errors[0].startswith(f"c, run {'3' * 16}, part 0: merging: ")
    query.stop()

    # The missing chunk arrives while no query runs; the checkpoint has the others.
    send(spark, broker, one[-1:])
    query = Query(spark, broker, tmp_path, "update", probes=["a", "b", "c"])
    rows = query.wait(lambda rows: rows and of(rows, 2).probes == ["a", "b"])
    assert list(rows) == [BEGIN + timedelta(minutes=2)]
    query.stop()


def test_an_interval_is_complete_once_after_the_watermark(spark, broker, states, office, tmp_path):
    parts, digest = states
    a, b = (messages(state, name, run * 16, 0) for (state, _), name, run in zip(parts, "ab", "12"))
    query = Query(spark, broker, tmp_path, "append", watermark="2m")
    send(spark, broker, a)
    next_minute = messages(ringtap.monitor(office, probe="a").state, "a", "3" * 16, 1)
    send(spark, broker, next_minute)
    # Late by a minute, which the watermark allows.
    send(spark, broker, b)
    send(spark, broker, messages(ringtap.monitor(office, probe="a").state, "a", "4" * 16, 4))
    rows = query.wait(lambda rows: BEGIN + timedelta(minutes=1) in rows)
    assert sorted(rows) == [BEGIN, BEGIN + timedelta(minutes=1)] and all(len(all_of) == 1 for all_of in rows.values())
    assert json.loads(of(rows, 0).report)["digest"] == digest
    # Too late: the interval was complete. A clock that was set back, too.
    late_b = messages(ringtap.monitor(office, probe="b").state, "b", "5" * 16, 0)
    send(spark, broker, late_b)
    send(spark, broker, messages(ringtap.monitor(office, probe="a").state, "a", "7" * 16, -50))
    send(spark, broker, messages(ringtap.monitor(office, probe="a").state, "a", "6" * 16, 9))
    rows = query.wait(lambda rows: BEGIN + timedelta(minutes=4) in rows)
    assert len(rows) == 3 and all(len(all_of) == 1 for all_of in rows.values())
    late = [(BEGIN + timedelta(minutes=-50), {"a": 1}), (BEGIN, {"b": 1})]
    assert sorted((start, counted["late"]) for start, counted in query.counted) == late
    # Repeated in a later batch, as is a state that is in the report.
    send(spark, broker, late_b + a)
    send(spark, broker, messages(ringtap.monitor(office, probe="a").state, "a", "8" * 16, 14))
    query.wait(lambda rows: BEGIN + timedelta(minutes=9) in rows)
    assert sorted((start, counted["late"]) for start, counted in query.counted) == late
    query.stop()
    # The report of the whole time.
    everything = ringtap.merge([of(rows, minute).state for minute in (0, 1, 4)])
    assert len(everything.report["runs"]) == 4


def test_a_fast_clock_does_not_make_the_states_of_others_late(spark, broker, states, office, tmp_path):
    parts, digest = states
    a, b = (messages(state, name, run * 16, 0) for (state, _), name, run in zip(parts, "ab", "12"))
    fast = round((time.time() - BEGIN.timestamp()) / 60) + 10
    query = Query(spark, broker, tmp_path, "append")
    c = messages(ringtap.monitor(office, probe="c").state, "c", "3" * 16, fast)
    send(spark, broker, a + c)
    for _ in range(6000):
        if query.counted:
            break
        time.sleep(0.1)
    ((_, counted),) = query.counted
    assert counted == {"late": None, "ahead": {"c": 1}}
    # The state ahead is repeated.
    send(spark, broker, b + c)
    # These two are in different batches, if not these alone.
    for minute in (3, 4):
        send(spark, broker, messages(ringtap.monitor(office, probe="a").state, "a", str(minute) * 16, minute))
    rows = query.wait(lambda rows: BEGIN in rows)
    row = of(rows, 0)
    assert (json.loads(row.report)["digest"], row.probes) == (digest, ["a", "b"])
    assert len(query.counted) == 1
    query.stop()


def test_a_probe_with_other_settings_is_named_and_the_others_are_merged(spark, broker, states, office, tmp_path):
    parts, digest = states
    other = ringtap.monitor(office, probe="c", interval="60s").state
    both = [message for (state, _), name, run in zip(parts, "ab", "12") for message in messages(state, name, run * 16, 0)]
    send(spark, broker, both + messages(other, "c", "3" * 16, 0))
    query = Query(spark, broker, tmp_path, "update")
    rows = query.wait(lambda rows: rows and of(rows, 0).errors)
    row = of(rows, 0)
    assert (json.loads(row.report)["digest"], row.probes) == (digest, ["a", "b"])
    assert row.errors[0].startswith(f"c, run {'3' * 16}, part 0: other settings: interval_ns")
    query.stop()


def test_invalid_options_are_errors(spark):
    options = {"brokers": "127.0.0.1:9", "topic": "states", "interval": "60s"}
    for change, words in [
        ({"topic": None}, "needs the option 'topic'"),
        ({"tops": 3}, "unknown option 'tops'"),
        ({"top": "many"}, "invalid"),
        ({"mode": "complete"}, "use 'append' or 'update'"),
        ({"checkpoint": "x"}, "belongs to the query"),
    ]:
        with pytest.raises(ringtap.Error, match=words):
            ringtap.spark.merge_stream(spark, options | change)


def test_the_example_of_the_docs_runs(spark, broker, states, tmp_path):
    """The block of docs/PYTHON.md, with the states of a run of `ringtap.monitor`."""
    (block,) = re.findall(r"```python spark\n(.*?)```", (ROOT / "docs/PYTHON.md").read_text(), re.DOTALL)
    for (state, _), name in zip(states[0], "ab"):
        send(spark, broker, messages(state, name, name * 16, 0))
        send(spark, broker, messages(state, name, "0" + name * 15, 10))
    names = {"spark": spark}
    exec(block.replace("broker.example:9092", broker.address).replace("/data", str(tmp_path)), names)
    rows = []
    for _ in range(6000):
        # Spark reads the files of finished batches only.
        if (tmp_path / "reports/_spark_metadata").exists():
            columns = "probes array<string>, missing array<string>, report string"
            rows = spark.read.schema(columns).json(str(tmp_path / "reports")).collect()
        if rows:
            break
        assert names["query"].exception() is None
        time.sleep(0.1)
    names["query"].stop()
    assert [(row["probes"], row["missing"]) for row in rows] == [(["a", "b"], [])]
    assert json.loads(rows[0]["report"])["exact"]
