"""Network traffic monitoring of capture files: flows, port scans, top talkers and traffic volumes.

    import ringtap

    run = ringtap.monitor("capture.pcap", interval="60s")
    run.report["packets"]["received"]
    table = pyarrow.table(run.flows)

    for batch in ringtap.stream("eth0", every="10s"):
        table = pyarrow.table(batch)
    for result in ringtap.analysis(function, ringtap.stream("eth0", every="10s"), workers=4):
        ...

    site = ringtap.merge([run, ringtap.read_state("other.state")])
    site.report["exact"]
    pairs = pyarrow.table(ringtap.state(site)["pairs"])
"""

from pathlib import Path

from ._analysis import analysis
from ._ringtap import Error, Run, Stream, Table, merge, monitor, stream
from ._state import state

__all__ = ["Error", "Run", "Stream", "Table", "analysis", "merge", "monitor", "read_state", "state", "stream"]


def read_state(path):
    """Read a state that `ringtap monitor --state` or `ringtap merge --state` wrote: bytes for `merge`."""
    return Path(path).read_bytes()
