#!/usr/bin/env bash
# Measures what a hostile neighbour of ringtap-ndn forward costs the other faces: pings while it sends ten
# million Interests with distinct names and lifetimes of an hour.
#
# Usage: compare/hostile.sh [--count N] [--rate N] [--offload] [--rounds N] [--idle SECONDS]
#
# Prints Markdown tables.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked -p ringtap-ndn-program >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p forward >&2
exec python3 compare/hostile.py --program "${CARGO_TARGET_DIR:-target}/release/ringtap-ndn" \
    --flood "${CARGO_TARGET_DIR:-compare/target}/release/flood" "$@"
