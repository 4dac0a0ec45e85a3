#!/usr/bin/env bash
# scripts/setup-packages.sh ARCH: installs and fetches what `make packages` needs for an architecture of Debian, amd64
# or arm64. After it the build needs no network. Does nothing if all of it is here.
#
# For static programs: Rust's standard library for musl, musl's headers, the kernel's headers, and libpcap, which is
# built without capture methods: ringtap uses only its compiler of filter expressions. For the wheel: maturin, and Zig,
# which links for any glibc. For the lists of crates: cargo-cyclonedx.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh
. scripts/package-target.sh
suite=bookworm

package_target "${1:-}"
if [ "$(uname -m)" = "$machine" ]; then
    need "$cc" gcc
else
    need "$cc" "gcc-${machine/_/-}-linux-gnu"
    need "$qemu" qemu-user-static
fi
need dpkg-deb dpkg
need flex flex
need bison bison
need python3 python3
need git git
python3 -c 'import ensurepip' 2>/dev/null || need no-ensurepip python3-venv
install_needed || { echo "setup-packages: cannot install: ${missing[*]}" >&2; exit 1; }
# Again, with the compiler.
package_target "$1"

for target in "$rust_target" "$wheel_target"; do
    [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || { command -v rustup >/dev/null && rustup target add "$target"; } || {
        echo "setup-packages: Rust's standard library for $target cannot be installed: rustup target add $target" >&2
        exit 1
    }
done
[ -x "$lld/ld.lld" ] || { echo "setup-packages: this Rust has no lld: install Rust with rustup" >&2; exit 1; }
cargo fetch --locked --target "$rust_target" --target "$wheel_target" >/dev/null || {
    echo "setup-packages: crates cannot be fetched" >&2
    exit 1
}
cargo_tool cargo-cyclonedx "$cyclonedx_version" || { echo "setup-packages: cargo-cyclonedx cannot be built" >&2; exit 1; }
if [ ! -e "$wheel_tools/complete" ]; then
    rm -rf "$wheel_tools"
    { python3 -m venv "$wheel_tools" && "$wheel_tools/bin/pip" install --quiet "maturin==$maturin_version" \
        "ziglang==$zig_version" "auditwheel==$auditwheel_version" && touch "$wheel_tools/complete"; } || {
        echo "setup-packages: maturin, ziglang and auditwheel cannot be installed (PyPI)" >&2
        exit 1
    }
fi

[ ! -e "$tools/libpcap-$libpcap" ] || exit 0
# Debian's files, with apt's keys and mirror but folders of its own: the machine's lists do not change.
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian/*$') || {
    echo "setup-packages: the sources of apt have no Debian mirror" >&2
    exit 1
}
rm -rf "$tools"
mkdir -p "$tools/apt/lists/partial" "$tools/apt/cache/archives/partial" "$tools/kernel"
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for kind in deb deb-src; do
    echo "$kind [signed-by=$keys] $mirror $suite main"
done >"$tools/apt/sources.list"
: >"$tools/apt/status"
options=(-qq -o "Dir::Etc::SourceList=$tools/apt/sources.list" -o "Dir::Etc::SourceParts=/dev/null"
    -o "Dir::State::Lists=$tools/apt/lists" -o "Dir::State::status=$tools/apt/status" -o "Dir::Cache=$tools/apt/cache"
    -o "APT::Sandbox::User=root" -o "APT::Architecture=$arch" -o "APT::Architectures::=$arch")
{
    apt-get "${options[@]}" update
    cd "$tools/apt"
    apt-get "${options[@]}" download musl-dev linux-libc-dev
    apt-get "${options[@]}" source --download-only --tar-only "libpcap=$libpcap-1"
    for package in *.deb; do dpkg-deb -x "$package" "$tools/root"; done
    for part in linux asm-generic; do ln -s "../root/usr/include/$part" "$tools/kernel/$part"; done
    ln -s "../root/usr/include/$machine-linux-gnu/asm" "$tools/kernel/asm"
    mkdir "$tools/pcap"
    tar -xf libpcap_*.orig.tar.gz -C "$tools/pcap" --strip-components=1
    cd "$tools/pcap"
    ./configure --host="$machine-linux-gnu" CC="$cc" CFLAGS="-O2 $c_flags" --with-pcap=null --disable-shared \
        --without-libnl --without-dpdk --disable-usb --disable-netmap --disable-bluetooth --disable-dbus --disable-rdma \
        --disable-remote
    make libpcap.a
} >"$tools/log" 2>&1 || {
    tail -n 20 "$tools/log" >&2
    echo "setup-packages: musl's headers and libpcap $libpcap of Debian $suite cannot be had from $mirror (log: $tools/log)" >&2
    exit 1
}
mkdir "$tools/lib"
cp "$tools/pcap/libpcap.a" "$tools/lib/"
cp "$tools/pcap/LICENSE" "$tools/lib/libpcap.licence"
cp "$tools/root/usr/share/doc/musl-dev/copyright" "$tools/lib/musl.licence"
rm -rf "$tools/apt" "$tools/pcap"
touch "$tools/libpcap-$libpcap"
