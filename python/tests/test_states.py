"""States of runs, and `ringtap.merge`: the report and the errors are those of the command."""

import json
import struct

import pytest
import ringtap


def split(capture, folder):
    """The packets of a pcap file of Ethernet in two files: a pair of addresses is in one of them."""
    data = capture.read_bytes()
    parts = [bytearray(data[:24]), bytearray(data[:24])]
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16 : at + 16 + length]
        ends = frame[26:34] if frame[12:14] == b"\x08\x00" else frame[22:54]
        parts[sum(ends) % 2] += data[at : at + 16 + length]
        at += 16 + length
    paths = [folder / "one.pcap", folder / "other.pcap"]
    for path, part in zip(paths, parts):
        path.write_bytes(part)
    return paths


def test_parts_merge_to_the_whole(office, tmp_path):
    whole = ringtap.monitor(office, digest=True)
    one, other = (ringtap.monitor(path, flows=False) for path in split(office, tmp_path))
    merged = ringtap.merge([one, other.state], digest=True)
    assert merged.report["exact"] and merged.flows is None and merged.warnings == []
    assert merged.report["digest"] == whole.report["digest"]
    again = ringtap.merge([merged], digest=True, top=1)
    assert again.report["digest"] != merged.report["digest"]
    assert len(again.report["talkers"]["by_octets"]["source"]) == 1


def test_states_are_those_of_the_command(office, tmp_path, command):
    path = tmp_path / "a.state"
    assert command("monitor", "-q", "-r", office, "--state", path).returncode == 0
    printed = json.loads(command("merge", path, "--report", "json", "--digest").stdout)
    state = ringtap.read_state(path)
    assert isinstance(state, bytes)
    assert ringtap.merge([state], digest=True).report == printed
    path.write_bytes(ringtap.monitor(office, probe="b").state)
    printed = json.loads(command("merge", path, "--report", "json").stdout)
    assert [run["probe"] for run in printed["runs"]] == ["b"]


def test_what_cannot_be_merged_is_an_error(office, command, tmp_path):
    run = ringtap.monitor(office, flows=False)
    mistakes = [
        ([run, run], {}, "is in two of the states"),
        ([run, ringtap.monitor(office, interval="1s")], {}, "different settings: interval_ns"),
        ([run.state[:-1]], {}, "the state is truncated"),
        ([b"text"], {}, "this is not a state"),
        ([ringtap.monitor(office, state=False)], {}, "a run without a state"),
        ([ringtap.monitor(office, analyses="flows")], {}, "a run without a state"),
        ([run], {"tops": 3}, "unexpected argument 'tops'"),
        ([run], {"write": "sketch:x"}, "write cannot be used with states"),
        ([], {}, "there is none"),
    ]
    for states, flags, message in mistakes:
        with pytest.raises(ringtap.Error, match=message):
            ringtap.merge(states, **flags)
