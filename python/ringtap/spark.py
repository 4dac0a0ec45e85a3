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

from . import Error, merge

__all__ = ["merge_stream", "monitor"]

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
    those of `ringtap.monitor`. Returns a `Run` without flows.
    """
    paths = [os.fspath(path) for path in paths]
    if not paths:
        raise Error("nothing to read: the list of captures is empty")
    of_report = {name: flags.pop(name) for name in _OF_REPORTS if name in flags}
    if "names" in flags:
        of_report["names"] = flags["names"]

    def state(path):
        # In a process of the executor.
        import ringtap

        return ringtap.monitor(path, flows=False, **flags).state

    states = spark.sparkContext.parallelize(paths, len(paths)).map(state).collect()
    if None in states:
        raise Error("the flags leave the states incomplete: omit anonymise, and analyses other than all")
    return merge(states, **of_report)


def merge_stream(spark, options):
    """Merge the states that probes send to a topic of Kafka into one report for each interval.

    `spark` is a SparkSession with the connector to Kafka; `options` is a dict:

    brokers, topic: where `ringtap monitor --export kafka://BROKERS/TOPIC?format=state` sends states.
    interval: the time of a report, such as "60s"; a multiple of the probes' interval.
    watermark: how long a late state is waited for, in packet time; by default the interval.
    probes: the names of the expected probes, a list, or None.
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
    errors: states that cannot be merged, as texts.
    """
    from pyspark.sql import functions as f

    options = dict(options)
    brokers, topic, interval = (_required(options, name) for name in ("brokers", "topic", "interval"))
    interval = _spark_time(interval)
    watermark = _spark_time(options.pop("watermark", None) or interval)
    probes = list(options.pop("probes", None) or [])
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

        return _report(chunks, probes, flags)

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


def _report(chunks, expected, flags):
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
    merged, merged_names, errors = _merge(states, flags)
    probes = sorted({states[name][0] for name in merged_names})
    return {
        "report": merged and json.dumps(merged.report),
        "state": merged and merged.state,
        "probes": probes,
        "missing": [probe for probe in expected if probe not in probes],
        "incomplete": incomplete,
        "errors": errors,
    }


def _merge(states, flags):
    """Merges states by name. Returns the run, or None; the names of those in it; and what is wrong with the others."""
    if not states:
        return None, [], []
    try:
        return merge([state for _, state in states.values()], **flags), list(states), []
    except Error as error:
        reason = str(error)
    # Damaged states are left out.
    errors, readable = [], {}
    for name, one in states.items():
        try:
            merge([one[1]])
            readable[name] = one
        except Error as error:
            errors.append(f"{name}: {error}")
    if errors:
        merged, names, more = _merge(readable, flags)
        return merged, names, errors + more
    return None, [], [reason]
