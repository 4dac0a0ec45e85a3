#!/usr/bin/env bash
# Compares AF_XDP with AF_PACKET on the Ethernet faces of ringtap-ndn forward: the same load over two
# veth pairs, the forwarder on one core and the load on another, in turns. Needs root.
#
# Usage: compare/ethernet.sh [--rounds N] [--seconds N] [--windows N,…] [--contents BYTES,…]
#
# Prints a Markdown table.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked -p ringtap-ndn-program >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p forward >&2
exec python3 compare/ethernet.py --program "${CARGO_TARGET_DIR:-target}/release/ringtap-ndn" \
    --load "${CARGO_TARGET_DIR:-compare/target}/release/forward" "$@"
