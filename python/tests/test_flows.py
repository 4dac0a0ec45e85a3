"""Flow records as tables: equal to the command's CSV in each library that reads Arrow streams."""

import csv
import pickle

import duckdb
import polars
import pyarrow
import pytest
import ringtap

TIMES = ("flowStartMilliseconds", "flowEndMilliseconds")


def finished(path, **flags):
    """The run, also if the capture is damaged."""
    try:
        return ringtap.monitor(path, sequential=True, **flags)
    except ringtap.Error as error:
        assert error.run is not None, error
        return error.run


def by_pyarrow(flows):
    table = pyarrow.table(flows)
    for name in TIMES:
        column = table.schema.get_field_index(name)
        assert table.schema.field(name).type == pyarrow.timestamp("ms", "UTC")
        table = table.set_column(column, name, table.column(name).cast(pyarrow.int64()))
    return table.to_pylist()


def by_polars(flows):
    frame = polars.DataFrame(flows)
    return frame.with_columns(polars.col(name).dt.epoch("ms") for name in TIMES).to_dicts()


def by_duckdb(flows):
    times = ", ".join(f"epoch_ms({name}) as {name}" for name in TIMES)
    found = duckdb.sql(f"select * replace ({times}) from flows")
    return [dict(zip(found.columns, row)) for row in found.fetchall()]


def escaped(value):
    """Text of facts as CSV has it."""
    return "".join(f"\\x{ord(letter):02x}" if letter < " " or letter in ";\\\x7f" else letter for letter in str(value))


def text(value):
    if value is None:
        return ""
    return ";".join(map(escaped, value)) if isinstance(value, list) else escaped(value)


def test_flows_of_each_library_are_those_of_the_csv_file(capture, command):
    written = command("monitor", "--sequential", "-q", "-r", capture, "--write", "csv:-")
    header, *rows = csv.reader(written.stdout.decode().split("\n")[:-1])
    flows = finished(capture).flows
    assert len(flows) == len(rows)
    for library in (by_pyarrow, by_polars, by_duckdb):
        found = [[text(row[name]) for name in header] for row in library(flows)]
        assert found == rows, library.__name__


def test_columns_are_those_of_the_parquet_file(office, tmp_path):
    path = tmp_path / "flows.parquet"
    flows = ringtap.monitor(office, sequential=True, write=f"parquet:{path}", analyses="all,tcp").flows
    found = duckdb.sql("select * from flows")
    kept = duckdb.sql(f"select * from '{path}'")
    assert (found.columns, found.types) == (kept.columns, kept.types)
    assert found.except_(kept).fetchall() == kept.except_(found).fetchall() == []


def test_a_table_can_be_read_again_and_outlives_its_run(office):
    flows = ringtap.monitor(office).flows
    first, second = pyarrow.table(flows), pyarrow.table(flows)
    assert pyarrow.schema(flows) == first.schema
    length = len(flows)
    del flows
    assert first.equals(second) and len(first) == length > 0


def test_many_flows_are_several_batches(command, tmp_path):
    path = tmp_path / "many.pcap"
    command("generate", "--profile", "w3", "--packets", "200k", "--seed", "1", "-w", path, check=True)
    run = ringtap.monitor(path)
    table = pyarrow.table(run.flows)
    assert len(table.to_batches()) > 1
    assert len(table) == run.report["flows"]["records"] == len(run.flows)


def test_without_packets_there_are_columns_but_no_rows(office):
    run = ringtap.monitor(office, filter="host 192.0.2.77")
    table = pyarrow.table(run.flows)
    assert len(table) == len(run.flows) == 0 and "communityId" in table.column_names


def test_origins_are_columns(office, tmp_path):
    networks = tmp_path / "networks.txt"
    networks.write_text("10.20.0.0/16 office\n")
    flows = ringtap.monitor(office, networks=networks).flows
    assert "office" in pyarrow.table(flows)["sourceNetwork"].to_pylist()


def test_flows_can_be_omitted(office):
    assert ringtap.monitor(office, flows=False).flows is None


def test_flows_can_be_chosen_as_in_a_stream(office):
    expression = "udp port 53"
    run = ringtap.monitor(office, sequential=True, flows=expression)
    streamed = [row for batch in ringtap.stream(office, sequential=True, flows=expression) for row in by_pyarrow(batch)]
    assert by_pyarrow(run.flows) == streamed
    whole = ringtap.monitor(office, sequential=True, flows=True)
    assert 0 < len(run.flows) < len(whole.flows) == run.report["flows"]["records"]
    assert len(ringtap.monitor(office, flows=None).flows) == len(whole.flows)
    assert len(ringtap.monitor(office, flows="udp port 9").flows) == 0
    with pytest.raises(ringtap.Error, match="the expression"):
        ringtap.monitor(office, flows="tcp prot 53")
    with pytest.raises(TypeError, match="flows"):
        ringtap.monitor(office, flows=5)


def test_text_can_be_views(office):
    plain, views = (ringtap.monitor(office, sequential=True, strings=strings).flows for strings in ("plain", "view"))
    types = pyarrow.schema(views).types
    assert pyarrow.string_view() in types and pyarrow.string() not in types
    lists = [own.value_type for own in types if pyarrow.types.is_list(own)]
    assert pyarrow.string_view() in lists and pyarrow.string() not in lists
    for library in (by_pyarrow, by_polars, by_duckdb):
        assert library(views) == library(plain), library.__name__
    assert pyarrow.table(pickle.loads(pickle.dumps(views))).equals(pyarrow.table(views))
    with pytest.raises(ringtap.Error, match='use "plain" or "view"'):
        ringtap.monitor(office, strings="views")
