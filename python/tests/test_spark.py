"""`ringtap.spark.monitor` on real executors: two workers, each a process."""

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


def tasks(spark, group):
    """The tasks, and the failed ones, of each stage of the jobs of a group."""
    tracker = spark.sparkContext.statusTracker()
    stages = {stage for job in tracker.getJobIdsForGroup(group) for stage in tracker.getJobInfo(job).stageIds}
    found = [tracker.getStageInfo(stage) for stage in sorted(stages)]
    return [(stage.numTasks, stage.numFailedTasks) for stage in found]
