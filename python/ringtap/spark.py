"""`ringtap.monitor` on a Spark cluster: a task for each capture, and one exact report.

    spark = pyspark.sql.SparkSession.builder.getOrCreate()
    run = ringtap.spark.monitor(spark, ["a.pcap", "b.pcap"], interval="60s")

The executors need this package, and the captures under the same paths. Address pairs that several captures have make
the report inexact, which it says (docs/NETWORK.md).
"""

import os

from . import Error, merge

__all__ = ["monitor"]

# Flags of the report; the others are those of each task. A list of names is for both.
_OF_REPORTS = ("digest", "top", "scan_threshold")


def monitor(spark, paths, **flags):
    """Monitor captures in parallel and merge their states.

    `spark` is a SparkSession; `paths` is a list of paths. The keyword arguments are those of `ringtap.monitor`. Returns a
    `Run` without flows.
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
