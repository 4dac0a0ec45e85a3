#!/usr/bin/env bash
# Runs the threaded tests of the rings and of the skeletons under ThreadSanitizer, with the stable compiler.
#
# First a program with a planted data race must be caught, so that a run without a report is a result.
# Reports with the drop of an `Arc` in a stack are suppressed: it relies on a fence, which
# ThreadSanitizer does not understand unless the standard library is built for it. So are those of
# the test harness itself, and of a seat's thread handle, which is handed over by a `OnceLock` of
# that library. Items dropped with the ring are covered by loom instead.
# Prints SKIPPED and succeeds if the compiler cannot instrument.
set -euo pipefail
cd "$(dirname "$0")"

export RUSTC_BOOTSTRAP=1
flags="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# shellcheck disable=SC2086
if ! rustc --edition 2024 -O $flags --target "$target" -o "$work/race" tests/planted/race.rs 2> "$work/log"; then
    cat "$work/log" >&2
    echo "tsan: SKIPPED, this compiler cannot instrument: NOTHING WAS CHECKED" >&2
    exit 0
fi
if "$work/race" > "$work/log" 2>&1 || ! grep -q "ThreadSanitizer: data race" "$work/log"; then
    cat "$work/log" >&2
    echo "tsan: FAILED, the planted race was not seen" >&2
    exit 1
fi
echo "tsan: the planted race was seen"

cat > "$work/suppressions" <<'LIST'
race:alloc::sync::Arc<*as core::ops::drop::Drop>::drop
race:test::event::CompletedTest
race:ringtap_skeleton::idle::Parker>::wake
LIST
export RUSTFLAGS="$flags" TSAN_OPTIONS="halt_on_error=1 suppressions=$work/suppressions"
# The suppressions are names of functions, as all debug information gives them; line tables shorten those that were inlined.
export CARGO_PROFILE_DEV_DEBUG=full
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/tsan"
cargo test --locked --target "$target" --test ring -- threads::
cargo test --locked --target "$target" -p ringtap-skeleton --test skeleton -- sharing_seats a_panic
cargo test --locked --target "$target" -p ringtap-skeleton --test skeleton -- stream_ends::
echo "tsan: no race in the rings and skeletons"
