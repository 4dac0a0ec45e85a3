#!/usr/bin/env bash
# The skeletons of ringtap-skeleton beside rayon, on all CPUs of this machine.
#
# Usage: compare/skeletons.sh [--rounds N] [--quick] [--threads N] [--csv FILE] [--seed N]
#
# Prints tables in Markdown and, at the end, what ringtap claims with a verdict. --quick takes a minute, all of it
# about three. Leave the machine alone meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cargo build --release --locked --manifest-path compare/Cargo.toml -p skeletons >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/skeletons" "$@"
