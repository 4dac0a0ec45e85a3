#!/usr/bin/env bash
# What a build needs beside Rust: a C compiler, for the compression library. Installs only what is missing.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

command -v cargo >/dev/null || {
    echo "setup: cargo is missing; install Rust (rust-version in Cargo.toml says which) and put it on PATH" >&2
    exit 1
}
need cc gcc libc6-dev
install_needed || {
    echo "setup: a C compiler is missing and could not be installed; install gcc and the C library's headers" >&2
    exit 1
}
