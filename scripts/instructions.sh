#!/usr/bin/env bash
# Counts the instructions of hot paths, per packet or other item, with callgrind (Debian package valgrind), and compares
# them with the kept counts. Unlike times they do not depend on the machine's load. Exits with 1 if one is more than 5 %
# above its kept count.
#
# The kept counts hold for the compiler in the file's first line. Code for AVX-512 is not counted: valgrind does not have
# it.
#
# Usage: scripts/instructions.sh [--keep]      --keep replaces the kept counts
set -euo pipefail
cd "$(dirname "$0")/.."
kept=testkit/benches/instructions.tsv
command -v valgrind >/dev/null || { echo "instructions: SKIPPED: valgrind is missing (Debian package valgrind)"; exit 0; }

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
counted=instructions::counted
runner="'valgrind', '--tool=callgrind', '--quiet', '--callgrind-out-file=$out/counts',
    '--toggle-collect=$counted', '--dump-after=$counted'"
cargo bench --quiet --locked -p ringtap-testkit --bench instructions \
    --config "target.'cfg(all())'.runner=[$runner]" >"$out/items"

# The n-th dump belongs to the n-th line.
number=0
while IFS=$'\t' read -r name items; do
    number=$((number + 1))
    count=$(awk '/^(summary|totals):/ { print $2; exit }' "$out/counts.$number")
    awk -v name="$name" -v count="$count" -v items="$items" 'BEGIN { printf "%s\t%.1f\n", name, count / items }'
done <"$out/items" >"$out/now"

compiler=$(rustc --version | cut -d' ' -f1-2)
if [ "${1-}" = --keep ]; then
    { printf '# instructions an item, %s %s\n' "$compiler" "$(uname -m)"; cat "$out/now"; } >"$kept"
fi
head -1 "$kept"
printf '# now %s\n' "$compiler"
awk -F'\t' '
    /^#/ { next }
    FNR == NR { kept[$1] = $2; next }
    {
        ratio = $1 in kept ? $2 / kept[$1] : 1
        verdict = !($1 in kept) ? "new" : ratio > 1.05 ? "WORSE" : ratio < 0.95 ? "better" : ""
        worse += verdict == "WORSE"
        printf "%-28s %9.1f %9.1f %6.3f  %s\n", $1, kept[$1], $2, ratio, verdict
    }
    END { exit worse > 0 }' "$kept" "$out/now"
