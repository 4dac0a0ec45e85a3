#!/usr/bin/env bash
# Builds the Python package as pip does, but without optimisation, and runs its tests with the tools
# that scripts/setup-test.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

tools=$PWD/target/test-tools/python
if [ ! -e "$tools/complete" ]; then
    echo "python: SKIPPED: pytest and its libraries are missing (scripts/setup-test.sh installs them)"
    exit 0
fi
export PATH=$tools/bin:$PATH

# The same features as in the test of the workspace, so that the program is not built again.
cargo build --workspace "${all_features[@]}" --locked --bin ringtap
target=${CARGO_TARGET_DIR:-$PWD/target}
MATURIN_PEP517_ARGS="--profile dev" pip install --quiet --no-build-isolation --no-deps --force-reinstall ./python
RINGTAP=$target/debug/ringtap python -m pytest -q -p no:cacheprovider python "$@"
