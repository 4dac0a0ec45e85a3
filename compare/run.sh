#!/usr/bin/env bash
# Compares ringtap with other probes and with the yardstick (a minimal meter), on the same files,
# interleaved.
#
# Usage: compare/run.sh [--rounds N] [--only NAME,…] [--csv FILE] [FILE.pcap…]
#
# Without files it generates the traces w1, w2 and w3 (seed 1) under target/compare. Needs python3.
# The rivals are in the Debian packages softflowd, nfdump (nfpcapd), argus-server and argus-client;
# one that is not installed or fails is left out with a message. compare/measure.py describes the
# method; compare/curve.sh measures speed by active flows.
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
