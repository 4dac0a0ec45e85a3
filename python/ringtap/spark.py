"""`ringtap` on a Spark cluster: captures monitored in parallel, and one report over the states of many probes.

    spark = pyspark.sql.SparkSession.builder.getOrCreate()
    run = ringtap.spark.monitor(spark, ["a.pcap", "b.pcap"], interval="60s")
    frame = ringtap.spark.flows(spark, ["a.pcap", "b.pcap"], flows="tcp port 443")
    reports = ringtap.spark.merge_stream(spark, {"brokers": "broker.example", "topic": "states", "interval": "60s"})

The executors need this package. Address pairs that several captures or probes have make a report inexact, which it says
(docs/NETWORK.md).
"""

import hashlib
import json
import os
import pickle
import re
import struct
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from . import Error, merge, stream
from . import monitor as monitor_here

__all__ = ["flows", "merge_stream", "monitor"]

# Flags of outputs: each task would write to the same place.
_OUTPUTS = ("alert_to", "events", "export", "write")

# A capture without packets, for the check of flags.
_EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)

# Flags of the report; the others are those of each task. A list of names is for both.
_OF_REPORTS = ("digest", "top", "scan_threshold", "udp_scan_threshold")

# Further flags of a merge, and options of Spark's source.
_OF_MERGES = (*_OF_REPORTS, "names", "memory")
_OF_SOURCES = ("startingOffsets", "startingTimestamp", "maxOffsetsPerTrigger", "minPartitions", "failOnDataLoss")

# Most states that a task joins.
_FAN_IN = 4

# A state has fewer chunks; the most texts in a list, and probes with a count; the most that a probe's clock may be ahead.
_CHUNKS_MAX = 1 << 16
_LISTED_MAX = 100
_AHEAD_MAX = "1 minute"

# States whose repetitions are known: the most in an interval, or ahead of the clock; and how long after an interval is over, or
# has its last late state, in packet time.
_KNOWN_MAX = 10_000
_KNOWN_MS = 600_000

# Columns of chunks: the times of their row.
_WINDOW = ("window_start", "window_end")

# The probe that stands for those without a count of their own.
_OTHERS = "(others)"

_ROW = (
    "start bigint, end bigint, report string, state binary, probes array<string>, missing array<string>, "
    "incomplete array<string>, errors array<string>, late map<string, bigint>, ahead map<string, bigint>"
)
_COLUMNS = [column.split()[0] for column in _ROW.replace("<string, bigint>", "").split(", ")]


def monitor(spark, paths, **flags):
    """Monitor captures in parallel and merge their states.

    `spark` is a SparkSession; `paths` is a list of paths, which are the same on all executors. The keyword arguments are
    those of `ringtap.monitor`, but for outputs. Flags are checked here first, so files that they name must be here, too.
    Returns a `Run` without flows; its warnings are those of all captures. If captures cannot be read, raises `ringtap.Error`
    with a line for each. Its attribute `errors` has the lines by path, and `run` the results of the others, or None if there
    are none.
    """
    paths = _checked(paths, flags)
    of_report = {name: flags.pop(name) for name in _OF_REPORTS if name in flags}
    of_merges = {"names": flags["names"]} if "names" in flags else {}
    _check_monitor(flags)
    _check({**of_report, **of_merges})

    def state(path):
        # In a process of the executor.
        from ringtap.spark import _state

        return _state(path, flags)

    def join(found):
        from ringtap.spark import _join

        return [_join(list(found), of_merges)]

    found = spark.sparkContext.parallelize(paths, len(paths)).map(state)
    ((joined, errors, warnings),) = _tree(found, len(paths), join).collect()
    run = merge([joined], **of_report, **of_merges) if joined else None
    if run:
        run.warnings.extend(text for _, text in sorted(warnings))
    if errors:
        error = Error("\n".join(text for _, text in sorted(errors)))
        error.run, error.errors = run, dict(sorted(errors))
        raise error
    return run


