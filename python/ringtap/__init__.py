"""Network traffic monitoring of capture files: flows, port scans, top talkers and traffic volumes.

    import ringtap

    run = ringtap.monitor("capture.pcap", interval="60s")
    run.report["packets"]["received"]
    table = pyarrow.table(run.flows)

    for batch in ringtap.stream("eth0", every="10s"):
        table = pyarrow.table(batch)

    site = ringtap.merge([run, ringtap.read_state("other.state")])
    site.report["exact"]
"""

from pathlib import Path

from ._ringtap import Error, Table, Run, Stream, merge, monitor, stream

__all__ = ["Error", "Table", "Run", "Stream", "merge", "monitor", "read_state", "stream"]


def read_state(path):
    """Read a state that `ringtap monitor --state` or `ringtap merge --state` wrote: bytes for `merge`."""
    return Path(path).read_bytes()
