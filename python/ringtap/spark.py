"""`ringtap` on a Spark cluster: captures monitored in parallel, and one report over the states of many probes.

    spark = pyspark.sql.SparkSession.builder.getOrCreate()
    run = ringtap.spark.monitor(spark, ["a.pcap", "b.pcap"], interval="60s")
    reports = ringtap.spark.merge_stream(spark, {"brokers": "broker.example", "topic": "states", "interval": "60s"})

The executors need this package. Address pairs that several captures or probes have make a report inexact, which it says
(docs/NETWORK.md).
"""

import json
import os
import re
import struct
import tempfile

from . import Error, merge
from . import monitor as monitor_here

__all__ = ["merge_stream", "monitor"]

# Flags of outputs: each task would write to the same place.
_OUTPUTS = ("alert_to", "events", "export", "write")

# A capture without packets, for the check of flags.
_EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)

# Flags of the report; the others are those of each task. A list of names is for both.
_OF_REPORTS = ("digest", "top", "scan_threshold")

# Further flags of a merge, and options of Spark's source.
_OF_MERGES = (*_OF_REPORTS, "names", "memory")
_OF_SOURCES = ("startingOffsets", "startingTimestamp", "maxOffsetsPerTrigger", "minPartitions", "failOnDataLoss")

# A state has fewer chunks; and the time by which a probe's clock may be ahead of Spark's.
_CHUNKS_MAX = 1 << 16
_AHEAD = "1 hour"

_REPORT = (
    "report string, state binary, probes array<string>, missing array<string>, incomplete array<string>, errors array<string>"
)


def monitor(spark, paths, **flags):
    """Monitor captures in parallel and merge their states.

    `spark` is a SparkSession; `paths` is a list of paths, which are the same on all executors. The keyword arguments are
    those of `ringtap.monitor`, but for outputs. Flags are checked here first, so files that they name must be here, too.
    Returns a `Run` without flows. If captures cannot be read, raises `ringtap.Error` with a line for each; its attribute
    `run` has the results of the others, or None if there are none.
    """
    paths = [os.fspath(path) for path in paths]
    if not paths:
        raise Error("nothing to read: the list of captures is empty")
    if given := [name for name in _OUTPUTS if flags.get(name)]:
        raise Error(f"{given[0]} cannot be used on a cluster: the tasks would write to one place; use ringtap.monitor in tasks")
    of_report = {name: flags.pop(name) for name in _OF_REPORTS if name in flags}
    of_merges = {"names": flags["names"]} if "names" in flags else {}
    _check_monitor(flags)
    _check({**of_report, **of_merges})

    def state(path):
        # In a process of the executor.
        from ringtap.spark import _state

        return _state(path, flags)

    def join(one, other):
        from ringtap.spark import _join

        return _join(one, other, of_merges)

    found = spark.sparkContext.parallelize(paths, len(paths)).map(state)
    joined, errors = found.treeReduce(join, depth=_depth(len(paths)))
    run = merge([joined], **of_report, **of_merges) if joined else None
    if errors:
        error = Error("\n".join(text for _, text in sorted(errors)))
        error.run = run
        raise error
    return run


