#!/usr/bin/env bash
# Installs what a build needs in addition to Rust: a C compiler, for the compression library. Does
# nothing if it is installed.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

command -v cargo >/dev/null || {
    echo "setup: cargo is missing: install Rust (version: see rust-version in Cargo.toml) and add it to PATH" >&2
    exit 1
}
need cc gcc libc6-dev
install_needed || {
    echo "setup: no C compiler, and its installation failed: install gcc and the headers of the C library" >&2
    exit 1
}
