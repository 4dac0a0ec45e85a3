#!/usr/bin/env bash
# Compares the rings of ringtap-ring with other rings and queues, on two CPUs of this machine.
#
# Usage: compare/rings.sh [--rounds N] [--quick] [--sizes N,N…] [--csv FILE] [--cpus A,B] [--seed N]
#
# Prints Markdown tables and, at the end, ringtap's claims about its rings with a verdict each. A
# run takes about ten minutes, with --quick less than two. Do not use the machine for anything else.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
scripts/setup.sh

# The rivals in C and C++. Missing packages are installed; a rival that cannot be installed is left
# out with a message.
rivals=(libboost-dev libreaderwriterqueue-dev libdpdk-dev)
need c++ g++
need pkg-config pkg-config
for package in "${rivals[@]}"; do
    dpkg -s "$package" >/dev/null 2>&1 && continue
    missing+=("$package")
    wanted+=("$package")
done
if ! install_needed; then
    for package in "${wanted[@]}"; do
        wanted=("$package") missing=("$package")
        install_needed || echo "rings: continuing WITHOUT $package" >&2
    done
fi

cargo build --release --locked --manifest-path compare/Cargo.toml -p rings >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/rings" "$@"
