#!/usr/bin/env bash
# scripts/release-check.sh [STEP…]: checks the packages of this machine's architecture in target/packages. Needs root, and
# a Debian mirror for a root of Debian 12. Steps, all by default: sizes, empty, container, debian, wheel, manifest, compose,
# sbom, deny, advisories, crates, equal.
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
trap 'rm -rf "$work"' EXIT
tar -xzf "$out/$name.tar.gz" -C "$work" || exit 1
program=$work/$name/ringtap

[ "$(id -u)" = 0 ] || { echo "release-check: needs root" >&2; exit 1; }
need debootstrap debootstrap
need systemd-nspawn systemd-container
need podman podman
need runc runc
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

# debian_root: the file of a bare Debian 12 with systemd and nfcapd, made once.
debian_root() {
    local mirror
    root_file=$package_tools/bookworm-$arch.tar
    [ ! -e "$root_file" ] || return 0
    mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian/*$')
    debootstrap --variant=minbase --include=systemd-sysv,udev,dbus,iproute2,nfdump bookworm "$work/new" "$mirror" \
        >"$work/log" 2>&1 || { tail "$work/log"; skip "debootstrap cannot make Debian 12"; return; }
    tar -C "$work/new" -cf "$root_file.part" . && mv "$root_file.part" "$root_file" && rm -rf "$work/new"
}

# The image of packaging/Containerfile as LIVE.md says: it monitors an interface with NET_RAW alone, and without it does not
# start. A Debian of debootstrap is the image that it begins with, so no registry is needed. Containers are without
# networks and limits of this machine, which needs neither rights nor settings of its own.
container() {
    local engine=(podman --root "$work/images" --runroot "$work/containers" --cgroup-manager cgroupfs --events-backend file --runtime runc)
    local with=(--rm --network none --read-only --cap-drop ALL)
    debian_root || return
    cat >"$work/containers.conf" <<'END'
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
END
    export CONTAINERS_CONF=$work/containers.conf
    "${engine[@]}" import --quiet "$root_file" debian:12-slim >"$work/log" 2>&1 &&
        "${engine[@]}" run "${with[@]}" --pull never debian:12-slim /bin/true >>"$work/log" 2>&1 ||
        { tail "$work/log"; skip "podman cannot run containers here"; return; }
    "${engine[@]}" build --quiet --isolation chroot --pull-never --tag "localhost/ringtap:$version" \
        -f packaging/Containerfile "$out" >"$work/log" 2>&1 || { tail "$work/log"; return 1; }
    "${engine[@]}" image inspect --format '{{.Size}} bytes of image' "localhost/ringtap:$version" || return 1
    "${engine[@]}" run "${with[@]}" --cap-add NET_RAW "localhost/ringtap:$version" monitor -i lo --duration 1s --report json \
        >"$work/live.json" || return 1
    python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["ledger"]["residual"] == 0' "$work/live.json" || return 1
    ! "${engine[@]}" run "${with[@]}" "localhost/ringtap:$version" --version 2>/dev/null
}

# scripts/service-check.sh in this Debian: the service from installation to purge.
debian() {
    local root=$work/debian older=$work/older
    debian_root || return
    mkdir -p "$root" && tar -xpf "$root_file" -C "$root" || return 1
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

# The wheel in an empty environment gives the digest of the program, and its symbols are those of the glibc in its name.
wheel() {
    local file=("$out"/ringtap-"$version"-*_"$machine".whl) expected
    "$wheel_tools/bin/auditwheel" show "${file[0]}" >"$work/audit" || { cat "$work/audit"; return 1; }
    grep -q "\"manylinux_2_17_$machine\"" "$work/audit" || { cat "$work/audit"; return 1; }
    python3 -m venv "$work/venv" && "$work/venv/bin/pip" install --quiet --no-index "${file[0]}" || return 1
    expected=$("$program" monitor -r examples/office.pcap --quiet --digest --report json) || return 1
    "$work/venv/bin/python" -c '
import json, sys, ringtap
expected = json.loads(sys.argv[1])
run = ringtap.monitor("examples/office.pcap", digest=True)
assert run.report["digest"] == expected["digest"], (run.report["digest"], expected["digest"])
assert len(run.flows) == run.report["flows"]["records"] > 0
print(f"{ringtap.__file__}: {len(run.flows)} flows")' "$expected"
}

# venv NAME PACKAGE: an environment of Python in target/package-tools with a package, made once.
venv() {
    local folder=$package_tools/$1
    [ -e "$folder/complete" ] || { rm -rf "$folder" && python3 -m venv "$folder" && "$folder/bin/pip" install --quiet "$2" &&
        touch "$folder/complete"; }
}

# The manifest of Kubernetes against its schema.
manifest() {
    venv kubernetes-1.37.0 kubernetes-validate==1.37.0 || { skip "kubernetes-validate is missing (PyPI)"; return; }
    "$package_tools/kubernetes-1.37.0/bin/kubernetes-validate" --strict packaging/kubernetes/ringtap.yaml
}

# The example of Compose by the parser of Docker's, and the names and files that it refers to.
compose() {
    local parser=$package_tools/compose-go-2.16.2
    [ -e "$parser/cmd" ] || GOBIN=$parser go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2 2>"$work/log" ||
        { tail -n 3 "$work/log"; skip "compose-go cannot be built"; return; }
    (cd packaging/compose && "$parser/cmd" --format json compose.yaml) >"$work/compose.json" || return 1
    python3 -c '
import json, os, sys
services = json.load(open(sys.argv[1]))["services"]
for name, service in services.items():
    needed = set(service.get("depends_on", {}))
    assert needed <= set(services), (name, needed)
    files = [volume["source"] for volume in service.get("volumes", [])]
    if build := service.get("build"):
        files += [build["context"], os.path.join(build["context"], build["dockerfile"])]
    missing = [file for file in files if not os.path.exists(file)]
    assert not missing, (name, missing)
print(len(services), "services")' "$work/compose.json"
}

# The lists of crates against the schema of CycloneDX.
sbom() {
    venv cyclonedx-11.12.0 'cyclonedx-python-lib[json-validation]==11.12.0' || { skip "cyclonedx-python-lib is missing (PyPI)"; return; }
    "$package_tools/cyclonedx-11.12.0/bin/python" -c '
import json, pathlib, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for path in map(pathlib.Path, sys.argv[1:]):
    text = path.read_text()
    version = SchemaVersion.from_version(json.loads(text)["specVersion"])
    error = JsonStrictValidator(version).validate_str(text)
    assert error is None, (path, error)
    print(path.name, len(json.loads(text)["components"]), "components")' "$out"/*-"$version"-"$machine"-linux.cdx.json
}

# Licences and sources of the crates.
deny() {
    cargo_tool cargo-deny "$deny_version" || { skip "cargo-deny cannot be built"; return; }
    # It reads the crates of all systems.
    cargo fetch --locked 2>"$work/log" || { tail -n 3 "$work/log"; skip "crates cannot be fetched"; return; }
    cargo deny --offline check licenses bans sources
}

# Known faults of the crates, if their database can be had.
advisories() {
    cargo_tool cargo-deny "$deny_version" || { skip "cargo-deny cannot be built"; return; }
    cargo deny fetch db >"$work/log" 2>&1 || { tail -n 3 "$work/log"; skip "the database of advisories cannot be fetched"; return; }
    cargo deny check advisories
}

# The crates that are published are built from their packages alone.
crates() {
    git diff --quiet HEAD || { skip "the tree differs from its commit"; return; }
    scripts/package-crates.sh 2>"$work/log" || { tail "$work/log"; return 1; }
}

# A source archive of the commit, in another folder, gives equal files.
equal() {
    local copy=$work/copy commit file tool
    git diff --quiet HEAD || { skip "the tree differs from its commit"; return; }
    commit=$(git rev-parse --short=12 HEAD)
    mkdir -p "$copy/target/package-tools" && git archive HEAD | tar -x -C "$copy" || return 1
    cp -a "$tools" "$copy/target/package-tools/" || return 1
    for tool in "$wheel_tools" "$package_tools/cargo-cyclonedx-$cyclonedx_version"; do
        ln -s "$tool" "$copy/target/package-tools/" || return 1
    done
    (unset CARGO_TARGET_DIR && cd "$copy" && RINGTAP_COMMIT=$commit scripts/make-packages.sh "$arch") >"$work/log" 2>&1 ||
        { tail "$work/log"; return 1; }
    for file in "$copy"/target/packages/*"$version"*; do
        cmp "$file" "$out/$(basename "$file")" || return 1
    done
}

steps=("$@")
[ $# -gt 0 ] || steps=(sizes empty container debian wheel manifest compose sbom deny advisories crates equal)
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
