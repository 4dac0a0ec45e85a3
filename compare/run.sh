#!/usr/bin/env bash
# ringtap beside other probes and beside the yardstick, on the same files, interleaved.
#
# Usage: compare/run.sh [--rounds N] [--only NAME,…] [--csv FILE] [FILE.pcap…]
#
# Without files it generates the traces w1, w2 and w3 (seed 1) under target/compare. Needs python3; softflowd, nfdump
# (for nfpcapd), argus-server and argus-client are Debian packages, and a rival that is not installed or fails is left
# out by name. compare/measure.py says what is measured and how; compare/curve.sh has the speed by active flows.
set -euo pipefail
cd "$(dirname "$0")/.."

ringtap=${CARGO_TARGET_DIR:-target}/release/ringtap
meter=${CARGO_TARGET_DIR:-compare/target}/release/meter

cargo build --release --locked >&2
cargo build --release --locked --manifest-path compare/Cargo.toml -p meter >&2

files=0
skip=0
for argument in "$@"; do
    if [ "$skip" = 1 ]; then skip=0; continue; fi
    case $argument in
        --rounds | --only | --csv) skip=1 ;;
        -*) ;;
        *) files=$((files + 1)) ;;
    esac
done
if [ "$files" = 0 ]; then
    mkdir -p target/compare
    for profile in w1 w2 w3; do
        file=target/compare/$profile.pcap
        if [ ! -s "$file" ]; then
            "$ringtap" generate --profile "$profile" --packets 5M -w "$file.part" >&2
            mv "$file.part" "$file"
        fi
        set -- "$@" "$file"
    done
fi
exec python3 compare/measure.py --ringtap "$ringtap" --meter "$meter" "$@"
