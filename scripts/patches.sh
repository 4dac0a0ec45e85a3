#!/usr/bin/env bash
# Tests that a new analysis, record format or extractor needs one new file and one line in a list.
# Each patch in testkit/patches adds a file and changes a list and a page of docs. With all patches
# applied, the tree must build and pass the equality matrix. The tree is copied to target/patched
# and shares the build cache of this one.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

copy=target/patched
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$copy"
git -C "$copy" init -q
for patch in testkit/patches/*.patch; do
    new=$(grep -c '^--- /dev/null' "$patch")
    touched=$(grep -c '^+++ ' "$patch")
    docs=$(grep -c '^+++ b/docs/' "$patch")
    echo "$patch: $touched files, new: $new, docs: $docs"
    [ "$new $touched $docs" = "1 3 1" ] || { echo "$patch: must be a new file, a list and a page of docs"; exit 1; }
    git -C "$copy" apply "$PWD/$patch"
done
export CARGO_TARGET_DIR=$PWD/target
cd "$copy"
cargo test -p ringtap-testkit -p ringtap-export -p ringtap-extract -p ringtap-monitor "${features[@]}" --locked \
    --lib --test product -- equality sizes tsv mqtt unix
