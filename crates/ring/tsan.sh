#!/usr/bin/env bash
# Runs the threaded ring tests under ThreadSanitizer, with the stable compiler.
#
# First a program with a planted data race must be caught, so that a silent run means something.
# Reports with the drop of an `Arc` in a stack are suppressed: it relies on a fence, which
# ThreadSanitizer does not understand unless the standard library is built for it. So are those of
# the test harness itself. Items dropped with the ring are covered by loom instead.
# Says SKIPPED, and succeeds, where the compiler cannot instrument.
set -euo pipefail
cd "$(dirname "$0")"

export RUSTC_BOOTSTRAP=1
flags="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
target=$(rustc -vV | sed -n 's/^host: //p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat > "$work/race.rs" <<'RUST'
use std::{cell::UnsafeCell, sync::atomic::{AtomicBool, Ordering::Relaxed}};
struct Shared { slot: UnsafeCell<u64>, full: AtomicBool }
unsafe impl Sync for Shared {}
static SHARED: Shared = Shared { slot: UnsafeCell::new(0), full: AtomicBool::new(false) };
fn main() {
    let consumer = std::thread::spawn(|| {
        while !SHARED.full.load(Relaxed) { std::thread::yield_now(); }
        unsafe { *SHARED.slot.get() }
    });
    unsafe { *SHARED.slot.get() = 1 };
    SHARED.full.store(true, Relaxed); // should be Release, and the load Acquire
    println!("{}", consumer.join().unwrap());
}
RUST

# shellcheck disable=SC2086
if ! rustc --edition 2024 -O $flags --target "$target" -o "$work/race" "$work/race.rs" 2> "$work/log"; then
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
LIST
export RUSTFLAGS="$flags" TSAN_OPTIONS="halt_on_error=1 suppressions=$work/suppressions"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/tsan"
cargo test --target "$target" --test threads
echo "tsan: no race in the rings"
