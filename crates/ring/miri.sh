#!/usr/bin/env bash
# Runs the ring's tests under Miri, which sees undefined behaviour of any kind in what they do: the oracle with a few
# scripts, drops and panics, and items that own memory between two threads. About a minute.
#
# First a program with a planted data race must be caught, so that a silent run means something.
# Says SKIPPED, and succeeds, where no nightly with Miri is installed; it installs nothing.
set -euo pipefail
cd "$(dirname "$0")"

if ! cargo +nightly miri --version >/dev/null 2>&1; then
    echo "miri: SKIPPED, no nightly with Miri here (rustup component add miri rust-src --toolchain nightly)" >&2
    exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/miri"

mkdir "$work/src"
cp tests/planted/race.rs "$work/src/main.rs"
printf '[package]\nname = "race"\nedition = "2024"\n[workspace]\n' >"$work/Cargo.toml"
if ! cargo +nightly miri setup >"$work/log" 2>&1; then
    cat "$work/log" >&2
    echo "miri: SKIPPED, its standard library cannot be built: NOTHING WAS CHECKED" >&2
    exit 0
fi
if (cd "$work" && CARGO_TARGET_DIR=$work/target cargo +nightly miri run) >"$work/log" 2>&1 ||
    ! grep -q "Data race detected" "$work/log"; then
    cat "$work/log" >&2
    echo "miri: FAILED, the planted race was not seen" >&2
    exit 1
fi
echo "miri: the planted race was seen"

cargo +nightly miri test --locked --lib -- every_kind
# The lone item is polled for half a million times: no question of memory.
cargo +nightly miri test --locked --test ring -- face:: --skip a_lone_item
cargo +nightly miri test --locked --test ring -- owned abandoned
echo "miri: no undefined behaviour in the rings"
