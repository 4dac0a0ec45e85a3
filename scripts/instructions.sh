#!/usr/bin/env bash
# Counts the instructions of hot paths, per packet or other item, with callgrind (Debian package valgrind), and compares
# them with the kept counts. Unlike times they do not depend on the machine's load. The last line is a test result: a
# row fails if it is above its kept count by more than the tolerance.
#
# The kept counts hold for the compiler in the file's first line. Code for AVX-512 is not counted: valgrind does not have
# it.
#
# Usage: scripts/instructions.sh [--tests] [--keep]
#
# --tests counts in the build of the tests, as `make test` does, so that nothing is built for it alone. Its tolerance is
# 15 %, as an incremental build differs by up to 10 %, and the C library's code depends on the processor. That of a
# release build is 5 %. --keep replaces the kept counts.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh
command -v valgrind >/dev/null || { echo "instructions: SKIPPED: valgrind is missing (Debian package valgrind)"; exit 0; }
kept=testkit/benches/instructions.tsv build=(bench -p ringtap-testkit) tolerance=1.05 keep=
for argument in "$@"; do
    case $argument in
        --tests) kept=testkit/benches/instructions-tests.tsv build=(test --workspace "${all_features[@]}") tolerance=1.15 ;;
        --keep) keep=1 ;;
        *) echo "instructions: unknown argument $argument" >&2; exit 2 ;;
    esac
done
compiler="$(rustc --version | cut -d' ' -f1-2) $(uname -m)"
if [ -z "$keep" ] && ! head -1 "$kept" | grep -q ", $compiler\$"; then
    echo "instructions: SKIPPED: the kept counts are of another compiler than $compiler"
    exit 0
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
counted=instructions::counted
runner="'valgrind', '--tool=callgrind', '--quiet', '--callgrind-out-file=$out/counts',
    '--toggle-collect=$counted', '--dump-after=$counted'"
cargo "${build[@]}" --quiet --locked --bench instructions --config "target.'cfg(all())'.runner=[$runner]" >"$out/items"

# The n-th dump belongs to the n-th line.
number=0
while IFS=$'\t' read -r name items; do
    number=$((number + 1))
    count=$(awk '/^(summary|totals):/ { print $2; exit }' "$out/counts.$number")
    awk -v name="$name" -v count="$count" -v items="$items" 'BEGIN { printf "%s\t%.1f\n", name, count / items }'
done <"$out/items" >"$out/now"

if [ -n "$keep" ]; then
    { printf '# instructions an item, %s\n' "$compiler"; cat "$out/now"; } >"$kept"
fi
head -1 "$kept"
awk -F'\t' -v tolerance="$tolerance" '
    /^#/ { next }
    FNR == NR { kept[$1] = $2; next }
    {
        ratio = $1 in kept ? $2 / kept[$1] : 1
        verdict = !($1 in kept) ? "NEW" : ratio > tolerance ? "WORSE" : ratio < 2 - tolerance ? "better" : ""
        failed += verdict ~ /NEW|WORSE/
        printf "%-28s %9.1f %9.1f %6.3f  %s\n", $1, kept[$1], $2, ratio, verdict
        delete kept[$1]
    }
    END {
        for (name in kept) { print name ": not counted"; failed++ }
        printf "test result: %s. %d passed; %d failed; 0 ignored\n", failed ? "FAILED" : "ok", FNR - failed, failed
        exit failed > 0
    }' "$kept" "$out/now"
