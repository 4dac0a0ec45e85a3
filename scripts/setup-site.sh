#!/usr/bin/env bash
# Installs the generator of the documentation site from PyPI to target/test-tools/site, once. Builds of the site need no
# network afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

need python3 python3
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
install_needed

generator=mkdocs-material==9.8.2
tools=target/test-tools/site
mkdir -p target/test-tools
# A second run waits until the first has fetched it.
exec 9<target/test-tools
flock 9
if [ "$(cat "$tools/complete" 2>/dev/null)" != "$generator" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --only-binary :all: "$generator"
    echo "$generator" >"$tools/complete"
fi
