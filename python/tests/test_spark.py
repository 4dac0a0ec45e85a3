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


def test_a_bad_capture_is_named_and_the_others_are_in_the_report(spark, office, tmp_path):
    captures = split(office, tmp_path) + [tmp_path / "missing.pcap"]
    with pytest.raises(ringtap.Error, match="missing.pcap") as caught:
        ringtap.spark.monitor(spark, captures, digest=True)
    assert caught.value.run.report["digest"] == ringtap.monitor(office, digest=True).report["digest"]
