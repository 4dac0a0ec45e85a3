#!/usr/bin/env bash
# Formatting, clippy and documentation of all workspaces; a warning is an error. All steps run, so
# that one call shows all errors.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/features.sh

for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    command -v rustup >/dev/null || { echo "lint: cargo $component is missing" >&2; exit 1; }
    rustup component add "${component/fmt/rustfmt}"
done

failed=()
step() {
    printf '\n== lint, %d:%02d: %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"
    "$@" || failed+=("$*")
}

step cargo fmt --all --check
step cargo fmt --all --check --manifest-path compare/Cargo.toml
step cargo fmt --check --manifest-path fuzz/Cargo.toml
step cargo fmt --all --check --manifest-path examples/analyses/Cargo.toml
# Without DPDK its stub is checked in a later step.
step cargo clippy --workspace --all-targets "${all_features[@]}" --locked -- -D warnings
if ! have_dpdk; then
    echo "lint: libdpdk is missing (Debian package libdpdk-dev): code for DPDK is not checked" >&2
fi
# The ring crate without the standard library.
step cargo clippy -p ringtap-ring --lib --no-default-features --locked -- -D warnings
# The same folder, so that libraries of the same version are not checked again.
step cargo clippy --all-targets --locked --manifest-path compare/Cargo.toml --target-dir target -- -D warnings
# Most of their code is checked as tests of the command, the rest by test-all; here, their manifests and locked versions.
step cargo tree --quiet --locked --depth 0 --workspace --manifest-path examples/analyses/Cargo.toml
step cargo tree --quiet --locked --depth 0 --manifest-path fuzz/Cargo.toml
# The features of `make run`.
step cargo clippy -p ringtap -p ringtap-ndn-program --no-default-features --locked -- -D warnings
if command -v python3 >/dev/null; then
    step scripts/graph.py
    step scripts/dependencies.py
    step scripts/words.py
    step scripts/links.py
    step scripts/figures.py --check
else
    echo "lint: python3 is missing: the graph of packages, the number of dependencies, the word list and links are not checked" >&2
fi
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace "${all_features[@]}" --no-deps --locked
# Reads the pages of the step above.
! command -v python3 >/dev/null || step scripts/public-api.py

if [ ${#failed[@]} -gt 0 ]; then
    printf '\nlint: failed: %s\n' "${failed[@]}" >&2
    exit 1
fi
