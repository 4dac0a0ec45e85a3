#!/usr/bin/env bash
# What the tests call to check ringtap from outside. Installs only what is missing; a tool that cannot be had is named
# here, and the tests that call it say that they were skipped.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

need tshark tshark
need tcpdump tcpdump
need nmap nmap
need ip iproute2
need python3 python3
need spin spin
need nfcapd nfdump
need nfdump nfdump
need nfacctd pmacct
need ipfixDump libfixbuf-tools
need openssl openssl
need gcc gcc libc6-dev
install_needed || echo "setup-test: going on without: ${missing[*]}" >&2
