#!/usr/bin/env bash
# Makes docs/report.png, the picture of the report page in README.md, with a browser.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

need chromium chromium
install_needed
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo run --quiet -p ringtap --profile quick --no-default-features --locked -- monitor -r examples/office.pcap --quiet --seed 1 \
    --report html >"$folder/report.html"
chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars \
    --user-data-dir="$folder/browser" --window-size=1280,1000 --screenshot="$folder/report.png" \
    "file://$folder/report.html"
mv "$folder/report.png" docs/report.png
