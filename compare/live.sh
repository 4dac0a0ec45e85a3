#!/usr/bin/env bash
# Compares ringtap with tcpdump, softflowd and argus on the same live frames, interleaved. Runs in
# network namespaces, as root.
#
# Usage: compare/live.sh [--rates N,…] [--seconds N] [--rounds N] [--flows N] [--squeeze NICE]
# [--only NAME,…]
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
need ethtool ethtool
need ip iproute2
install_needed

cargo build --release --locked >&2
exec python3 compare/live.py --ringtap "${CARGO_TARGET_DIR:-target}/release/ringtap" "$@"
