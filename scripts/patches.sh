#!/usr/bin/env bash
# Tests that a new analysis, record format, extractor or transport needs one new file and one line in a list, and a new
# field of flow records its origin and one row. Each patch in testkit/patches adds a file and changes a list and a page of
# docs; field.patch changes the files in `field`. With all patches applied, the tree must compile, and with RINGTAP_FULL pass the
# equality matrix. The tree is copied to target/patched and shares the build cache of this one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

copy=target/patched
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
git -C "$copy" init -q
# The record where it is made, the table of fields, the page that a test writes from it, the oracle.
field="crates/export/src/fields/mod.rs crates/flow/src docs/OUTPUTS.md testkit/tests/product/oracle/naive.rs"
for patch in testkit/patches/*.patch; do
    if [ "${patch##*/}" = field.patch ]; then
        files=$(sed -n 's|^+++ b/||p' "$patch" | sed 's|^\(crates/flow/src\)/.*|\1|' | sort -u | paste -sd ' ')
        rows=$(grep -cE '^\+    [0-9]+ \w+ \[' "$patch")
        echo "$patch: $files, rows: $rows"
        [ "$files $rows" = "$field 1" ] || { echo "$patch: must change $field, and add one row"; exit 1; }
        git -C "$copy" apply "$PWD/$patch"
        continue
    fi
    new=$(grep -c '^--- /dev/null' "$patch")
    touched=$(grep -c '^+++ ' "$patch")
    docs=$(grep -c '^+++ b/docs/' "$patch")
    echo "$patch: $touched files, new: $new, docs: $docs"
    [ "$new $touched $docs" = "1 3 1" ] || { echo "$patch: must be a new file, a list and a page of docs"; exit 1; }
    git -C "$copy" apply "$PWD/$patch"
done
export CARGO_TARGET_DIR=$PWD/target
cd "$copy"
packages=(-p ringtap-testkit -p ringtap-export -p ringtap-extract -p ringtap-flow -p ringtap-monitor)
targets=("${packages[@]}" "${features[@]}" --locked --lib --test product)
if [ -z "${RINGTAP_FULL:-}" ]; then
    cargo check "${targets[@]}"
    echo "SKIPPED: the tests with all patches run with RINGTAP_FULL=1 (make test-all)"
    exit 0
fi
cargo test "${targets[@]}" -- equality::real equality::the_bundled equality::generated_traffic_with_scans oracle fields sizes \
    tsv mqtt unix
