"""Prints the flows of nfstream in a capture, a line of JSON each, with octets of layer 3."""

import json
import sys

from nfstream import NFStreamer

FIELDS = [
    f"{of}_{name}"
    for of in ("src2dst", "dst2src")
    for name in ("packets", "bytes")
    + tuple(f"{moment}_{of}" for of in ("ps", "piat_ms") for moment in ("min", "max", "mean", "stddev"))
]


def main():
    flows = NFStreamer(
        source=sys.argv[1],
        statistical_analysis=True,
        splt_analysis=12,
        accounting_mode=1,
        n_dissections=0,
        idle_timeout=36_000,
        active_timeout=3_600_000,
        n_meters=1,
    )
    for flow in flows:
        ends = [flow.src_ip, flow.src_port, flow.dst_ip, flow.dst_port, flow.protocol]
        lists = [list(flow.splt_ps), list(flow.splt_direction), list(flow.splt_piat_ms)]
        print(json.dumps([ends, [getattr(flow, name) for name in FIELDS], lists]))


# The processes of nfstream load this file again.
if __name__ == "__main__":
    main()
