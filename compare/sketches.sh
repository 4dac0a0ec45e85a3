#!/usr/bin/env bash
# The sketches of ringtap-sketch beside their rivals, on one CPU of this machine, and on two for the shared forms.
#
# Usage: compare/sketches.sh [--rounds N] [--quick] [--csv FILE] [--seed N]
#
# Prints tables in Markdown and, at the end, what ringtap claims of its sketches with a verdict each. --quick takes about
# half a minute, all of it about three minutes. Rates are by CPU time of the counting thread.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
scripts/setup.sh

# The library in C++, whose sources are in the Python package of a version before the two went apart.
rival=datasketches-4.1.0
rivals=${CARGO_TARGET_DIR:-compare/target}/rivals
need c++ g++
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
if [ ! -d "$rivals/$rival" ]; then
    mkdir -p "$rivals"
    install_needed && python3 -m venv "$rivals/venv" &&
        "$rivals/venv/bin/pip" download --quiet --no-binary datasketches --no-deps --dest "$rivals" "${rival/-/==}" >&2 &&
        tar -xzf "$rivals/$rival.tar.gz" -C "$rivals" ||
        echo "sketches: going on WITHOUT datasketches-cpp" >&2
fi
[ ! -d "$rivals/$rival" ] || export DATASKETCHES_CPP=$(realpath "$rivals/$rival")

cargo build --release --locked --manifest-path compare/Cargo.toml -p sketches >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/sketches" "$@"
