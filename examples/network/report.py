#!/usr/bin/env python3
"""The reports of a network, from the states that its probes send to a topic of Kafka: with Spark, until a signal.

For each interval FOLDER/reports has a row of `ringtap.spark.merge_stream` as JSON, and the merged state. They are replaced
whenever a state arrives. FOLDER/network.json and FOLDER/network.state are those of the whole time. FOLDER/complete exists
when all probes have ended.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import ringtap
import ringtap.spark
from pyspark.sql import SparkSession


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brokers")
    parser.add_argument("topic")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--interval", default="1m")
    parser.add_argument("--watermark", default="10m")
    parser.add_argument("--probes", default="", help="names of the expected probes, with commas")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--jars", default="", help="the connector to Kafka, with commas between files")
    args = parser.parse_args()

    spark = session(args)
    probes = [name for name in args.probes.split(",") if name]
    options = {"brokers": args.brokers, "topic": args.topic, "probes": probes, "mode": "update"}
    rows = ringtap.spark.merge_stream(spark, options | {"interval": args.interval, "watermark": args.watermark})
    (args.folder / "reports").mkdir(parents=True, exist_ok=True)
    query = rows.writeStream.outputMode("update").trigger(processingTime="1 second")
    query = query.option("checkpointLocation", str(args.folder / "checkpoint"))
    query.foreachBatch(lambda batch, _: save(batch, args.folder, probes)).start().awaitTermination()


def session(args):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.jars": args.jars,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.session.timeZone": "UTC",
        # A state store for each: few are enough for few probes.
        "spark.sql.shuffle.partitions": "2",
        # Spark 4.0 needs it with new versions of pyarrow.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    }
    builder = SparkSession.builder.appName("network").master(args.master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def save(batch, folder, probes):
    """Writes the rows of a batch, and the report of the whole time. A batch that is repeated writes the same."""
    rows = batch.collect()
    if not rows:
        return
    for row in rows:
        if row.late or row.ahead:
            print(f"in no report: late {row.late or {}}, ahead of the clock {row.ahead or {}}", file=sys.stderr)
            continue
        name = f"{row.start:%Y-%m-%dT%H:%M:%S.%f}"
        columns = row.asDict() | {"start": row.start.isoformat(), "end": row.end.isoformat(), "report": None, "state": None}
        columns["report"] = json.loads(row.report) if row.report else None
        if row.state:
            write(folder / "reports" / f"{name}.state", bytes(row.state))
        write(folder / "reports" / f"{name}.json", json.dumps(columns, indent=2).encode())
    states = [path.read_bytes() for path in sorted(folder.glob("reports/*.state"))]
    if not states:
        return
    network = ringtap.merge(states, digest=True)
    write(folder / "network.state", network.state)
    write(folder / "network.json", json.dumps(network.report, indent=2).encode())
    ended = {run["probe"] for run in network.report["runs"] if run["ended"]}
    if ended >= set(probes):
        write(folder / "complete", b"")


def write(path, content):
    """Replaces a file as a whole."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.rename(path)


main()
