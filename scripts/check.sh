#!/usr/bin/env bash
# The quick tests: the unit tests of the crates, and the equality matrix over the available
# captures. Uses the profile of `make run`, so that its build is reused. Installs no tools.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --profile quick --workspace --exclude ringtap-lab --no-default-features --locked --lib --bins 2>&1 | tee "$log"
cargo test --profile quick --workspace --exclude ringtap-lab --no-default-features --locked \
    --test product -- equality 2>&1 | tee -a "$log"
awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