def flows(spark, paths, *, flows=None, columns=None, **flags):
    """The flow records of captures, which are read in parallel: a DataFrame.

    `spark` is a SparkSession; `paths` is a list of paths, which are the same on all executors. A task reads a capture, batch by batch,
    whenever the rows are needed. `flows` is an expression in the language of `ringtap query` that selects the records, `columns`
    are the names of the columns to keep. The other keyword arguments are those of `ringtap.stream`, but for outputs.

    Numbers without a sign are of the next larger type of Spark. A capture that cannot be read fails its task, and so the query;
    the warnings of the others are in the logs of the executors.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    paths = _checked(paths, flags)
    rows = _empty(flows=flows, state=False, **flags).flows
    if rows is None:
        raise Error("there are no flow records: add flows to analyses")
    schema = _signed(rows, columns)

    def read(batches):
        # In a process of the executor.
        from ringtap.spark import _rows

        for batch in batches:
            for path in batch["path"].to_pylist():
                yield from _rows(path, schema, flows, flags)

    tasks = spark.createDataFrame(spark.sparkContext.parallelize([(path,) for path in paths], len(paths)), "path string")
    return tasks.mapInArrow(read, from_arrow_schema(schema))


def _signed(rows, columns):
    """The schema of these columns of a table, or of all, with types of Spark."""
    import pyarrow

    def signed(kind):
        if pyarrow.types.is_list(kind):
            return pyarrow.list_(signed(kind.value_type))
        if pyarrow.types.is_timestamp(kind):
            return pyarrow.timestamp("us", kind.tz)
        return wider.get(kind, kind)

    integers = (pyarrow.uint8(), pyarrow.int16()), (pyarrow.uint16(), pyarrow.int32()), (pyarrow.uint32(), pyarrow.int64())
    wider = dict([*integers, (pyarrow.uint64(), pyarrow.int64())])
    fields = {field.name: field for field in pyarrow.schema(rows)}
    if unknown := [name for name in columns or [] if name not in fields]:
        raise Error(f"there is no column {unknown[0]!r}")
    chosen = [fields[name] for name in columns or fields]
    return pyarrow.schema([field.with_type(signed(field.type)) for field in chosen])


def _rows(path, schema, flows, flags):
    """The record batches of a capture."""
    import pyarrow

    with stream(Path(path), flows=flows, columns=schema.names, **flags) as batches:
        for batch in batches:
            yield from pyarrow.table(batch).cast(schema).to_batches()
    for text in batches.run.warnings:
        warnings.warn(text if path in text else f"{path}: {text}", stacklevel=2)


def _checked(paths, flags):
    """The paths as texts, if there are some, and no flag is of an output."""
    paths = [os.fspath(path) for path in paths]
    if not paths:
        raise Error("nothing to read: the list of captures is empty")
    if given := [name for name in _OUTPUTS if flags.get(name)]:
        raise Error(f"{given[0]} cannot be used on a cluster: the tasks would write to one place; use ringtap.monitor in tasks")
    return paths


def _empty(**arguments):
    """The run over a capture without packets, which raises the error of invalid arguments."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as empty:
        empty.write(_EMPTY)
        empty.flush()
        return monitor_here(empty.name, **arguments)


def _check_monitor(flags):
    """Raises the error of flags that are invalid, or that leave a state incomplete."""
    if _empty(flows=False, **flags).state is None:
        raise Error("the flags leave the states incomplete: omit anonymise, and analyses other than all")


def _state(path, flags):
    """The state of a capture, or None, and lists of errors and warnings as pairs of the path and a text."""
    errors = []
    try:
        run = monitor_here(path, flows=False, **flags)
    except Exception as error:
        run = getattr(error, "run", None)
        errors = [str(error)]
    named = lambda texts: [(path, text if path in text else f"{path}: {text}") for text in texts]
    return run and run.state, named(errors), named(run.warnings if run else [])


def _join(found, flags):
    """One state of several, with the errors and warnings of all."""
    states = [state for state, _, _ in found if state is not None]
    joined = merge(states, **flags).state if len(states) > 1 else (states or [None])[0]
    errors = [error for _, errors, _ in found for error in errors]
    return joined, errors, [warning for _, _, warnings in found for warning in warnings]


