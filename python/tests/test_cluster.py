"""The parts of `ringtap.spark` that run in tasks, without Spark."""

import pytest
import ringtap
import ringtap.spark

from test_states import split


class Spark:
    """A session whose tasks run here, one after the other."""

    def __init__(self):
        self.sparkContext = self

    def parallelize(self, items, count):
        assert len(items) == count
        return Tasks([item] for item in items)


class Tasks(list):
    """Partitions, each a list."""

    def map(self, work):
        return Tasks(list(map(work, items)) for items in self)

    def mapPartitions(self, work):
        return Tasks(list(work(iter(items))) for items in self)

    def mapPartitionsWithIndex(self, work):
        return Tasks(list(work(at, iter(items))) for at, items in enumerate(self))

    def partitionBy(self, count, number):
        return Tasks([pair for items in self for pair in items if number(pair[0]) % count == at] for at in range(count))

    def values(self):
        return self.map(lambda pair: pair[1])

    def collect(self):
        return [item for items in self for item in items]


class NoTasks:
    """A session that must not be used."""

    @property
    def sparkContext(self):
        raise AssertionError("a task was started")


def test_captures_in_tasks_give_the_report_of_one_run(office, tmp_path):
    whole = ringtap.monitor(office, digest=True, interval="1s", top=3)
    run = ringtap.spark.monitor(Spark(), split(office, tmp_path), digest=True, interval="1s", top=3)
    assert run.report["digest"] == whole.report["digest"]
    assert len(run.report["runs"]) == 2 and run.flows is None


def test_a_bad_capture_is_named_and_the_others_are_in_the_report(office, tmp_path):
    one, other = split(office, tmp_path)
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"text, and no capture")
    with pytest.raises(ringtap.Error) as caught:
        ringtap.spark.monitor(Spark(), [one, tmp_path / "missing.pcap", other, bad], digest=True)
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 and "bad.pcap" in lines[0] and "missing.pcap" in lines[1]
    assert caught.value.errors == dict(zip([str(bad), str(tmp_path / "missing.pcap")], lines))
    assert caught.value.run.report["digest"] == ringtap.monitor(office, digest=True).report["digest"]
    with pytest.raises(ringtap.Error, match="bad.pcap") as caught:
        ringtap.spark.monitor(Spark(), [bad])
    run = caught.value.run
    assert run is None or run.report["packets"]["received"] == 0


def test_states_are_joined_in_a_tree_of_tasks():
    for count in range(1, 70):
        joins = []

        def join(found):
            found = list(found)
            joins.append(len(found))
            return [sum(found, [])]

        leaves = Tasks([[number]] for number in range(count))
        (joined,) = ringtap.spark._tree(leaves, count, join).collect()
        assert joined == list(range(count))
        levels = 0
        while ringtap.spark._FAN_IN**levels < count:
            levels += 1
        assert max(joins, default=0) <= ringtap.spark._FAN_IN
        assert len(joins) == sum(-(-count // ringtap.spark._FAN_IN**level) for level in range(1, levels + 1))


def test_flags_are_checked_before_a_task_starts(office, tmp_path):
    for flags, words in [
        ({"tops": 1}, "tops"),
        ({"top": "many"}, "many"),
        ({"idle_timeout": "soon"}, "soon"),
        ({"analyses": "flows"}, "incomplete"),
        ({"write": f"parquet:{tmp_path}/x"}, "write cannot be used on a cluster"),
        ({"events": [f"json:{tmp_path}/x"]}, "events cannot be used on a cluster"),
        ({"export": "ipfix://127.0.0.1:9"}, "export cannot be used on a cluster"),
    ]:
        with pytest.raises(ringtap.Error, match=words):
            ringtap.spark.monitor(NoTasks(), [office], **flags)
    with pytest.raises(ringtap.Error, match="nothing to read"):
        ringtap.spark.monitor(NoTasks(), [])
    assert list(tmp_path.iterdir()) == []


def chunks(probe, run, state, count=2):
    """The chunks of a state."""
    size = len(state) // count + 1
    return [ringtap.spark._Chunk(probe, run * 16, 0, at, count, state[at * size : (at + 1) * size]) for at in range(count)]


@pytest.fixture
def states(office):
    """The states of three probes: the last has other settings."""
    flags = [{}, {}, {"interval": "60s"}]
    return [ringtap.monitor(office, probe=name, flows=False, **one).state for name, one in zip("abc", flags)]


def report(all_chunks, **options):
    values = {(one.probe, one.run, one.part, one.chunks, one.chunk): one.value for one in all_chunks}
    return ringtap.spark._report(values, ["a", "b", "c"], {"digest": True}, **options)


def test_a_probe_with_other_settings_is_named_and_the_others_are_merged(states):
    all_chunks = [chunk for name, run, state in zip("abc", "123", states) for chunk in chunks(name, run, state)]
    row = report(all_chunks)
    assert (row["probes"], row["missing"], row["incomplete"]) == (["a", "b"], ["c"], [])
    (error,) = row["errors"]
    assert error.startswith(f"c, run {'3' * 16}, part 0: other settings: interval_ns is 60000000000, and not null")
    # The order of the states does not matter.
    assert report(all_chunks[::-1])["errors"] == row["errors"]
    row = report(all_chunks, settings_of="c")
    assert (row["probes"], row["missing"], len(row["errors"])) == (["c"], ["a", "b"], 2)
    # A probe that is not there asks for nothing.
    assert report(all_chunks, settings_of="d")["probes"] == ["a", "b"]


def test_states_that_do_not_belong_to_the_others_do_not_blank_the_report(states):
    one, other, _ = states
    # The run of a is there again under another number of chunks, and a damaged state.
    all_chunks = chunks("a", "1", one) + chunks("a", "1", one, 3) + chunks("b", "2", other) + chunks("c", "3", bytes(900))
    row = report(all_chunks)
    assert (row["probes"], row["missing"]) == (["a", "b"], ["c"])
    assert sorted(error.split(",")[0] for error in row["errors"]) == ["c"]
    row = report(all_chunks[:-1] + chunks("d", "4", one)[:1])
    assert row["incomplete"] and row["probes"] == ["a", "b"]
    # The same run from another probe's name.
    row = report(chunks("a", "1", one) + chunks("b", "2", other) + chunks("x", "9", one))
    assert row["probes"] == ["a", "b"]
    assert len(row["errors"]) == 1 and "is in two of the states" in row["errors"][0]
