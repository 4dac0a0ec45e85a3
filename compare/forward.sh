#!/usr/bin/env bash
# Compares ringtap-ndn forward with ndnd, a forwarder in Go: the same load over loopback UDP, the
# forwarder on one core and the load on another, in turns.
#
# Usage: compare/forward.sh [--rounds N] [--seconds N] [--windows N,…] [--content BYTES] [--offload]
#
# Needs target/test-tools/ndnd, which scripts/setup-test.sh builds. Prints a Markdown table.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked -p ringtap-ndn-program >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p forward >&2
exec python3 compare/forward.py --program "${CARGO_TARGET_DIR:-target}/release/ringtap-ndn" \
    --load "${CARGO_TARGET_DIR:-compare/target}/release/forward" --ndnd target/test-tools/ndnd "$@"
