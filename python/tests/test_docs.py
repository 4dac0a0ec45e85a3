"""The stubs describe the module, and the examples of the docs and the notebooks run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
import ringtap

from conftest import OFFICE, ROOT, TRACES

PYTHON = ROOT / "python"


@pytest.mark.parametrize("page", ["python/README.md", "docs/PYTHON.md"])
def test_examples_run(page, tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    for name in ("a.pcap", "b.pcap"):
        shutil.copy(OFFICE, tmp_path / name)
    for name in ("b.state", "c.state"):
        (tmp_path / name).write_bytes(ringtap.monitor(OFFICE, interval="60s", flows=False).state)
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("path", sorted(PYTHON.glob("notebooks/*.ipynb")), ids=lambda path: path.name)
def test_notebooks_run(path, monkeypatch):
    notebook = nbformat.read(path, as_version=4)
    source = "".join(cell.source for cell in notebook.cells)
    if "sklearn" in source:
        pytest.importorskip("sklearn", reason="scikit-learn is missing (RINGTAP_FULL=1 scripts/setup-test.sh installs it)")
    if "CAPTURES" in source:
        if not TRACES.exists():
            pytest.skip("no folder of real captures next to the project (shared/traces)")
        monkeypatch.setenv("CAPTURES", str(TRACES / "applications"))
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}})
    client.execute()
    results = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(results) > 3, "the cells print nothing"


def test_stubs_describe_the_module():
    words = [sys.executable, "-m", "mypy.stubtest", "ringtap"]
    checked = subprocess.run(words, capture_output=True, text=True, env=os.environ | {"MYPY_CACHE_DIR": os.devnull})
    assert checked.returncode == 0, checked.stdout + checked.stderr
