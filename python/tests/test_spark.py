"""`ringtap.spark` on real executors: two workers, each a process. Only with pyspark, which `make test-all` installs."""

import os
import sys

import pytest
import ringtap

pyspark_sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing (RINGTAP_FULL=1 scripts/setup-test.sh installs it)")
import ringtap.spark

from test_states import split


@pytest.fixture(scope="module")
def spark():
    builder = pyspark_sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("ringtap")
    settings = {"spark.ui.enabled": "false", "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = builder.getOrCreate()
    yield session
    session.stop()


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
