#!/usr/bin/env bash
# scripts/package-crates.sh [OPTION…]: packs the crates that are published, together, and builds each from its package. Options
# are those of cargo package: --no-verify does not build, --allow-dirty packs what is not committed, --offline uses no network.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t packages < <(cargo metadata --no-deps --locked --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None:
        print(package["name"] + "@" + package["version"])')
[ ${#packages[@]} -gt 0 ] || { echo "package-crates: no crate is published" >&2; exit 1; }
cargo package --locked "${packages[@]/#/--package=}" "$@"

for package in "${packages[@]/@/-}"; do
    file=${CARGO_TARGET_DIR:-target}/package/$package.crate
    size=$(stat -c %s "$file")
    # Test data are not packed.
    [ "$size" -le 300000 ] || { echo "package-crates: $file has $size bytes, 300000 at most" >&2; exit 1; }
    for needed in Cargo.toml LICENSE-APACHE LICENSE-MIT README.md src/lib.rs; do
        tar -tf "$file" "$package/$needed" >/dev/null || { echo "package-crates: $file has no $needed" >&2; exit 1; }
    done
    echo "$size bytes: $(basename "$file")"
done
