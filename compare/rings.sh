#!/usr/bin/env bash
# The rings of ringtap-ring beside their rivals, on two CPUs of this machine.
#
# Usage: compare/rings.sh [--rounds N] [--quick] [--csv FILE] [--cpus A,B] [--seed N]
#
# Prints tables in Markdown and, at the end, what ringtap claims of its rings with a verdict each. --quick takes less
# than two minutes, all of it about ten. Leave the machine alone meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/packages.sh
scripts/setup.sh

# The rivals in C and C++. Installs only what is missing; one that cannot be had is left out, by name.
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
        install_needed || echo "rings: going on WITHOUT $package" >&2
    done
fi

cargo build --release --locked --manifest-path compare/Cargo.toml -p rings >&2
exec "${CARGO_TARGET_DIR:-compare/target}/release/rings" "$@"
