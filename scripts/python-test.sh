#!/usr/bin/env bash
# Builds the Python package as pip does, but with the profile of the other tests, and runs its tests
# with the tools that scripts/setup-test.sh installs. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

tools=$PWD/target/test-tools/python
if [ ! -e "$tools/complete" ]; then
    echo "python: SKIPPED: pytest and its libraries are missing (scripts/setup-test.sh installs them)"
    exit 0
fi
export PATH=$tools/bin:$PATH

# The program is built with the tests of the workspace. Built alone it would have other features of its libraries, and
# all of them would be built again.
cargo test --workspace "${all_features[@]}" --locked --no-run --quiet
# The same folder, so that most libraries are not built again.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
MATURIN_PEP517_ARGS="--profile dev --strip" \
    pip install --quiet --no-build-isolation --no-deps --force-reinstall ./python
RINGTAP=$CARGO_TARGET_DIR/debug/ringtap python -m pytest -q -p no:cacheprovider python "$@"
