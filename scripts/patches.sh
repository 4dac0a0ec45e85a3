#!/usr/bin/env bash
# Tries the promise that an analysis, a record format and an extractor are a file and a line each: the patches in
# testkit/patches touch their file, its list and its docs, and with all of them the tree builds and passes the equality
# matrix. The tree is copied to target/patched; what it builds is shared with this one as far as it is the same.
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
    echo "$patch: $touched files, $new of them new, $docs of docs"
    [ "$new $touched $docs" = "1 3 1" ] || { echo "$patch: not a file, a list and its docs"; exit 1; }
    git -C "$copy" apply "$PWD/$patch"
done
export CARGO_TARGET_DIR=$PWD/target
cd "$copy"
cargo test -p ringtap-testkit -p ringtap-export -p ringtap-extract -p ringtap-monitor "${features[@]}" --locked \
    --lib --test product -- equality sizes tsv ssh
