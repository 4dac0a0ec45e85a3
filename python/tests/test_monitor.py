"""`ringtap.monitor`: flags, report, warnings and errors are those of the command."""

import json
import pickle
import re
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow
import pytest
import ringtap

# Differ from run to run.
VARYING = ("performance", "plan")


def without(report):
    return {name: value for name, value in report.items() if name not in VARYING}


def test_the_report_and_its_digest_are_those_of_the_command(capture, command):
    words = ["monitor", "-q", "-r", capture, "--report", "json", "--digest", "--seed", 1, "--interval", "60s"]
    printed = command(*words)
    try:
        run = ringtap.monitor(capture, digest=True, seed=1, interval="60s")
    except ringtap.Error as error:
        assert printed.returncode == 1
        run = error.run
    assert without(run.report) == without(json.loads(printed.stdout))
    assert run.report["digest"].startswith("sha256:")
    warnings = [line.removeprefix("warning: ") for line in printed.stderr.decode().splitlines() if line.startswith("warning: ")]
    assert run.warnings == list(map(by_arguments, warnings))


def test_several_captures_are_one_run(office):
    one, two = (ringtap.monitor(source, flows=False).report["packets"]["received"] for source in (office, [office, str(office)]))
    assert two == 2 * one


def test_values_have_the_types_of_python(office, tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("example.org Example\n")
    run = ringtap.monitor(
        str(office),
        top=3,
        digest=False,
        sequential=True,
        memory="512M",
        names=names,
        idle_timeout=15,
        filter=None,
        analyses=["flows", "talkers"],
        alert=["dst-pps=1000000", "src-peers=1000000"],
        write=[f"json:{tmp_path}/flows.json", f"csv:{tmp_path}/flows.csv"],
    )
    assert "digest" not in run.report
    assert len(run.report["talkers"]["by_octets"]["source"]) == 3
    assert run.report["plan"]["skeleton"] == "reference"
    written = (tmp_path / "flows.json").read_text().splitlines()
    assert len(run.flows) == len(written) == len((tmp_path / "flows.csv").read_text().splitlines()) - 1
    assert [one["output"].split(":")[0] for one in run.report["write"]] == ["json", "csv"]


MISTAKES = {
    "a time": {"interval": "5x"},
    "a number": {"top": "many"},
    "a negative number": {"top": -1},
    "a huge number": {"workers": 10**30},
    "a list": {"analyses": ["flows", "everything"]},
    "a repeated flag": {"alert": ["dst-pps=5", "dst-pqs=5"]},
    "a switch with a value": {"write": True},
    "an unknown flag": {"tops": 5},
    "an unknown switch": {"sequentially": True},
    "a format": {"write": "xml:flows"},
    "a folder": {"write": "json:/does/not/exist/flows.json"},
    "the same file": {"write": ["json:/tmp/ringtap-a", "csv:/tmp/ringtap-a"]},
    "a collector": {"export": "ipfix:192.0.2.1"},
    "an expression": {"filter": "tcp prot 80"},
    "a list of names": {"names": "/does/not/exist"},
    "a database": {"geo": __file__},
    "flags that exclude each other": {"events": "json:/tmp/ringtap-events", "extract": "none"},
    "a flag without its other": {"tls_key": __file__},
    "too little memory": {"memory": 1},
    "too many workers": {"workers": 100000},
}


@pytest.mark.parametrize("flags", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_has_the_message_of_the_command_with_the_names_of_arguments(flags, command, office):
    words = ["monitor", "-q", "-r", office]
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if name == "analyses":
            value = ",".join(value)
        for one in value if isinstance(value, list) else [value]:
            words.append(flag if one is True and name not in ("write",) else f"{flag}={str(one).lower() if one is True else one}")
    printed = command(*words)
    assert printed.returncode in (1, 2)
    with pytest.raises(ringtap.Error) as raised:
        # A table and a state need memory, which one message names.
        ringtap.monitor(office, flows=False, state=False, **flags)
    assert raised.value.run is None
    assert shown(printed) == str(raised.value)
    assert "--" not in str(raised.value)


def shown(printed):
    """The command's errors without their kind and the hints on its usage, and with arguments instead of flags."""
    lines = printed.stderr.decode().splitlines()
    # The command says which rights it keeps; a module keeps those of its program.
    text = "\n".join(line for line in lines if not line.startswith("capabilities: "))
    text = text.split("\n\nUsage:")[0].split("\n\nFor more information")[0].strip()
    assert text.startswith("error: ")
    text = text.removeprefix("error: ").replace("\nerror: ", "\n")
    return by_arguments(text)


def by_arguments(text):
    """A message of the command with arguments instead of flags."""
    return re.sub(r"--([a-z][a-z-]*)(?: <[^>]*>)?", lambda flag: flag[1].replace("-", "_"), text)


def test_a_file_that_is_no_capture_is_an_error_with_the_rest_of_the_run(command, office, tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("hello, this is a text\n")
    printed = command("monitor", "-q", "-r", text, "-r", office)
    with pytest.raises(ringtap.Error) as raised:
        ringtap.monitor([text, office])
    assert shown(printed) == str(raised.value)
    run = raised.value.run
    assert run.report["packets"]["received"] == ringtap.monitor(office).report["packets"]["received"]
    assert len(run.flows) > 0


def test_captures_that_cannot_be_opened_are_named_before_any_is_read(command, office, tmp_path):
    others = [tmp_path / "missing.pcap", tmp_path]
    printed = command("monitor", "-q", "-r", office, *others)
    with pytest.raises(ringtap.Error) as raised:
        ringtap.monitor([office, *others])
    assert shown(printed) == str(raised.value)
    assert all(f"opening {other}: " in str(raised.value) for other in others)
    assert raised.value.run is None


def test_losses_are_an_error_on_request(command, office):
    # Which flows end early depends on the seed.
    flags = {"max_flows": 2, "sequential": True, "seed": 1}
    assert ringtap.monitor(office, **flags).report["flows"]["end_reasons"]["lack_of_resources"] > 0
    printed = command("monitor", "-q", "--max-flows=2", "--sequential", "--seed=1", "--fail-on-drop", "-r", office)
    with pytest.raises(ringtap.Error) as raised:
        ringtap.monitor(office, fail_on_drop=True, **flags)
    errors = [line for line in printed.stderr.decode().splitlines() if line.startswith("error: ")]
    assert [by_arguments(line) for line in errors] == [f"error: {line}" for line in str(raised.value).splitlines()]
    assert raised.value.run.warnings == ringtap.monitor(office, **flags).warnings


@pytest.mark.parametrize("name", ["interface", "dpdk_args", "config", "tui", "report", "dry_run", "read", "quiet", "metrics", "web"])
def test_flags_of_a_terminal_are_refused(name, office):
    with pytest.raises(ringtap.Error, match=f"^{name} cannot be used in Python: "):
        ringtap.monitor(office, **{name: "x"})


@pytest.mark.parametrize("value", [object(), {"a": 1}, b"\xff", [["nested"]], "\0"], ids=repr)
def test_a_value_of_another_type_is_an_error(value, office):
    with pytest.raises(ringtap.Error):
        ringtap.monitor(office, names=value)


def test_sources_are_paths():
    with pytest.raises(ringtap.Error, match="nothing to read"):
        ringtap.monitor([])
    for source in (5, None, [5]):
        with pytest.raises(TypeError):
            ringtap.monitor(source)


def test_runs_of_several_threads_are_independent(office):
    digests = []
    def work():
        digests.append(ringtap.monitor(office, digest=True, flows=False).report["digest"])
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == 4 and len(set(digests)) == 1


def test_results_describe_themselves(office):
    run = ringtap.monitor(office)
    received = run.report["packets"]["received"]
    assert repr(run) == f"<ringtap.Run: {received} packets>"
    assert repr(run.flows).startswith(f"<ringtap.Table: {len(run.flows)} rows, ")


def test_runs_and_errors_can_be_pickled(office, tmp_path):
    run = ringtap.monitor(office, sequential=True)
    again = pickle.loads(pickle.dumps(run))
    assert (again.report, again.state, again.warnings) == (run.report, run.state, run.warnings)
    assert pyarrow.table(again.flows).equals(pyarrow.table(run.flows)) and len(again.flows) > 0
    assert ringtap.merge([again, pickle.loads(pickle.dumps(ringtap.monitor(office)))]).report["packets"]["received"] > 0
    without_rows = ringtap.monitor(office, filter="host 192.0.2.77").flows
    assert pyarrow.table(pickle.loads(pickle.dumps(without_rows))).equals(pyarrow.table(without_rows))
    alone = pickle.loads(pickle.dumps(ringtap.monitor(office, flows=False, state=False)))
    assert alone.flows is None and alone.state is None
    text = tmp_path / "notes.txt"
    text.write_text("hello, this is a text\n")
    with pytest.raises(ringtap.Error) as raised:
        ringtap.monitor([text, office])
    error = pickle.loads(pickle.dumps(raised.value))
    assert str(error) == str(raised.value) and error.run.report == raised.value.run.report
    with pytest.raises(ringtap.Error, match="pickled table"):
        type(run.flows)(b"no table")


def test_a_run_of_another_process_comes_back(office):
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        run = pool.submit(ringtap.monitor, office, digest=True).result()
    assert run.report["digest"] == ringtap.monitor(office, digest=True).report["digest"]


def test_an_empty_list_of_captures_is_an_error():
    with pytest.raises(ringtap.Error, match="the list of captures is empty"):
        ringtap.monitor([])
