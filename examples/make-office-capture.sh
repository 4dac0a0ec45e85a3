#!/usr/bin/env bash
# Records examples/office.pcap: real programs in a small office of network namespaces.
#
#   gw .1   web .10   dns .53   pc1 .101   pc2 .102   pc3 .103   audit .200   crowd .250
#    |        |         |          |           |          |           |            |
#    +--------+---------+----------+--- br0 ---+----------+-----------+------------+
#                                    ^ tcpdump                10.20.0.0/24, fd20::/64
#
# Behind gw lies a branch, 10.20.64.0/25, whose last quarter (.96 and up) answers nothing; behind
# crowd lie 198.18.0.0/20, addresses that exist only as senders of a flood.
#
# Every frame is seen once, at the bridge, cut at 128 bytes. Timestamps and ephemeral ports differ
# from run to run; what is asked for, and of whom, does not. Nothing leaves the machine.
#
# Usage:    sudo examples/make-office-capture.sh [OUTPUT.pcap]
# Packages: iproute2 ethtool tcpdump curl bind9-dnsutils dnsmasq-base iperf3 iputils-ping nmap
#           netcat-openbsd python3
# Takes about half a minute; needs root for the namespaces.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
output=${1:-$here/office.pcap}

[ "$(id -u)" = 0 ] || { echo "make-office-capture: root is needed for network namespaces" >&2; exit 1; }
for tool in ip ethtool tcpdump curl dig dnsmasq iperf3 ping nmap nc python3; do
    command -v "$tool" >/dev/null || { echo "make-office-capture: $tool is missing (see the head of this file)" >&2; exit 1; }
done

prefix=office$$
work=$(mktemp -d)
hosts=()
pids=()

cleanup() {
    local id
    for id in "${pids[@]}"; do kill "$id" 2>/dev/null || true; done
    for id in "${pids[@]}"; do wait "$id" 2>/dev/null || true; done
    for id in "${hosts[@]}"; do ip netns del "$prefix-$id" 2>/dev/null || true; done
    rm -rf "$work"
}
trap cleanup EXIT

say() { printf 'office: %s\n' "$*" >&2; }
on() { local host=$1; shift; timeout 60 ip netns exec "$prefix-$host" "$@"; }
# A server: runs until the end, its process number is stored.
serve() {
    local host=$1; shift
    ip netns exec "$prefix-$host" "$@" >>"$work/$host.log" 2>&1 &
    pids+=($!)
}
quiet() { "$@" >/dev/null 2>&1; }

# --- the wires -------------------------------------------------------------------------------

space() {
    ip netns add "$prefix-$1"
    hosts+=("$1")
    # No neighbour discovery delays, no router solicitations: fewer accidents in the capture.
    ip netns exec "$prefix-$1" sh -c '
        for scope in all default; do
            echo 0 >/proc/sys/net/ipv6/conf/$scope/accept_dad
            echo 0 >/proc/sys/net/ipv6/conf/$scope/accept_ra
            echo 0 >/proc/sys/net/ipv6/conf/$scope/router_solicitations
            echo 0 >/proc/sys/net/ipv4/conf/$scope/rp_filter
        done
        echo 1 >/proc/sys/net/ipv4/tcp_synack_retries'
    ip -n "$prefix-$1" link set lo up
}

# host NAME NUMBER: 10.20.0.NUMBER and fd20::NUMBER on the bridge.
host() {
    space "$1"
    local ns=$prefix-$1
    ip -n "$ns" link add name eth0 address "$(printf '02:00:0a:14:00:%02x' "$2")" type veth \
        peer name "to-$1" netns "$prefix-switch"
    # Checksums and segments are those of the wire, not of an offloading card.
    quiet ip netns exec "$ns" ethtool -K eth0 tx off sg off tso off gso off gro off
    quiet ip netns exec "$prefix-switch" ethtool -K "to-$1" tx off sg off tso off gso off gro off
    ip -n "$prefix-switch" link set "to-$1" master br0 up
    ip -n "$ns" addr add "10.20.0.$2/24" dev eth0
    ip -n "$ns" -6 addr add "fd20::$2/64" dev eth0 nodad
    ip -n "$ns" link set eth0 up
    [ "$1" = gw ] || ip -n "$ns" route add default via 10.20.0.1
}

say "building eight hosts and a switch"
space switch
ip -n "$prefix-switch" link add name br0 type bridge stp_state 0 mcast_snooping 0
ip netns exec "$prefix-switch" sh -c 'echo 1 >/proc/sys/net/ipv6/conf/br0/disable_ipv6'
ip -n "$prefix-switch" link set br0 up
host gw 1
host web 10
host dns 53
host pc1 101
host pc2 102
host pc3 103
host audit 200
host crowd 250
ip -n "$prefix-gw" route add local 10.20.64.0/25 dev lo
ip -n "$prefix-gw" route add blackhole 10.20.64.96/27 table local
ip -n "$prefix-web" route add 198.18.0.0/20 via 10.20.0.250
ip -n "$prefix-crowd" route add blackhole 198.18.0.0/20

# --- the servers -----------------------------------------------------------------------------