def _tree(tasks, count, join):
    """The tasks of a tree: `tasks` are its leaves, a partition each, and the last level is one partition. The driver does not
    join anything, unlike in Spark's treeReduce."""
    while count > 1:
        count = -(-count // _FAN_IN)
        numbered = tasks.mapPartitionsWithIndex(lambda at, found: [(at // _FAN_IN, one) for one in found])
        tasks = numbered.partitionBy(count, int).values().mapPartitions(join)
    return tasks


def merge_stream(spark, options):
    """Merge the states that probes send to a topic of Kafka into one report for each interval.

    `spark` is a SparkSession with the connector to Kafka; `options` is a dict:

    brokers, topic: where `ringtap monitor --export kafka://BROKERS/TOPIC?format=state` sends states.
    interval: the time of a report, such as "60s"; a multiple of the probes' interval.
    watermark: how long a late state is waited for, in packet time; by default the interval.
    mode: "append" (the default) or "update", the output mode of the query.
    probes: the names of the expected probes, a list, or None.
    settings_of: the name of a probe: states with other settings than its are left out. By default the settings that most
        probes have.
    digest, top, scan_threshold, udp_scan_threshold, names, memory: the flags of `ringtap.merge`.
    kafka.NAME: settings of the connection, such as "kafka.security.protocol".
    startingOffsets ("earliest"), startingTimestamp, maxOffsetsPerTrigger, minPartitions, failOnDataLoss: as in Spark.

    Returns a streaming DataFrame with a row for each interval, and the columns:

    start, end: the interval.
    report: the report as JSON; None if there is no state that can be merged.
    state: the merged state, for `ringtap.merge`.
    probes: the names of the probes whose states are in the report.
    missing: the names of the expected probes without a complete state.
    incomplete: states of which chunks are missing, as texts.
    errors: states that are not in the report, as texts: damaged ones, and those with other settings.
    late: None, or in a further row of an interval that is over: the number of states that came too late, by probe.
    ahead: None, or in a further row: the number of states whose time is ahead of Spark's clock, by probe.

    States in `late` and `ahead` are in no report.
    """
    from pyspark.sql import functions as f

    options = dict(options)
    brokers, topic, interval = (_required(options, name) for name in ("brokers", "topic", "interval"))
    interval = _spark_time(interval)
    watermark = _spark_time(options.pop("watermark", None) or interval)
    mode = options.pop("mode", None) or "append"
    if mode not in ("append", "update"):
        raise Error(f"invalid mode {mode!r}: use 'append' or 'update', the output mode of the query")
    probes = list(options.pop("probes", None) or [])
    settings_of = options.pop("settings_of", None)
    flags = {name: options.pop(name) for name in _OF_MERGES if name in options}
    source = {"startingOffsets": "earliest", "includeHeaders": "true"}
    for name in list(options):
        if name.startswith("kafka.") or name in _OF_SOURCES:
            source[name] = options.pop(name)
    if "checkpoint" in options or "checkpointLocation" in options:
        raise Error("the checkpoint belongs to the query: frame.writeStream.option('checkpointLocation', …)")
    if options:
        raise Error(f"unknown option {min(options)!r} of merge_stream")
    _check(flags)
    _check_session(spark)

    messages = spark.readStream.format("kafka").options(**source)
    messages = messages.option("kafka.bootstrap.servers", brokers).option("subscribe", topic).load()

    def header(name):
        found = f.filter("headers", lambda one: one["key"] == name)
        return f.get(found, f.lit(0))["value"].cast("string")

    def number(name):
        return header(name).try_cast("bigint")

    def time(name):
        return f.timestamp_micros(f.call_function("div", number(name), f.lit(1000)))

    # The broker's clock, if it stamps messages, else that of this batch.
    clock = f.when(f.col("timestampType") == 1, f.col("timestamp")).otherwise(f.current_timestamp())
    chunks = messages.select(
        header("probe").alias("probe"),
        header("run").alias("run"),
        number("part").alias("part"),
        number("chunk").alias("chunk"),
        number("chunks").alias("chunks"),
        time("from").alias("from"),
        time("until").alias("until"),
        clock.alias("clock"),
        "value",
    ).where(header("format") == "state")
    chunks = chunks.dropna().where(f.col("chunk").between(0, f.col("chunks") - 1) & (f.col("chunks") <= _CHUNKS_MAX))
    # A probe with a fast clock must not make the states of all others late: what is ahead of the clock does not count for
    # the watermark.
    latest = f.greatest("from", "until")
    ahead = [latest > f.col("clock") + f.expr(f"INTERVAL '{most}'") for most in (watermark, _AHEAD_MAX)]
    chunks = chunks.withColumn("ahead", ahead[0] | ahead[1])
    timed = f.when(f.col("ahead"), f.timestamp_micros(f.lit(0))).otherwise(f.col("from"))
    chunks = chunks.withColumn("timed", timed).withWatermark("timed", watermark)
    # Spark drops what is late by the column that is marked as the time of a watermark. This one is never late, so late
    # states are counted. The watermark is that of the states.
    now = f.current_timestamp().alias("now", metadata={"spark.watermarkDelayMs": 0})
    # A state ahead belongs to no interval of its own time. All of them are one group, which recognises repetitions at any time.
    own = f.when(f.col("ahead"), f.col("clock")).otherwise(f.col("from"))
    chunks = chunks.withColumn("window", f.window(own, interval))
    times = [f.unix_millis(f"window.{name}") for name in ("start", "end")]
    groups = [f.when(f.col("ahead"), 0).otherwise(time) for time in times]
    named = zip(("start", "end", *_WINDOW), groups + times)
    chunks = chunks.select("*", now, *(time.alias(name) for name, time in named))

    def step(key, frames, state):
        # In a process of the executor.
        from ringtap.spark import _on_interval, _report

        return _on_interval(key, frames, state, mode, lambda chunks: _report(chunks, probes, flags, settings_of))

    intervals = chunks.drop("window", "clock", "timed", "from", "until").groupBy("start", "end", "ahead")
    rows = intervals.applyInPandasWithState(step, _ROW, "chunks binary", mode, "EventTimeTimeout")
    return rows.select(*(f.timestamp_millis(name).alias(name) for name in ("start", "end")), *_COLUMNS[2:])


def _check(flags):
    """Raises the error of invalid flags of a merge."""
    errors = []
    for given in ({}, flags):
        try:
            merge([], **given)
        except Error as error:
            errors.append(error)
    if str(errors[0]) != str(errors[-1]):
        raise errors[-1]


def _check_session(spark):
    """Raises an error if Spark cannot pass states to Python with the settings of the session."""
    try:
        import pandas  # noqa: F401
        import pyarrow
    except ImportError as missing:
        raise Error(f"merge_stream needs pandas and pyarrow on the driver and the executors: install {missing.name}") from None
    # Spark 4.0 gives offsets of rows as floating-point numbers, if there are several rows.
    try:
        pyarrow.record_batch([[1]], names=["one"]).slice(0.0, 1.0)
    except TypeError:
        setting = "spark.sql.execution.arrow.maxRecordsPerBatch"
        if spark.version.startswith("4.0.") and spark.conf.get(setting) != "1":
            raise Error(f"pyspark {spark.version} fails with pyarrow {pyarrow.__version__}: set {setting} to 1") from None


def _required(options, name):
    value = options.pop(name, None)
    if not value:
        raise Error(f"merge_stream needs the option {name!r}")
    return value if isinstance(value, str) else ",".join(value)


def _spark_time(text):
    """The time in Spark's syntax, if it is in ours: 60s, 500ms, 1h30m."""
    units = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
    if not re.fullmatch(r"(\d+(ms|s|m|h))+", text):
        return text
    total = sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)(ms|s|m|h)", text))
    return f"{total} milliseconds"


def _on_interval(key, frames, group, mode, report):
    """The rows of an interval, or of states ahead of the clock, for new chunks of states or for the end of its time. `group` is
    Spark's state: what `_step` keeps."""
    import pandas

    start_ms, end_ms, ahead = map(int, key)
    columns = [*_WINDOW, *_Chunk._fields]
    new = {}
    for frame in frames:
        for start, end, *chunk in frame[columns].itertuples(index=False):
            new.setdefault((start, end), []).append(_Chunk(*chunk))
    # The time of the known states is over.
    kept = pickle.loads(group.get[0]) if group.exists else None
    kept = None if group.hasTimedOut and isinstance(kept, list) else kept
    watermark_ms, rows = group.getCurrentWatermarkMs(), []
    for (start, end), chunks in sorted(new.items()) or [((start_ms, end_ms), [])]:
        kept, row = _step(kept, chunks, ahead, end_ms <= watermark_ms, mode, report)
        if row is not None:
            rows.append(dict.fromkeys(_COLUMNS) | {"start": start, "end": end} | row)
    if kept is not None:
        group.update((pickle.dumps(kept),))
        # The watermark must be later than this time. States ahead are known without end.
        if not ahead:
            group.setTimeoutTimestamp(watermark_ms + _KNOWN_MS if isinstance(kept, list) else end_ms - 1)
    elif group.exists:
        group.remove()
    for row in rows:
        yield pandas.DataFrame({name: pandas.Series([value], dtype=object) for name, value in row.items()})


class _Chunk(NamedTuple):
    """A part of a state."""

    probe: str
    run: str
    part: int
    chunk: int
    chunks: int
    value: bytes

    @property
    def state(self):
        """A short name of its state."""
        return hashlib.blake2b(repr((self.probe, self.run, int(self.part))).encode(), digest_size=16).digest()


def _step(kept, new, ahead, is_over, mode, report):
    """The rules of an interval: what it keeps after this step, or None, and a row without times, or None.

    `kept` has what was kept before: a dict of the chunks of an interval that is not over, or a list of the names of known
    states, which a row has. `is_over` says that the watermark has passed the end of the interval. States that are ahead of the
    clock, and those of an interval that is over, are counted once and not kept.
    """
    if ahead or isinstance(kept, list) or (is_over and kept is None):
        known = dict.fromkeys(kept or [])
        # A state is counted at its first chunk.
        found = {one.state: one.probe for one in new if one.chunk == 0}
        counts = _counts(probe for state, probe in found.items() if state not in known)
        row = {"probes": [], "missing": [], "incomplete": [], "errors": [], "ahead" if ahead else "late": counts}
        return _latest(known | found), row if counts else None
    kept = dict(kept or {})
    for one in new:
        # Messages may be repeated.
        kept.setdefault((one.probe, one.run, one.part, one.chunks, one.chunk), one.value)
    row = report(kept) if (new if mode == "update" else is_over) else None
    return _latest(_Chunk(*key, b"").state for key in kept) if is_over else kept, row


def _latest(states):
    """The names of the latest states, each once, or None without any."""
    return list(dict.fromkeys(states))[-_KNOWN_MAX:] or None


def _counts(probes):
    """The number of states by probe, of at most so many probes and the others together."""
    named = sorted(Counter(probes).items(), key=lambda one: (-one[1], one[0]))
    others = sum(count for _, count in named[_LISTED_MAX:])
    return dict(named[:_LISTED_MAX]) | ({_OTHERS: others} if others else {})


def _listed(texts):
    """At most so many texts, and the number of the others."""
    others = len(texts) - _LISTED_MAX
    return texts if others <= 0 else [*texts[:_LISTED_MAX], f"and {others} others"]


def _report(chunks, expected, flags, settings_of=None):
    """The columns of an interval after its times, for its chunks of states by probe, run, part, number of chunks and chunk."""
    parts = {}
    for (*state, chunk), value in chunks.items():
        parts.setdefault(tuple(state), {})[chunk] = value
    states, incomplete = {}, []
    for key, values in sorted(parts.items()):
        probe, run, part, count = key
        name = f"{probe}, run {run}, part {part}"
        if len(values) == count:
            states[name] = (probe, b"".join(bytes(values[number]) for number in range(count)))
        else:
            incomplete.append(f"{name}: {len(values)} of {count} chunks")
    states, others = _same_settings(states, settings_of)
    merged, merged_names, errors = _merge(states, flags)
    probes = sorted({states[name][0] for name in merged_names})
    return {
        "report": merged and json.dumps(merged.report),
        "state": merged and merged.state,
        "probes": probes,
        "missing": [probe for probe in expected if probe not in probes],
        "incomplete": _listed(incomplete),
        "errors": _listed(others + errors),
    }


def _settings(state):
    """The settings in the header of a state (crates/state/src/format.rs), or None."""
    try:
        (length,) = struct.unpack_from("<I", state, 14)
        return json.loads(state[22 : 22 + length])["settings"]
    except (struct.error, ValueError, LookupError, TypeError):
        return None


def _same_settings(states, settings_of):
    """The states with the settings of most probes, or of one; and a text for each of the others. Without settings a
    state is damaged, which the merge says."""
    groups = {}
    for name, (probe, state) in states.items():
        groups.setdefault(json.dumps(_settings(state), sort_keys=True), {})[name] = probe
    damaged = groups.pop("null", {})

    def size(settings):
        names = groups[settings]
        return settings_of in names.values(), len(set(names.values())), len(names), settings

    ranked = sorted(groups, key=size, reverse=True)
    if not ranked:
        return states, []
    own, others = json.loads(ranked[0]), []
    for settings in ranked[1:]:
        other = json.loads(settings)
        differ = min(name for name in own | other if own.get(name) != other.get(name))
        values = f"{json.dumps(other.get(differ))}, and not {json.dumps(own.get(differ))} as in the report"
        others += [f"{name}: other settings: {differ} is {values}" for name in groups[settings]]
    kept = groups[ranked[0]].keys() | damaged.keys()
    return {name: one for name, one in states.items() if name in kept}, sorted(others)


def _merge(states, flags):
    """Merges states by name. Returns the run, or None; the names of those in it; and what is wrong with the others."""
    if not states:
        return None, [], []
    try:
        return merge([state for _, state in states.values()], **flags), list(states), []
    except Error:
        pass
    # One at a time, without those that are damaged or do not belong to the others.
    merged, names, errors = None, [], []
    for name, (_, state) in states.items():
        try:
            merged = merge([state] if merged is None else [merged.state, state], **flags)
            names.append(name)
        except Error as error:
            errors.append(f"{name}: {error}")
    return merged, names, errors
