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


def test_errors_of_tasks_are_errors(spark, office):
    with pytest.raises(Exception, match="unexpected argument '--tops'"):
        ringtap.spark.monitor(spark, [office], tops=1)
    with pytest.raises(ringtap.Error, match="incomplete"):
        ringtap.spark.monitor(spark, [office], analyses="flows")
    with pytest.raises(ringtap.Error, match="nothing to read"):
        ringtap.spark.monitor(spark, [])
