#!/usr/bin/env bash
# Every test, in steps, each with its log under target/test-logs; all steps run even if one fails.
#
# The last line is `N passed, N failed, N skipped`, added up by scripts/summarise.sh over the "test result:" lines of
# all steps. A test that cannot run here prints a line `SKIPPED: why` on stderr and is counted as skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

# Some tests panic on purpose, and what they print is shown: no backtraces unless asked for at one test.
export RUST_BACKTRACE=0

logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
failed=0

# step NAME COMMAND…: runs, shows and records; a step that fails without a failed test still counts as a failure.
step() {
    local name=$1
    shift
    printf '\n== test: %s\n' "$name"
    "$@" 2>&1 | tee "$logs/$name.log"
    local status=${PIPESTATUS[0]}
    echo "$status" >"$logs/$name.status"
    [ "$status" = 0 ] || failed=1
}

loom() {
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom CARGO_PROFILE_RELEASE_LTO=off \
        cargo test -p ringtap-ring -p ringtap-filter --release --test loom --locked
}

# --show-output: what a passing test prints, a skip above all, is not swallowed. With DPDK its virtual devices are tested:
# no network card, no huge pages.
workspace() {
    have_dpdk || echo "dpdk: SKIPPED: no libdpdk here (Debian package libdpdk-dev)"
    cargo test --workspace "${all_features[@]}" --locked --no-fail-fast -- --show-output
}

step workspace workspace
# The same features, or all crates would be built again.
step benches-run-once cargo test --workspace "${all_features[@]}" --locked --bench '*'
step patches scripts/patches.sh
step loom loom
step tsan crates/ring/tsan.sh
step miri crates/ring/miri.sh
step model crates/ring/models/check.sh

scripts/summarise.sh "$logs" || failed=1
exit "$failed"
