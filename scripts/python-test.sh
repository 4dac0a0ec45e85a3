#!/usr/bin/env bash
# Tests the Python package, from the build of the other tests, or with RINGTAP_FULL as pip builds it. Its tools are
# installed by scripts/setup-test.sh. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

tools=$PWD/target/test-tools/python
if [ ! -e "$tools/complete" ]; then
    echo "python: SKIPPED: pytest and its libraries are missing (scripts/setup-test.sh installs them)"
    exit 0
fi
export PATH=$tools/bin:$PATH

# With the features of all tests: alone, the package and the program would have other features of their libraries, and
# all of them would be built again.
cargo build --workspace "${all_features[@]}" --lib --bins --tests --locked --quiet
built=${CARGO_TARGET_DIR:-$PWD/target}
if [ -n "${RINGTAP_FULL:-}" ]; then
    CARGO_TARGET_DIR=$built pip install --quiet --no-build-isolation --no-deps --force-reinstall ./python
else
    packages=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    rm -rf "$packages/ringtap"
    cp -r python/ringtap "$packages/"
    cp "$built/debug/libringtap_python.so" "$packages/ringtap/_ringtap.abi3.so"
fi
RINGTAP=$built/debug/ringtap python -m pytest -q -p no:cacheprovider python "$@"
