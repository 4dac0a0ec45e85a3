#!/usr/bin/env bash
# Measures millions of packets per second by number of active flows: ringtap on one thread, and the
# minimal meter.
#
# Usage: compare/curve.sh [--rounds N] [--flows LIST] [--packets N] [--csv FILE]
#
# Prints a Markdown table. The traces (profile steady, 20 M packets, 1k to 10M flows, seed 1) are
# generated one after the other in the folder TMPDIR, or /tmp, which needs 3.1 GB. They should fit
# into memory. A run takes about ten minutes; do not use the machine for anything else.
# compare/curve.py describes the method.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p meter >&2
exec python3 compare/curve.py --ringtap "${CARGO_TARGET_DIR:-target}/release/ringtap" \
    --meter "${CARGO_TARGET_DIR:-compare/target}/release/meter" "$@"