mkdir "$work/www"
python3 - "$work/www" <<'PY'
import pathlib, sys
www = pathlib.Path(sys.argv[1])
(www / "index.html").write_text("<html><title>office</title>" + "<p>Nothing to see.</p>" * 60 + "</html>\n")
(www / "logo.png").write_bytes(bytes(i * 7 % 251 for i in range(40_000)))
(www / "backup.tar").write_bytes(bytes(i * 13 % 241 for i in range(2_000_000)))
PY
serve web python3 -m http.server --directory "$work/www" --bind :: 80
serve web python3 -m http.server --directory "$work/www" --bind :: 8080
serve web iperf3 --server
serve gw nc -lk 10.20.64.7 445
serve gw nc -lk 10.20.64.40 445
long=$(printf 'x%.0s' $(seq 250))
serve dns dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --log-facility=- \
    --pid-file= --user=root --edns-packet-max=4096 --local=/office.example/ \
    --host-record=web.office.example,10.20.0.10,fd20::10 \
    --host-record=gw.office.example,10.20.0.1,fd20::1 \
    --txt-record="policy.office.example,$long,$long,$long,$long,$long,$long,$long,$long,$long,$long"
sleep 1.5

ip netns exec "$prefix-switch" tcpdump --relinquish-privileges=root -i br0 -n -s 128 -B 8192 -U \
    -w "$work/office.pcap" 2>"$work/tcpdump.log" &
recorder=$!
pids+=("$recorder")
for _ in $(seq 50); do grep -q 'listening on' "$work/tcpdump.log" && break; sleep 0.1; done
grep -q 'listening on' "$work/tcpdump.log"

# --- an ordinary morning ---------------------------------------------------------------------

# The address of a name, asked of the office's own server.
lookup() { on "$1" dig +short +tries=2 "$3" @10.20.0.53 "$2.office.example" | tail -1; }

say "names, pings and pages"
for pc in pc1 pc2 pc3; do
    address=$(lookup "$pc" web A)
    for page in / /index.html /logo.png /missing.html; do
        quiet on "$pc" curl --silent --max-time 20 "http://$address$page"
    done
    address=$(lookup "$pc" web AAAA)
    for page in / /logo.png; do
        quiet on "$pc" curl --silent --max-time 20 "http://[$address]$page"
    done
    quiet on "$pc" curl --silent --max-time 20 "http://10.20.0.10:8080/"
    quiet on "$pc" dig +tries=2 @fd20::53 gw.office.example AAAA
    quiet on "$pc" dig +tries=2 @10.20.0.53 nowhere.office.example A
    quiet on "$pc" dig +tries=2 +tcp @10.20.0.53 gw.office.example A
    # About 2.5 kB in one answer: two IPv4 fragments.
    quiet on "$pc" dig +tries=2 +bufsize=4096 @10.20.0.53 policy.office.example TXT
done
quiet on pc1 ping -n -c 4 -i 0.2 10.20.0.1
quiet on pc2 ping -n -c 4 -i 0.2 fd20::10
quiet on pc3 ping -n -c 3 -i 0.2 -s 3000 10.20.0.10
quiet on pc3 ping -n -c 3 -i 0.2 -s 3000 fd20::10
quiet on pc1 ping -n -c 2 -i 0.2 -W 1 10.20.64.100 || true # the quarter that answers nothing
printf 'nobody listens here' | quiet on pc1 nc -u -w 1 10.20.0.53 5000 || true # port unreachable

say "bulk transfers"
quiet on pc1 curl --silent --max-time 30 http://10.20.0.10/backup.tar
quiet on pc2 iperf3 --client fd20::10 --bytes 1M
quiet on pc3 iperf3 --client 10.20.0.10 --udp --length 1200 --bytes 360k --bitrate 10M

# --- scans, and what only looks like one -------------------------------------------------------

scan() { quiet on "$1" nmap -n -Pn -sS -T4 --max-retries 1 --host-timeout 40s "${@:2}"; }

say "one host, many ports (IPv4, IPv6)"
scan audit -p 1-400,5201,8080 10.20.0.10
scan audit -6 -p 30-79 fd20::53
say "one port, many hosts"
scan audit -p 445 10.20.64.0/25
say "21 hosts: the least that is a scan; 20 ports: the most that is none"
scan pc2 -p 22 10.20.64.1-21
scan pc3 -p 3000-3019 10.20.0.53

say "a flood: 1,200 senders, each one SYN, to one open and one closed port"
on crowd python3 - <<'PY'
import ipaddress, socket, struct, time

def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF

target = ipaddress.ip_address("10.20.0.10").packed
first = int(ipaddress.ip_address("198.18.0.1"))
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
for i in range(1200):
    source = ipaddress.ip_address(first + i).packed
    port = 80 if i % 2 == 0 else 8443
    syn = struct.pack("!HHIIBBHHH", 20000 + i, port, 1000 * i, 0, 5 << 4, 2, 64240, 0, 0)
    pseudo = source + target + struct.pack("!BBH", 0, 6, len(syn))
    syn = syn[:16] + struct.pack("!H", checksum(pseudo + syn)) + syn[18:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(syn), i, 0, 64, 6, 0, source, target)
    raw.sendto(ip + syn, ("10.20.0.10", 0))
    if i % 20 == 19:
        time.sleep(0.01)  # the recorder must not lose a frame
PY
sleep 3 # the repeated SYN-ACKs

# --- the end -----------------------------------------------------------------------------------

kill -INT "$recorder"
wait "$recorder" || true
grep -q '^0 packets dropped by kernel' "$work/tcpdump.log" || {
    cat "$work/tcpdump.log" >&2
    echo "make-office-capture: the recorder lost packets; run it again" >&2
    exit 1
}
cp "$work/office.pcap" "$output"
say "wrote $output: $(grep 'packets captured' "$work/tcpdump.log"), $(stat -c %s "$output") bytes"
