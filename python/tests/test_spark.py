"""`ringtap.spark.monitor` and `flows` on real executors: two workers, each a process."""

import pyarrow
import pytest
import ringtap
import ringtap.spark

from test_states import split


def test_captures_in_tasks_give_the_report_of_one_run(spark, office, tmp_path):
    whole = ringtap.monitor(office, digest=True, interval="1s", top=3)
    run = ringtap.spark.monitor(spark, split(office, tmp_path), digest=True, interval="1s", top=3)
    assert run.report["digest"] == whole.report["digest"]
    assert len(run.report["runs"]) == 2 and run.flows is None


def test_bad_captures_fail_no_task_and_the_others_are_in_the_report(spark, office, tmp_path):
    one, other = split(office, tmp_path)
    bad = {name: tmp_path / f"{name}.pcap" for name in ("text", "empty", "missing")}
    bad["text"].write_bytes(b"text, and no capture")
    bad["empty"].write_bytes(b"")
    captures = [bad["text"], one, bad["empty"], other, bad["missing"]]
    spark.sparkContext.setJobGroup("bad", "bad captures among good ones")
    with pytest.raises(ringtap.Error) as caught:
        ringtap.spark.monitor(spark, captures, digest=True)
    assert caught.value.errors.keys() == {str(path) for path in bad.values()}
    assert all(path in text for path, text in caught.value.errors.items())
    assert caught.value.run.report["digest"] == ringtap.monitor(office, digest=True).report["digest"]
    assert tasks(spark, "bad") == [(5, 0), (2, 0), (1, 0)]


def test_a_damaged_capture_is_a_warning_and_the_packets_before_are_in_the_report(spark, office, tmp_path):
    one, other = split(office, tmp_path)
    other.write_bytes(other.read_bytes()[:-10_000] + b"\xff" * 10_000)
    run, alone = ringtap.spark.monitor(spark, [one, other]), ringtap.monitor(other)
    assert run.warnings == alone.warnings and str(other) in run.warnings[0]
    received = ringtap.monitor(one).report["packets"]["received"] + alone.report["packets"]["received"]
    assert run.report["packets"]["received"] == received


def test_states_are_joined_in_a_tree_and_the_driver_gets_one(spark, office, tmp_path):
    captures = [tmp_path / f"{number}.pcap" for number in range(18)]
    for capture in captures:
        capture.write_bytes(office.read_bytes())
    spark.sparkContext.setJobGroup("tree", "many captures")
    run = ringtap.spark.monitor(spark, captures)
    assert len(run.report["runs"]) == 18
    assert tasks(spark, "tree") == [(18, 0), (5, 0), (2, 0), (1, 0)]


COLUMNS = ["sourceIPAddress", "destinationTransportPort", "octetDeltaCount", "flowStartMilliseconds", "dnsQueryName"]


def test_flows_of_captures_are_those_of_runs(spark, office, tmp_path):
    captures = split(office, tmp_path)
    frame = ringtap.spark.flows(spark, captures, flows="udp port 53", columns=COLUMNS)
    assert frame.columns == COLUMNS
    alone = [pyarrow.table(ringtap.monitor(one, flows="udp port 53", state=False).flows).select(COLUMNS) for one in captures]
    times = [row["flowStartMilliseconds"].timestamp() for table in alone for row in table.to_pylist()]
    assert sorted(row.flowStartMilliseconds.timestamp() for row in frame.collect()) == sorted(times)
    octets = {}
    for row in (row for table in alone for row in table.to_pylist()):
        octets[row["sourceIPAddress"]] = octets.get(row["sourceIPAddress"], 0) + row["octetDeltaCount"]
    found = frame.groupBy("sourceIPAddress").sum("octetDeltaCount").collect()
    assert dict(map(tuple, found)) == octets and len(octets) > 1


def test_all_columns_of_flows_have_types_of_spark(spark, office):
    frame = ringtap.spark.flows(spark, [office])
    whole = ringtap.monitor(office, state=False).flows
    assert frame.columns == pyarrow.table(whole).column_names and frame.count() == len(whole)
    assert len(frame.collect()) == len(whole)


def test_what_cannot_be_flows_is_an_error(spark, office, tmp_path):
    mistakes = [
        ([], {}, "the list of captures is empty"),
        ([office], {"write": "json:flows.json"}, "cannot be used on a cluster"),
        ([office], {"flows": "tcp prot 53"}, "the expression"),
        ([office], {"columns": ["nothing"]}, "there is no column 'nothing'"),
        ([office], {"analyses": "volumes"}, "there are no flow records"),
        ([office], {"tops": 3}, "unexpected argument"),
    ]
    for captures, arguments, message in mistakes:
        with pytest.raises(ringtap.Error, match=message):
            ringtap.spark.flows(spark, captures, **arguments)
    with pytest.raises(Exception, match="missing.pcap"):
        ringtap.spark.flows(spark, [office, tmp_path / "missing.pcap"]).count()


def tasks(spark, group):
    """The tasks, and the failed ones, of each stage of the jobs of a group."""
    tracker = spark.sparkContext.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    found = [tracker.getStageInfo(stage) for stage in sorted(stages)]
    return [(stage.numTasks, stage.numFailedTasks) for stage in found]
