#!/usr/bin/env bash
# Runs one fuzz target: scripts/fuzz.sh TARGET [SECONDS] [libFuzzer argument…]
#
# Targets: those of FUZZ_TARGETS in the Makefile. Builds with coverage and AddressSanitizer as cargo-fuzz
# does, but needs only a stable toolchain and a C++ compiler: RUSTC_BOOTSTRAP=1 allows the sanitizer
# flag. New inputs go to fuzz/target/corpus/TARGET, inputs that fail to fuzz/artifacts/TARGET. A run
# only reads the committed fuzz/corpus/TARGET.tar.gz.
#
#   scripts/fuzz.sh ring 600          runs for ten minutes
#   scripts/fuzz.sh ring minimise     merges new inputs into fuzz/corpus/ring.tar.gz: a minimal covering set
#   scripts/fuzz.sh ring 0 FILE       runs one input, for example one that failed
set -euo pipefail
cd "$(dirname "$0")/.."

target=${1:-}
seconds=${2:-60}
[ -f "fuzz/fuzz_targets/$target.rs" ] || {
    echo "usage: scripts/fuzz.sh TARGET [SECONDS|minimise] [libFuzzer argument…]" >&2
    echo "targets: $(cd fuzz/fuzz_targets && echo *.rs | sed 's/\.rs//g')" >&2
    exit 2
}
shift $(($# < 2 ? $# : 2))
command -v c++ >/dev/null || { echo "fuzz: libFuzzer needs a C++ compiler: install g++" >&2; exit 1; }

host=$(rustc -vV | sed -n 's/^host: //p')
build=${CARGO_TARGET_DIR:-fuzz/target}
binary=$build/$host/release/$target

# Assertions are on, so that a failed one is a finding. With an explicit target triple, cargo does
# not apply the flags to build scripts and macros.
RUSTC_BOOTSTRAP=1 \
RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 -Clink-dead-code \
-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares" \
CARGO_TARGET_DIR=$build \
    cargo build --manifest-path fuzz/Cargo.toml --release --locked --target "$host" --bin "$target"

archive=fuzz/corpus/$target.tar.gz
kept=fuzz/target/kept/$target
found=fuzz/target/corpus/$target
artifacts=fuzz/artifacts/$target
rm -rf "$kept"
mkdir -p "$kept" "$found" "$artifacts"
if [ -e "$archive" ]; then tar --extract --gzip --file "$archive" --directory "$kept"; fi
limits=(-rss_limit_mb=2048 -timeout=10 -max_len=4096 -artifact_prefix="$artifacts/")

case $seconds in
    minimise)
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        mkdir "$scratch/merged"
        "$binary" "${limits[@]}" -set_cover_merge=1 -merge_control_file="$scratch/features" \
            "$scratch/merged" "$kept" "$found"
        fuzz/pick.py "$scratch/features" "$kept"
        fuzz/pack.sh "$kept" "$archive"
        echo "fuzz: $archive: $(find "$kept" -type f | wc -l) inputs, $(du -cb "$kept"/* | tail -1 | cut -f1) bytes"
        ;;
    0) "$binary" "${limits[@]}" "$@" ;;
    *) "$binary" "${limits[@]}" -max_total_time="$seconds" -print_final_stats=1 "$@" "$found" "$kept" ;;
esac
