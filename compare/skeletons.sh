#!/usr/bin/env bash
# Compares the skeletons of ringtap-skeleton with rayon, on all CPUs of this machine.
#
# Usage: compare/skeletons.sh [--rounds N] [--quick] [--threads N] [--csv FILE] [--seed N]
#
# Prints Markdown tables and, at the end, ringtap's claims with their verdicts. A run takes about
# three minutes, with --quick one. Do not use the machine for anything else.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cargo build --release --locked --manifest-path compare/Cargo.toml -p skeletons >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/skeletons" "$@"
