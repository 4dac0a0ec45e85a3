"""The tables of states: their rows add up to the report, in each library that reads Arrow streams."""

import pickle

import duckdb
import polars
import pyarrow
import pytest
import ringtap

from conftest import OFFICE
from test_states import split

# Those of each state, in order; DNS records and TCP have their own analyses.
NAMES = [
    "conversations", "protocols", "intervals", "pairs", "ports", "attempts", "udp_attempts", "applications", "applications_by_time",
    "servers", "lookups",
]
FURTHER = ["dns_records", "tcp_servers", "tcp_pairs"]


@pytest.fixture(scope="module")
def run():
    return ringtap.monitor(OFFICE, flows=False, interval="1s", analyses="all,tcp,passive_dns", top=100_000, scan_threshold=0)


def rows(table):
    return pyarrow.table(table).to_pylist()


def test_a_state_is_a_mapping_of_tables(run, tmp_path):
    path = tmp_path / "a.state"
    path.write_bytes(run.state)
    state = ringtap.state(path)
    assert sorted(state) == sorted(NAMES + FURTHER) and len(state) == len(NAMES + FURTHER)
    assert "pairs" in state and "live" not in state and state.get("sums") is None
    with pytest.raises(KeyError, match="nothing"):
        state["nothing"]
    assert "pairs" in repr(state)
    for source in (str(path), run.state, run):
        assert {name: rows(table) for name, table in ringtap.state(source).items()} == {name: rows(table) for name, table in state.items()}


def test_pairs_add_up_to_the_talkers(run):
    sent, received, between = {}, {}, {}
    for row in rows(ringtap.state(run)["pairs"]):
        low, high = row["low_address"], row["high_address"]
        between[low, high] = row["low_octets"] + row["high_octets"]
        for source, target, octets in ((low, high, row["low_octets"]), (high, low, row["high_octets"])):
            sent[source] = sent.get(source, 0) + octets
            received[target] = received.get(target, 0) + octets
    lists = run.report["talkers"]["by_octets"]
    assert {row["address"]: row["octets"] for row in lists["source"]} == {host: octets for host, octets in sent.items() if octets}
    assert {row["address"]: row["octets"] for row in lists["destination"]} == {host: octets for host, octets in received.items() if octets}
    assert {tuple(row["addresses"]): row["octets"] for row in lists["pair"]} == between


def test_ports_protocols_and_intervals_are_those_of_the_report(run):
    state, report = ringtap.state(run), run.report
    ports = {(row["protocol"], row["port"]): row["octets"] for row in rows(state["ports"])}
    assert ports == {(row["protocol"], row["port"]): row["octets"] for row in report["talkers"]["by_octets"]["port"]}
    whole = [row for row in rows(state["intervals"]) if row["interval"] is None]
    assert [row["packets"] for row in whole] == [report["packets"]["handled"]]
    parts = [row for row in rows(state["intervals"]) if row["interval"] is not None]
    assert [row["packets"] for row in parts] == [one["packets"]["handled"] for one in report["intervals"]]
    assert [row["interval"].isoformat()[:19] for row in parts] == [one["start"][:19] for one in report["intervals"]]
    protocols = {row["protocol"]: row["octets"] for row in rows(state["protocols"]) if row["interval"] is None}
    assert protocols == {int(number): one["octets"] for number, one in report["protocols"].items()}


def test_attempts_without_an_answer_are_the_scans(run):
    failed = [row for row in rows(ringtap.state(run)["attempts"]) if row["state"] == 1]
    ports = {}
    for row in failed:
        ports.setdefault((row["source"], row["target"]), set()).add(row["port"])
    assert {(scan["source"], scan["target"]): scan["ports"] for scan in run.report["scans"]["vertical"]} == {
        pair: len(all) for pair, all in ports.items()
    }


def test_tables_are_read_by_each_library(run):
    state = ringtap.state(run)
    for name, table in state.items():
        columns = pyarrow.table(table).column_names
        assert polars.DataFrame(table).columns == columns, name
        assert duckdb.from_arrow(pyarrow.table(table)).columns == columns, name
        assert pyarrow.table(pickle.loads(pickle.dumps(table))).equals(pyarrow.table(table))
    pairs = state["pairs"]
    assert duckdb.sql("select sum(low_packets + high_packets) from pairs").fetchall()[0][0] > 0
    assert pyarrow.schema(pairs).field("low_octets").type == pyarrow.uint64()


def test_a_merged_state_has_the_tables_of_the_whole(office, tmp_path):
    flags = {"flows": False, "interval": "1s"}
    merged = ringtap.merge([ringtap.monitor(path, **flags) for path in split(office, tmp_path)])
    whole = ringtap.state(ringtap.monitor(office, **flags))
    for name in ("pairs", "ports", "attempts", "intervals", "protocols", "applications_by_time", "servers", "lookups"):
        own, other = (pyarrow.table(state[name]) for state in (ringtap.state(merged), whole))
        assert own.equals(other), name


def test_what_is_no_state_has_no_tables(run, office, tmp_path):
    for state, message in ((b"text", "this is not a state"), (run.state[:40], "truncated"), (b"", "this is not a state")):
        with pytest.raises(ringtap.Error, match=message):
            ringtap.state(state)
    damaged = bytearray(run.state)
    damaged[len(damaged) // 2] ^= 1
    with pytest.raises(ringtap.Error, match="^reading a state: .*damaged"):
        for name in ringtap.state(bytes(damaged)):
            ringtap.state(bytes(damaged))[name]
    with pytest.raises(ringtap.Error, match="a run without a state"):
        ringtap.state(ringtap.monitor(office, state=False))
    with pytest.raises(FileNotFoundError):
        ringtap.state(tmp_path / "none.state")
    with pytest.raises(TypeError):
        ringtap.state(5)
