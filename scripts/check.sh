#!/usr/bin/env bash
# The quick tests: those within the crates, and the equality matrix over the captures there are. Built as `make run` builds, so
# that what it built serves here, too; no tool is installed.
set -euo pipefail
cd "$(dirname "$0")/.."

log=$(mktemp)
trap 'rm -f "$log"' EXIT
cargo test --profile quick --workspace --exclude ringtap-lab --no-default-features --locked --lib --bins 2>&1 | tee "$log"
cargo test --profile quick --workspace --exclude ringtap-lab --no-default-features --locked \
    --test product -- equality 2>&1 | tee -a "$log"
awk '/^test result:/ { passed += $4; failed += $6; skipped += $8 }
    END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$log"