def _check_monitor(flags):
    """Raises the error of flags that are invalid, or that leave a state incomplete."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as empty:
        empty.write(_EMPTY)
        empty.flush()
        run = monitor_here(empty.name, flows=False, **flags)
    if run.state is None:
        raise Error("the flags leave the states incomplete: omit anonymise, and analyses other than all")


def _state(path, flags):
    """The state of a capture, or None, and a list of errors as pairs of the path and a text."""
    try:
        return monitor_here(path, flows=False, **flags).state, []
    except Exception as error:
        text = str(error)
        named = text if path in text else f"{path}: {text}"
        run = getattr(error, "run", None)
        return run and run.state, [(path, named)]


def _join(one, other, flags):
    """One state of two, with the errors of both."""
    (state, errors), (other_state, other_errors) = one, other
    states = [each for each in (state, other_state) if each is not None]
    joined = merge(states, **flags).state if len(states) == 2 else (states or [None])[0]
    return joined, errors + other_errors


def _depth(count):
    """The levels of a tree in which a task joins a few states."""
    return max(1, (count.bit_length() + 1) // 2)


def merge_stream(spark, options):
    """Merge the states that probes send to a topic of Kafka into one report for each interval.

    `spark` is a SparkSession with the connector to Kafka; `options` is a dict:

    brokers, topic: where `ringtap monitor --export kafka://BROKERS/TOPIC?format=state` sends states.
    interval: the time of a report, such as "60s"; a multiple of the probes' interval.
    watermark: how long a late state is waited for, in packet time; by default the interval.
    probes: the names of the expected probes, a list, or None.
    settings_of: the name of a probe: states with other settings than its are left out. By default the settings that most
        probes have.
    digest, top, scan_threshold, names, memory: the flags of `ringtap.merge`.
    kafka.NAME: settings of the connection, such as "kafka.security.protocol".
    startingOffsets ("earliest"), startingTimestamp, maxOffsetsPerTrigger, minPartitions, failOnDataLoss: as in Spark.

    Returns a streaming DataFrame with a row for each interval, in the output modes append and update, and the columns:

    start, end: the interval.
    report: the report as JSON; None if there is no state that can be merged.
    state: the merged state, for `ringtap.merge`.
    probes: the names of the probes whose states are in the report.
    missing: the names of the expected probes without a complete state.
    incomplete: states of which chunks are missing, as texts.
    errors: states that are not in the report, as texts: damaged ones, and those with other settings.
    """
    from pyspark.sql import functions as f

    options = dict(options)
    brokers, topic, interval = (_required(options, name) for name in ("brokers", "topic", "interval"))
    interval = _spark_time(interval)
    watermark = _spark_time(options.pop("watermark", None) or interval)
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

    messages = spark.readStream.format("kafka").options(**source)
    messages = messages.option("kafka.bootstrap.servers", brokers).option("subscribe", topic).load()

    def header(name):
        found = f.filter("headers", lambda one: one["key"] == name)
        return f.get(found, f.lit(0))["value"].cast("string")

    def number(name):
        return header(name).try_cast("bigint")

    chunks = messages.select(
        header("probe").alias("probe"),
        header("run").alias("run"),
        number("part").alias("part"),
        number("chunk").alias("chunk"),
        number("chunks").alias("chunks"),
        f.timestamp_micros(f.call_function("div", number("from"), f.lit(1000))).alias("from"),
        "value",
    ).where(header("format") == "state")
    chunks = chunks.dropna().where(
        f.col("chunk").between(0, f.col("chunks") - 1)
        & (f.col("chunks") <= _CHUNKS_MAX)
        # One probe with a wrong clock must not make the states of all others late.
        & (f.col("from") < f.current_timestamp() + f.expr(f"INTERVAL {_AHEAD}"))
    )
    chunks = chunks.withWatermark("from", watermark).dropDuplicates(["run", "part", "chunk", "from"])
    whole = f.struct("probe", "run", "part", "chunk", "chunks", "value")
    intervals = chunks.groupBy(f.window("from", interval)).agg(f.collect_list(whole).alias("states"))

    @f.udf(returnType=_REPORT)
    def report(chunks):
        # In a process of the executor.
        from ringtap.spark import _report

        return _report(chunks, probes, flags, settings_of)

    rows = intervals.select("window.start", "window.end", report("states").alias("row"))
    return rows.select("start", "end", "row.*")


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


def _report(chunks, expected, flags, settings_of=None):
    """The columns of an interval after its times, for its chunks of states."""
    parts = {}
    for chunk in chunks:
        parts.setdefault((chunk.probe, chunk.run, chunk.part, chunk.chunks), {})[chunk.chunk] = chunk.value
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
        "incomplete": incomplete,
        "errors": others + errors,
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
