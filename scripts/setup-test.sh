#!/usr/bin/env bash
# Installs the external tools of the tests, as far as they are missing. If a tool cannot be
# installed, the script prints its name, and tests that need it are skipped.
#
# With RINGTAP_FULL=1, as in `make test-all`, the script also fetches a broker of Kafka, Spark with its
# connector to Kafka, and chdb, and fails if it cannot.
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
need valgrind valgrind
need strace strace
need nfcapd nfdump
need nfdump nfdump
need nfacctd pmacct
need softflowd softflowd
need ipfixDump libfixbuf-tools
need openssl openssl
need gcc gcc libc6-dev
need c++ g++
need chromium chromium
need chromedriver chromium-driver
need bro-cut bro-aux
need curl curl
need iperf3 iperf3
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
install_needed || echo "setup-test: continuing without: ${missing[*]}" >&2

# DPDK separately, so that a failure does not affect the other packages.
wanted=() missing=()
pkg-config --exists 'libdpdk >= 22.11' 2>/dev/null || need no-libdpdk libdpdk-dev pkg-config
install_needed || echo "setup-test: continuing without DPDK" >&2

# Tools without a Debian package, fetched once to target/test-tools.
tools=target/test-tools
mkdir -p "$tools"
# A second run waits until the first has fetched them.
exec 9<"$tools"
flock 9

# Python modules: readers of Parquet, JSON schemas, Apache DataSketches and metrics, another NDN
# implementation, and a checker of accessibility, which is JavaScript.
if [ ! -e "$tools/venv/with-duckdb-cli" ]; then
    rm -rf "$tools/venv"
    if python3 -m venv "$tools/venv" && "$tools/venv/bin/pip" install --quiet duckdb duckdb-cli jsonschema datasketches python-ndn \
        prometheus-client && "$tools/venv/bin/pip" install --quiet --no-deps axe-playwright-python; then
        touch "$tools/venv/with-duckdb-cli"
    else
        rm -rf "$tools/venv"
        echo "setup-test: continuing without duckdb, duckdb-cli, jsonschema, datasketches, python-ndn, prometheus-client and axe" >&2
    fi
fi

# Modules for the tests of the Python package: its build tool, readers of Arrow streams, notebooks and
# stubs.
if [ ! -e "$tools/python/complete" ]; then
    rm -rf "$tools/python"
    if python3 -m venv "$tools/python" && "$tools/python/bin/pip" install --quiet maturin pytest pyarrow polars duckdb \
        nbclient ipykernel mypy; then
        touch "$tools/python/complete"
    else
        rm -rf "$tools/python"
        echo "setup-test: continuing without maturin, pytest, pyarrow, polars, duckdb, nbclient, ipykernel and mypy" >&2
    fi
fi

# The schema of Suricata's events, from the Debian source package of version 8.
[ -e "$tools/eve-schema.json" ] || scripts/fetch-eve-schema.sh "$tools/eve-schema.json" ||
    echo "setup-test: continuing without Suricata's schema" >&2

# ndnd, an NDN forwarder in Go with its tools; built if Go 1.24 or later is installed. A module
# requires it, because 'go install' needs a list of its versions, which the module proxy may not
# have.
if [ ! -x "$tools/ndnd" ]; then
    if command -v go >/dev/null; then
        mkdir -p "$tools/ndnd-module"
        printf 'module ringtap.invalid/test-tools\n\ngo 1.24.0\n\nrequire github.com/named-data/ndnd v1.5.3\n' \
            >"$tools/ndnd-module/go.mod"
        (cd "$tools/ndnd-module" && CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -mod=mod" \
            go build -o ../ndnd github.com/named-data/ndnd/cmd/ndnd) ||
            echo "setup-test: continuing without ndnd" >&2
    else
        echo "setup-test: continuing without ndnd: Go 1.24 is missing" >&2
    fi
fi

# NDNts, an NDN implementation in JavaScript, with its WebSocket transport; needs Node.js with npm.
if [ ! -e "$tools/ndnts/complete" ]; then
    rm -rf "$tools/ndnts"
    mkdir -p "$tools/ndnts"
    release=0.0.20250307 # all packages of one release
    if command -v npm >/dev/null && npm install --prefix "$tools/ndnts" --no-audit --no-fund --ignore-scripts --silent \
        "@ndn/endpoint@$release" "@ndn/fw@$release" "@ndn/l3face@$release" "@ndn/packet@$release" \
        "@ndn/ws-transport@$release"; then
        touch "$tools/ndnts/complete"
    else
        rm -rf "$tools/ndnts"
        echo "setup-test: continuing without NDNts: Node.js with npm is missing, or the packages cannot be fetched" >&2
    fi
fi

# nfstream, whose statistics of packets are compared by `make test-all`.
if [ "${RINGTAP_FULL:-}" = 1 ] && [ ! -e "$tools/nfstream/complete" ]; then
    rm -rf "$tools/nfstream"
    if python3 -m venv "$tools/nfstream" && "$tools/nfstream/bin/pip" install --quiet nfstream; then
        touch "$tools/nfstream/complete"
    else
        rm -rf "$tools/nfstream"
        echo "setup-test: continuing without nfstream" >&2
    fi
fi

# scikit-learn, for a notebook.
if [ "${RINGTAP_FULL:-}" = 1 ] && [ ! -e "$tools/python/with-scikit-learn" ]; then
    "$tools/python/bin/pip" install --quiet scikit-learn
    touch "$tools/python/with-scikit-learn"
fi

# A broker of Kafka, and the connector of Spark to it, for the tests of `make test-all`.
if [ "${RINGTAP_FULL:-}" = 1 ]; then
    wanted=() missing=()
    need java default-jre-headless
    need mvn maven
    install_needed
    for name in kafka spark; do
        pom=testkit/$name/pom.xml
        cmp -s "$pom" "$tools/$name/pom.xml" && continue
        mvn --batch-mode --quiet --file "$pom" dependency:copy-dependencies "-DoutputDirectory=$PWD/$tools/$name"
        cp "$pom" "$tools/$name/pom.xml"
    done
fi

# Spark, likewise.
if [ "${RINGTAP_FULL:-}" = 1 ] && [ ! -e "$tools/python/with-spark-pandas" ]; then
    "$tools/python/bin/pip" install --quiet pyspark==4.0.0 'pandas<3'
    touch "$tools/python/with-spark-pandas"
fi

# chdb, the engine of ClickHouse, which is large.
if [ "${RINGTAP_FULL:-}" = 1 ] && [ ! -e "$tools/venv/with-chdb" ]; then
    "$tools/venv/bin/pip" install --quiet chdb
    touch "$tools/venv/with-chdb"
fi
