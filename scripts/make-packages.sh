#!/usr/bin/env bash
# scripts/make-packages.sh [ARCH]: builds static programs for an architecture of Debian (amd64, the default, or arm64),
# and from them packages in target/packages: ringtap-VERSION-MACHINE-linux.tar.gz, the Debian packages ringtap,
# ringtap-ndn and ringtap-lab, for each the list of what is in its program (CycloneDX), a wheel for Python, and SHA256SUMS.
# Needs no network after scripts/setup-packages.sh ARCH.
#
# Equal sources give equal files: no paths of this machine are in the programs, and all times are SOURCE_DATE_EPOCH, by
# default that of the commit. A source archive has no commit: RINGTAP_COMMIT names it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/package-target.sh
package_target "${1:-amd64}"

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# `git archive` gives the files the time of the commit.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC CARGO_NET_OFFLINE=true DPKG_DEB_THREADS_MAX=1
umask 022

sysroot=$(rustc --print sysroot)
paths="--remap-path-prefix=$PWD=/ringtap --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo \
--remap-path-prefix=$sysroot=/rust"
# Smaller programs: addresses to relocate are packed (RELR), and equal functions and constants are kept once, as Microsoft's
# linker does for Rust. Nothing here depends on different addresses of them.
link="-C link-arg=-fuse-ld=lld -C link-arg=-B$lld -C link-arg=-Wl,--build-id=none,-z,pack-relative-relocs"
link+=",--icf=all,--ignore-data-address-equality"
export CARGO_PROFILE_RELEASE_DEBUG=false CARGO_PROFILE_RELEASE_STRIP=symbols CARGO_INCREMENTAL=0
underscored=${rust_target//-/_}
env "CC_$underscored=$cc" "CFLAGS_$underscored=$c_flags" "AR_$underscored=$machine-linux-gnu-ar" \
    "CARGO_TARGET_${underscored^^}_LINKER=$cc" "RINGTAP_LIBPCAP=$tools/lib" \
    "RUSTFLAGS=$paths $link" \
    cargo build --release --locked --target "$rust_target" -p ringtap -p ringtap-ndn-program -p ringtap-lab
programs=${CARGO_TARGET_DIR:-target}/$rust_target/release

out=$PWD/target/packages
mkdir -p "$out"
rm -f "$out"/*_"$arch".deb "$out"/*-"$machine"-linux.* "$out"/*"$machine".whl "$out/SHA256SUMS"
work=$(mktemp -d)
# What tools leave in the tree.
clean() {
    rm -rf "$work" python/LICENSE-THIRD-PARTY
    find . -name crates.cdx.json -not -path "./target/*" -delete
}
trap clean EXIT
scripts/third-party.py "$rust_target" ringtap,ringtap-ndn-program,ringtap-lab "$tools"/lib/*.licence >"$work/THIRD-PARTY"

# file FROM TO [MODE]: copies a file and makes its folder.
file() { install -D -m "${3:-644}" "$1" "$2"; }

# pages PROGRAM MAN BASH ZSH FISH: writes man pages and completions into these folders.
pages() {
    mkdir -p "${@:2}"
    local program=("${runs[@]}" "$programs/$1")
    "${program[@]}" man "$2"
    "${program[@]}" completions bash >"$3/$1"
    "${program[@]}" completions zsh >"$4/_$1"
    "${program[@]}" completions fish >"$5/$1.fish"
}

# Debian packages.
description() {
    case $1 in
        ringtap) echo "network traffic monitor
 Reports flows, port scans, top talkers and traffic totals of interfaces and
 capture files, and exports flow records: IPFIX, NetFlow, Kafka, JSON, Parquet." ;;
        ringtap-ndn) echo "forwarder for Named Data Networking, and its tools
 Forwards over UDP, TCP, WebSocket, Ethernet and Unix sockets." ;;
        ringtap-lab) echo "experiments of papers about parallel packet processing
 Repeats the measurements of five papers on this machine, and judges them." ;;
    esac
}

# deb PACKAGE DEPENDS UNITS STATE: makes a package of the folder $work/PACKAGE.
deb() {
    local root=$work/$1 script
    local doc=$root/usr/share/doc/$1
    mkdir -p "$root/DEBIAN"
    file packaging/deb/copyright "$doc/copyright"
    file LICENSE-MIT "$doc/LICENSE-MIT"
    file LICENSE-APACHE "$doc/LICENSE-APACHE"
    gzip -9n <"$work/THIRD-PARTY" >"$doc/THIRD-PARTY.gz"
    gzip -9n <CHANGELOG.md >"$doc/changelog.gz"
    [ ! -d "$root/usr/share/man" ] || gzip -9n "$root"/usr/share/man/man1/*.1
    if [ -n "$3" ]; then
        (cd "$root" && find etc -type f -printf '/%p\n' | sort) >"$root/DEBIAN/conffiles"
        for script in postinst prerm postrm; do
            sed "s|@UNITS@|$3|; s|@STATE@|$4|" "packaging/deb/$script" >"$root/DEBIAN/$script"
            chmod 755 "$root/DEBIAN/$script"
        done
    fi
    cat >"$root/DEBIAN/control" <<END
Package: $1
Version: $version
Architecture: $arch
Maintainer: The ringtap authors <ringtap@ringtap.invalid>
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
${2:+Depends: $2
}Section: net
Priority: optional
Homepage: $(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
Description: $(description "$1")
END
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz -z9 --build "$root" "$out/$1_${version}_$arch.deb" >/dev/null
}

# with_pages PACKAGE: the program of this name, its man pages, and its completions.
with_pages() {
    local share=$work/$1/usr/share
    file "$programs/$1" "$work/$1/usr/bin/$1" 755
    pages "$1" "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
        "$share/fish/vendor_completions.d"
}

# service PACKAGE UNIT…: units that run /usr/bin.
service() {
    local unit
    for unit in "${@:2}"; do
        mkdir -p "$work/$1/usr/lib/systemd/system"
        sed 's|/usr/local/bin/|/usr/bin/|' "packaging/$unit" >"$work/$1/usr/lib/systemd/system/$unit"
    done
}

with_pages ringtap
service ringtap ringtap@.service ringtap-filter@.service
file packaging/ringtap.toml "$work/ringtap/etc/ringtap/ringtap.toml"
file packaging/prometheus/ringtap.rules.yml "$work/ringtap/usr/share/doc/ringtap/examples/ringtap.rules.yml"
file packaging/grafana/ringtap.json "$work/ringtap/usr/share/doc/ringtap/examples/grafana.json"
deb ringtap "" "ringtap@*.service ringtap-filter@*.service" "/var/lib/ringtap-* /var/lib/private/ringtap-*"

with_pages ringtap-ndn
service ringtap-ndn ringtap-ndn.service
file packaging/forward.toml "$work/ringtap-ndn/etc/ringtap/forward.toml"
file programs/ringtap-ndn/README.md "$work/ringtap-ndn/usr/share/doc/ringtap-ndn/README.md"
deb ringtap-ndn "" ringtap-ndn.service ""

file "$programs/ringtap-lab" "$work/ringtap-lab/usr/bin/ringtap-lab" 755
file docs/LAB.md "$work/ringtap-lab/usr/share/doc/ringtap-lab/LAB.md"
deb ringtap-lab "ringtap (= $version), ringtap-ndn (= $version)" "" ""

# The same for other distributions: one folder, in which the program runs from anywhere.
name=ringtap-$version-$machine-linux
tree=$work/$name
mkdir "$tree"
file "$programs/ringtap" "$tree/ringtap" 755
pages ringtap "$tree/man/man1" "$tree/completions" "$tree/completions" "$tree/completions"
mv "$tree/completions/ringtap" "$tree/completions/ringtap.bash"
for one in LICENSE-MIT LICENSE-APACHE CHANGELOG.md README.md packaging/ringtap.toml packaging/ringtap@.service \
    packaging/ringtap-filter@.service "$work/THIRD-PARTY"; do
    file "$one" "$tree/$(basename "$one")"
done
tar -C "$work" --format=ustar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
    -c "$name" | gzip -9n >"$out/$name.tar.gz"

# crates TARGET: lists what each package of the workspace is built of. cargo-cyclonedx writes beside the manifests.
crates() { cargo cyclonedx --quiet --format json --spec-version 1.5 --target "$1" --override-filename crates.cdx; }

# What is in each program: its crates, libpcap, and Rust's musl.
cargo_tool cargo-cyclonedx "$cyclonedx_version"
crates "$rust_target"
musl=$(ar p "$sysroot/lib/rustlib/$rust_target/lib/self-contained/libc.a" version.lo | strings -n 5 | head -n 1)
for one in cli:ringtap programs/ringtap-ndn:ringtap-ndn lab:ringtap-lab; do
    scripts/sbom.py "${one%:*}/crates.cdx.json" "libpcap=$libpcap=BSD-3-Clause" "musl=$musl=MIT" \
        >"$out/${one#*:}-$version-$machine-linux.cdx.json"
done

# Python's wheel, for glibc 2.17 or later: Zig compiles C, and links. With optimisation across crates, of which Arrow has
# many, its build would take longer than all others.
scripts/third-party.py "$wheel_target" ringtap-python >python/LICENSE-THIRD-PARTY
crates "$wheel_target"
scripts/sbom.py python/crates.cdx.json >"$work/ringtap.cdx.json"
env PATH="$wheel_tools/bin:$PATH" "ZIG_GLOBAL_CACHE_DIR=$wheel_tools/cache" "CFLAGS_${wheel_target//-/_}=$wheel_flags" \
    "RUSTFLAGS=$paths -C link-arg=-Wl,--build-id=none" \
    maturin build --quiet --profile quick --zig --compatibility manylinux2014 --target "$wheel_target" \
    --sbom-include "$work/ringtap.cdx.json" --manifest-path python/Cargo.toml --out "$out"

(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | sort | xargs sha256sum >SHA256SUMS)
(cd "$out" && ls -l | awk 'NR > 1 { printf "%10d  %s\n", $5, $9 }')
