#!/usr/bin/env bash
# Compares ringtap filter with a bridge that has an nft set of the same size: a TCP transfer through
# each between two namespaces, over veth pairs with their default offloads, in turns. Needs root, iperf3
# and nft.
#
# Usage: compare/offload.sh [--rounds N] [--seconds N] [--addresses N] [--congestion NAME] [--ringtap PROGRAM …]
#
# The result depends on TCP's congestion control (--congestion bbr, cubic): bbr sends less if acknowledgements are late.
#
# Prints a Markdown table.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
need iperf3 iperf3
need nft nftables
install_needed

cargo build --release --locked >&2
exec python3 compare/offload.py --ringtap "${CARGO_TARGET_DIR:-target}/release/ringtap" "$@"
