"""Network traffic monitoring of capture files: flows, port scans, top talkers and traffic volumes.

    import ringtap

    run = ringtap.monitor("capture.pcap", interval="60s")
    run.report["packets"]["received"]
    table = pyarrow.table(run.flows)
"""

from ._ringtap import Error, Flows, Run, monitor

__all__ = ["Error", "Flows", "Run", "monitor"]
