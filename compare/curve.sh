#!/usr/bin/env bash
# Millions of packets a second by the number of active flows: ringtap on one thread, and the yardstick.
#
# Usage: compare/curve.sh [--rounds N] [--flows LIST] [--packets N] [--csv FILE]
#
# Prints a table in Markdown. The traces (profile steady, 20 M packets of 1k to 10M flows; seed 1) are made one after
# the other in the folder TMPDIR, or /tmp, which needs 3.1 GB, and should fit into memory. All of it takes some ten
# minutes. Leave the machine alone meanwhile. compare/curve.py says what is measured and how.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p meter >&2
exec python3 compare/curve.py --ringtap "${CARGO_TARGET_DIR:-target}/release/ringtap" \
    --meter "${CARGO_TARGET_DIR:-compare/target}/release/meter" "$@"
