"""The rules of `ringtap.spark.merge_stream` for intervals, without Spark."""

import random

import pytest
from ringtap.spark import _KNOWN_MAX, _KNOWN_MS, _LISTED_MAX, _OTHERS, _Chunk, _counts, _listed, _step

MINUTE = 60


def chunk(probe, run="r", part=0, number=0, chunks=1, value=b"x"):
    return _Chunk(probe, run, part, number, chunks, value)


class Stream:
    """What the query does: chunks by interval, one watermark, and a step for each interval of a batch, then for those that
    are over. A batch has the watermark of the batches before it."""

    def __init__(self, delay, mode="append"):
        self.delay, self.mode, self.watermark, self.latest = delay, mode, 0, 0
        self.kept, self.known_until, self.rows = {}, {}, []

    def batch(self, *states, now=10**6):
        """States: time and chunk."""
        found = {}
        for begin, one in states:
            ahead = begin > now + min(self.delay, MINUTE)
            own = now if ahead else begin
            found.setdefault((own // MINUTE * MINUTE, ahead), []).append(one)
            if not ahead:
                self.latest = max(self.latest, begin)
        for (start, ahead), new in found.items():
            self.step(start, new, ahead)
        for start in self.kept.keys() - {"ahead"}:
            if isinstance(self.kept[start], dict):
                if start + MINUTE < self.watermark:
                    self.step(start, [], False)
            elif self.known_until[start] < self.watermark:
                del self.kept[start]
        self.watermark = max(self.watermark, self.latest - self.delay)

    def step(self, start, new, ahead):
        # States ahead are one group.
        group = "ahead" if ahead else start
        kept = self.kept.pop(group, None)
        kept, row = _step(kept, new, ahead, start + MINUTE <= self.watermark, self.mode, lambda chunks: {"chunks": chunks})
        if kept is not None:
            self.kept[group] = kept
            self.known_until[group] = self.watermark + _KNOWN_MS // 1000
        if row is not None:
            self.rows.append((start, row))

    def open(self):
        """The chunks of intervals that are not over."""
        return {start: kept for start, kept in self.kept.items() if isinstance(kept, dict)}

    def reports(self):
        """The probes of each report, by interval."""
        return {start: sorted({key[0] for key in row["chunks"]}) for start, row in self.rows if "chunks" in row}

    def counts(self, column):
        return [(start, row[column]) for start, row in self.rows if column in row]


def test_a_fast_clock_leaves_the_other_probes_complete():
    stream = Stream(delay=MINUTE)
    for minute in range(1, 20):
        begin = minute * MINUTE
        stream.batch((begin, chunk("a", part=minute)), (begin + 900, chunk("fast", part=minute)), now=begin + MINUTE)
        stream.batch((begin, chunk("b", part=minute)), now=begin + MINUTE)
    reports = stream.reports()
    assert len(reports) > 15 and all(probes == ["a", "b"] for probes in reports.values())
    assert stream.counts("late") == []
    assert [counts for _, counts in stream.counts("ahead")] == [{"fast": 1}] * 19


def test_late_states_are_counted_by_probe():
    stream = Stream(delay=MINUTE)
    for minute in range(1, 9):
        stream.batch((minute * MINUTE, chunk("a", part=minute)))
    # A clock that was set back; a state of two chunks, twice.
    late = [chunk("b", part=7, number=number, chunks=2) for number in (0, 1, 0, 1)]
    stream.batch(*((MINUTE, one) for one in [*late, chunk("b", part=8), chunk("c")]), (2 * MINUTE, chunk("a", part=99)))
    assert stream.counts("late") == [(MINUTE, {"b": 2, "c": 1}), (2 * MINUTE, {"a": 1})]
    assert stream.reports()[MINUTE] == ["a"]
    # The chunks of what is over are not kept.
    assert len(stream.open()) <= 3


def test_a_repeated_state_is_counted_once_and_not_if_it_was_in_a_report():
    stream = Stream(delay=MINUTE)
    for minute in range(1, 9):
        stream.batch((minute * MINUTE, chunk("a", part=minute)))
    late, ahead = chunk("b", part=7, chunks=2), chunk("c", run="s")
    for batch in range(3):
        # In a later batch, and with another time of the broker.
        states = [(MINUTE, late), (MINUTE, chunk("a", part=1)), (10**7, ahead)]
        stream.batch(*states, now=10**6 + batch * MINUTE)
    assert stream.counts("late") == [(MINUTE, {"b": 1})]
    assert [counts for _, counts in stream.counts("ahead")] == [{"c": 1}]
    # Other parts and runs are other states.
    stream.batch((MINUTE, chunk("b", part=8)), (MINUTE, chunk("b", run="t", part=7)), (10**7, chunk("c")))
    assert stream.counts("late")[1:] == [(MINUTE, {"b": 2})]
    assert [counts for _, counts in stream.counts("ahead")][1:] == [{"c": 1}]
    # A part of a state that is incomplete in its row.
    stream.batch((9 * MINUTE, chunk("d", number=1, chunks=2)))
    for minute in range(10, 14):
        stream.batch((minute * MINUTE, chunk("a", part=minute)))
    assert stream.reports()[9 * MINUTE] == ["d"]
    stream.batch((9 * MINUTE, chunk("d", chunks=2)))
    assert len(stream.counts("late")) == 2


def test_known_states_are_dropped_after_a_time():
    stream = Stream(delay=MINUTE)
    stream.batch((MINUTE, chunk("a")))
    begin = 9 * MINUTE
    for step in (0, _KNOWN_MS // 1000 - 2 * MINUTE, 2 * _KNOWN_MS // 1000):
        for end in (begin + step, begin + step):
            stream.batch((end, chunk("b", part=end)))
        stream.batch((MINUTE, chunk("a")))
    assert stream.counts("late") == [(MINUTE, {"a": 1})]
    assert len(stream.kept) < 4


def test_known_states_are_bounded():
    for ahead in (False, True):
        kept, row = _step(None, [chunk("a", part=part) for part in range(_KNOWN_MAX + 5)], ahead, True, "append", dict)
        assert len(kept) == _KNOWN_MAX and row["ahead" if ahead else "late"] == {"a": _KNOWN_MAX + 5}
        kept, row = _step(kept, [chunk("a", part=part) for part in (0, 4, 5)], ahead, True, "append", dict)
        assert len(kept) == _KNOWN_MAX and row["ahead" if ahead else "late"] == {"a": 2}
    kept = {("a", "r", part, 1, 0): b"" for part in range(_KNOWN_MAX + 5)}
    assert len(_step(kept, [], False, True, "append", dict)[0]) == _KNOWN_MAX


@pytest.mark.parametrize("mode", ["append", "update"])
def test_each_state_is_in_one_report_or_counted(mode):
    for seed in range(200):
        rng = random.Random(seed)
        stream, sent, repeated = Stream(delay=rng.choice([MINUTE, 5 * MINUTE]), mode=mode), 0, []
        for batch in range(60):
            states = []
            for _ in range(rng.randrange(4)):
                offset = rng.choice([0, 0, 0, -30, -700, 40, 2000])
                states.append(((batch + 20) * MINUTE + offset, chunk(rng.choice("abc"), part=sent)))
                sent += 1
            # Some are repeated, in this batch or a later one.
            repeated += rng.sample(states, rng.randrange(len(states) + 1))
            if rng.random() < 0.5:
                states, repeated = states + repeated, []
            stream.batch(*states, now=(batch + 20) * MINUTE)
        counted = sum(sum(counts.values()) for column in ("late", "ahead") for _, counts in stream.counts(column))
        last = {start: row["chunks"] for start, row in stream.rows if "chunks" in row}
        if mode == "append":
            assert len(last) == sum("chunks" in row for _, row in stream.rows), seed
        kept = sum(map(len, (last | stream.open()).values()))
        assert counted + kept == sent, seed


def test_lists_are_bounded():
    probes = [f"p{number:04}" for number in range(_LISTED_MAX + 50)]
    counts = _counts(probes + ["often"] * 9)
    assert len(counts) == _LISTED_MAX + 1 and counts["often"] == 9 and counts[_OTHERS] == 51
    assert sum(counts.values()) == len(probes) + 9
    assert _listed(["x"] * _LISTED_MAX) == ["x"] * _LISTED_MAX
    assert _listed(probes)[-1] == "and 50 others" and len(_listed(probes)) == _LISTED_MAX + 1


def test_repeated_messages_are_one():
    kept, row = _step(None, [chunk("a"), chunk("a", value=b"y")], False, False, "update", dict)
    assert kept == row == {("a", "r", 0, 1, 0): b"x"}
    known, row = _step(kept, [], False, True, "append", dict)
    assert row == kept and known == [chunk("a").state]
    # The row of the last state is there already.
    assert _step(kept, [], False, True, "update", dict) == (known, None)
