#!/usr/bin/env bash
# scripts/release-check.sh [STEP…]: checks the packages of this machine's architecture in target/packages. Needs root, and
# a Debian mirror for a root of Debian 12. Steps, all by default: sizes, empty, container, debian, manifest, deny, equal.
# The last line is the total; a step that cannot run here prints `SKIPPED: reason`.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
. scripts/package-target.sh
arch=$(dpkg --print-architecture)
package_target "$arch" || exit 1
out=$PWD/target/packages
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=ringtap-$version-$machine-linux
deb=$out/ringtap_${version}_$arch.deb
work=$(mktemp -d)
trap 'ip netns del ringtap-release 2>/dev/null; rm -rf "$work"' EXIT
tar -xzf "$out/$name.tar.gz" -C "$work" || exit 1
program=$work/$name/ringtap

[ "$(id -u)" = 0 ] || { echo "release-check: needs root" >&2; exit 1; }
need debootstrap debootstrap
need systemd-nspawn systemd-container
need setcap libcap2-bin
need ip iproute2
install_needed || exit 1

skip() { echo "SKIPPED: $*"; return 77; }

# The sums, and the sizes that packages may have.
sizes() {
    local most size
    (cd "$out" && sha256sum --check --quiet SHA256SUMS) || return 1
    while read -r most file; do
        size=$(stat -c %s "$file") || return 1
        echo "$size bytes (at most $most): $(basename "$file")"
        [ "$size" -le "$most" ] || return 1
    done <<END
20000000 $program
8000000 $deb
END
}

# The static program in a root without any other file: a report, and a filter expression.
empty() {
    local root=$work/empty selected
    mkdir "$root" && cp "$program" "$root/" || return 1
    chroot "$root" /ringtap --version || return 1
    chroot "$root" /ringtap monitor -r - --quiet --report json <examples/office.pcap >"$work/all.json" || return 1
    selected=$(chroot "$root" /ringtap monitor -r - --quiet --report json tcp port 80 <examples/office.pcap) || return 1
    python3 -c '
import json, sys
everything, selected = json.load(open(sys.argv[1])), json.loads(sys.argv[2])
assert everything["packets"]["handled"] > selected["packets"]["handled"] > 0, selected["packets"]' "$work/all.json" "$selected"
}

# What a container with NET_RAW alone has: an ordinary user, the capability of the file, no other file.
container() {
    local root=$work/container
    mkdir "$root" && cp "$program" "$root/" && setcap cap_net_raw+ep "$root/ringtap" || return 1
    ip netns add ringtap-release || return 1
    ip -n ringtap-release link set lo up
    ip netns exec ringtap-release setpriv --bounding-set=-all,+net_raw,+sys_chroot,+setuid,+setgid --inh-caps=-all \
        chroot --groups= --userspec=65532:65532 "$root" /ringtap monitor -i lo --duration 1s --report json >"$work/live.json" || return 1
    # Without it the program does not start, as without --cap-add.
    ! ip netns exec ringtap-release setpriv --bounding-set=-all,+sys_chroot,+setuid,+setgid --inh-caps=-all \
        chroot --groups= --userspec=65532:65532 "$root" /ringtap --version 2>/dev/null
}

# A bare Debian 12 with systemd, and nfcapd: scripts/service-check.sh runs in it.
debian() {
    local cache=target/package-tools/bookworm-$arch.tar root=$work/debian older=$work/older mirror
    if [ ! -e "$cache" ]; then
        mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian/*$')
        debootstrap --variant=minbase --include=systemd-sysv,udev,dbus,iproute2,nfdump bookworm "$work/new" "$mirror" \
            >"$work/log" 2>&1 || { tail "$work/log"; skip "debootstrap cannot make Debian 12"; return; }
        tar -C "$work/new" -cf "$cache.part" . && mv "$cache.part" "$cache" && rm -rf "$work/new"
    fi
    mkdir -p "$root" && tar -xpf "$cache" -C "$root" || return 1
    mkdir "$root/packages" && cp "$out"/*_"$arch".deb scripts/service-check.sh "$root/packages/" || return 1
    # An older version, to upgrade from.
    dpkg-deb -R "$deb" "$older" && sed -i 's/^Version: .*/Version: 0.0.1/' "$older/DEBIAN/control" || return 1
    dpkg-deb --root-owner-group -b "$older" "$root/packages/older.deb" >/dev/null || return 1
    cat >"$root/etc/systemd/system/service-check.service" <<'END'
[Service]
Type=oneshot
ExecStart=/bin/bash -ex /packages/service-check.sh
StandardOutput=file:/packages/log
StandardError=inherit
TimeoutStartSec=300
ExecStopPost=/bin/systemctl poweroff --no-block
[Install]
WantedBy=multi-user.target
END
    systemctl --root="$root" --quiet enable service-check.service 2>/dev/null
    # /sys is writable, so that udev announces interfaces.
    SYSTEMD_NSPAWN_API_VFS_WRITABLE=yes timeout 400 systemd-nspawn --quiet --register=no --keep-unit --boot \
        --private-network --capability=all --directory="$root" </dev/null >"$work/console" 2>&1
    if grep -q '^checked$' "$root/packages/log" 2>/dev/null; then
        grep '^records: ' "$root/packages/log"
        return 0
    fi
    [ -s "$root/packages/log" ] || { tail "$work/console"; skip "systemd-nspawn cannot start Debian here"; return; }
    tail -n 40 "$root/packages/log"
    return 1
}

# The manifest of Kubernetes against its schema.
manifest() {
    local venv=target/package-tools/kubernetes
    [ -e "$venv/complete" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet kubernetes-validate==1.37.0 &&
        touch "$venv/complete"; } || { skip "kubernetes-validate is missing (PyPI)"; return; }
    "$venv/bin/kubernetes-validate" --strict packaging/kubernetes/ringtap.yaml
}

# Licences and sources of the crates; known faults if their database can be had.
deny() {
    cargo deny --version >/dev/null 2>&1 || { skip "cargo-deny is missing (cargo install cargo-deny)"; return; }
    cargo deny --offline check licenses bans sources || return 1
    cargo deny fetch db >/dev/null 2>&1 || { skip "the database of advisories cannot be fetched"; return; }
    cargo deny check advisories
}

# A source archive of the commit, in another folder, gives equal packages.
equal() {
    local copy=$work/copy commit file
    git diff --quiet HEAD || { skip "the tree differs from its commit"; return; }
    commit=$(git rev-parse --short=12 HEAD)
    mkdir -p "$copy/target/package-tools" && git archive HEAD | tar -x -C "$copy" || return 1
    cp -a "target/package-tools/$arch" "$copy/target/package-tools/" || return 1
    (unset CARGO_TARGET_DIR && cd "$copy" && RINGTAP_COMMIT=$commit scripts/make-packages.sh "$arch") >"$work/log" 2>&1 ||
        { tail "$work/log"; return 1; }
    for file in "$out"/*_"$arch".deb "$out/$name.tar.gz"; do
        cmp "$file" "$copy/target/packages/$(basename "$file")" || return 1
    done
}

steps=("$@")
[ $# -gt 0 ] || steps=(sizes empty container debian manifest deny equal)
passed=0 failed=0 skipped=0
for step in "${steps[@]}"; do
    printf '\n== release-check: %s\n' "$step"
    "$step"
    case $? in
        0) passed=$((passed + 1)) ;;
        77) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)); echo "FAILED: $step" ;;
    esac
done
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" = 0 ]
