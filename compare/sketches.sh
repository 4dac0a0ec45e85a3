#!/usr/bin/env bash
# Compares the sketches of ringtap-sketch with other libraries, on one CPU of this machine, and on
# two for shared sketches.
#
# Usage: compare/sketches.sh [--rounds N] [--quick] [--csv FILE] [--seed N]
#
# Prints Markdown tables and, at the end, ringtap's claims about its sketches with a verdict each. A
# run takes about three minutes, with --quick half a minute. Rates are by CPU time of the counting
# thread.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
scripts/setup.sh

# The C++ library. Its sources are in the Python package of this version, before the two were
# separated.
rival=datasketches-4.1.0
rivals=${CARGO_TARGET_DIR:-compare/target}/rivals
need c++ g++
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
if [ ! -d "$rivals/$rival" ]; then
    mkdir -p "$rivals"
    install_needed && python3 -m venv "$rivals/venv" &&
        "$rivals/venv/bin/pip" download --quiet --no-binary datasketches --no-deps --dest "$rivals" "${rival/-/==}" >&2 &&
        tar -xzf "$rivals/$rival.tar.gz" -C "$rivals" ||
        echo "sketches: continuing WITHOUT datasketches-cpp" >&2
fi
[ ! -d "$rivals/$rival" ] || export DATASKETCHES_CPP=$(realpath "$rivals/$rival")

cargo build --release --locked --manifest-path compare/Cargo.toml -p sketches >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/sketches" "$@"
