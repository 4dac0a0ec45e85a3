#!/usr/bin/env bash
# What the tests call to check ringtap from outside. Installs only what is missing; a tool that cannot be had is named
# here, and the tests that call it say that they were skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

need tshark tshark
need tcpdump tcpdump
need nmap nmap
need ip iproute2
need systemd-analyze systemd
need setpriv util-linux
need python3 python3
need spin spin
need nfcapd nfdump
need nfdump nfdump
need nfacctd pmacct
need ipfixDump libfixbuf-tools
need openssl openssl
need gcc gcc libc6-dev
need chromium chromium
need bro-cut bro-aux
need curl curl
need iperf3 iperf3
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
install_needed || echo "setup-test: going on without: ${missing[*]}" >&2

# DPDK, apart from the others: where it cannot be had, they still can.
wanted=() missing=()
pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null || need no-libdpdk libdpdk-dev pkg-config
install_needed || echo "setup-test: going on without DPDK" >&2

# What no package installs, each in target/test-tools and fetched once.
tools=target/test-tools
mkdir -p "$tools"

# Readers of Parquet, of JSON schemas, of Apache DataSketches and of metrics; another implementation of NDN.
if [ ! -e "$tools/venv/with-metrics" ]; then
    rm -rf "$tools/venv"
    if python3 -m venv "$tools/venv" && "$tools/venv/bin/pip" install --quiet duckdb jsonschema datasketches python-ndn \
        prometheus-client; then
        touch "$tools/venv/with-metrics"
    else
        rm -rf "$tools/venv"
        echo "setup-test: going on without duckdb, jsonschema, datasketches, python-ndn and prometheus-client" >&2
    fi
fi

# The schema of Suricata's events, from the source package of a Debian that has version 8.
[ -e "$tools/eve-schema.json" ] || scripts/fetch-eve-schema.sh "$tools/eve-schema.json" ||
    echo "setup-test: going on without Suricata's schema" >&2

# ndnd, an NDN forwarder in Go with programs of its own; built where a Go of 1.24 or later is installed. By a module that
# requires it, for the module proxy may not list its versions, which 'go install' wants to see.
if [ ! -x "$tools/ndnd" ]; then
    if command -v go >/dev/null; then
        mkdir -p "$tools/ndnd-module"
        printf 'module ringtap.invalid/test-tools\n\ngo 1.24.0\n\nrequire github.com/named-data/ndnd v1.5.3\n' \
            >"$tools/ndnd-module/go.mod"
        (cd "$tools/ndnd-module" && CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -mod=mod" \
            go build -o ../ndnd github.com/named-data/ndnd/cmd/ndnd) ||
            echo "setup-test: going on without ndnd" >&2
    else
        echo "setup-test: going on without ndnd, for there is no Go 1.24 here" >&2
    fi
fi
