"""Network traffic monitoring of capture files: flows, port scans, top talkers and traffic volumes.

    import ringtap

    run = ringtap.monitor("capture.pcap", interval="60s")
    run.report["packets"]["received"]
    table = pyarrow.table(run.flows)

    site = ringtap.merge([run, ringtap.read_state("other.state")])
    site.report["exact"]
"""

from pathlib import Path

from ._ringtap import Error, Flows, Run, merge, monitor

__all__ = ["Error", "Flows", "Run", "merge", "monitor", "read_state"]


def read_state(path):
    """Read a state that `ringtap monitor --state` or `ringtap merge --state` wrote: bytes for `merge`."""
    return Path(path).read_bytes()
