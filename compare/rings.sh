#!/usr/bin/env bash
# The rings of ringtap-ring beside their rivals, on two CPUs of this machine.
#
# Usage: compare/rings.sh [--rounds N] [--quick] [--csv FILE] [--cpus A,B] [--seed N]
#
# Prints tables in Markdown and, at the end, what ringtap claims of its rings with a verdict each. --quick takes less
# than two minutes, all of it about ten. Leave the machine alone meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --release --locked --manifest-path compare/Cargo.toml -p rings >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/rings" "$@"
