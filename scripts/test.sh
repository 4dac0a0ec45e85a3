#!/usr/bin/env bash
# All tests, in steps, each with a log in target/test-logs. All steps run, even if one fails.
#
# The last line is `N passed, N failed, N skipped`: scripts/summarise.sh adds up the "test result:"
# lines of all steps. A test that cannot run on this machine prints a line `SKIPPED: reason` and
# counts as skipped.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

# Some tests panic on purpose, and their output is shown: no backtraces.
export RUST_BACKTRACE=0

logs=target/test-logs
rm -rf "$logs"
mkdir -p "$logs"
failed=0

# step NAME COMMAND…: runs the command, shows and records its output and status.
step() {
    local name=$1
    shift
    printf '\n== test, %d:%02d: %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$name"
    "$@" 2>&1 | tee "$logs/$name.log"
    local status=${PIPESTATUS[0]}
    echo "$status" >"$logs/$name.status"
    [ "$status" = 0 ] || failed=1
}

loom() {
    RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom CARGO_PROFILE_RELEASE_LTO=off \
        cargo test -p ringtap-ring -p ringtap-filter --release --test loom --locked
}

# --show-output: shows the output of passing tests, for the SKIPPED lines. The tests of DPDK use
# virtual devices: they need no network card and no huge pages. Many tests wait for timeouts, so
# there are twice as many threads as cores.
workspace() {
    have_dpdk || echo "dpdk: SKIPPED: libdpdk is missing (Debian package libdpdk-dev)"
    RUST_TEST_THREADS=$((2 * $(nproc))) \
        cargo test --workspace "${all_features[@]}" --locked --no-fail-fast -- --show-output
}

step workspace workspace
# The same features as above, so that the crates are not rebuilt.
step benches-run-once cargo test --workspace "${all_features[@]}" --locked --bench '*'
step instructions scripts/instructions.sh --tests
# As a user's crates are built; their tests alone are in the first step.
[ -z "${RINGTAP_FULL:-}" ] || step examples cargo test --manifest-path examples/analyses/Cargo.toml --target-dir target --locked
step python scripts/python-test.sh
step patches scripts/patches.sh
step loom loom
step tsan crates/ring/tsan.sh
step miri crates/ring/miri.sh
step model crates/ring/models/check.sh

scripts/summarise.sh "$logs" || failed=1
exit "$failed"
