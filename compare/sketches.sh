#!/usr/bin/env bash
# The sketches of ringtap-sketch beside their rivals, on one CPU of this machine, and on two for the shared forms.
#
# Usage: compare/sketches.sh [--rounds N] [--quick] [--csv FILE] [--seed N]
#
# Prints tables in Markdown and, at the end, what ringtap claims of its sketches with a verdict each. --quick takes about
# half a minute, all of it about three minutes. Rates are by CPU time of the counting thread.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cargo build --release --locked --manifest-path compare/Cargo.toml -p sketches >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/sketches" "$@"
