# Sourced by the scripts that make packages: `package_target ARCH` sets the names of a Debian architecture, and the
# environment of cargo and C compilers for static programs.

# Tools of scripts/setup-packages.sh and of scripts/release-check.sh; a folder for each version.
package_tools=$PWD/target/package-tools
libpcap=1.10.3
cyclonedx_version=0.5.9 deny_version=0.20.2
maturin_version=1.16.0 zig_version=0.17.1 auditwheel_version=6.8.2
wheel_tools=$package_tools/maturin-$maturin_version-zig-$zig_version

# cargo_tool CRATE VERSION: builds a command of cargo, unless it is there. It runs for seconds: a quick build is enough.
cargo_tool() {
    local folder=$package_tools/$1-$2
    PATH=$folder/bin:$PATH
    [ ! -e "$folder/bin/$1" ] || return 0
    echo "packages: building $1 $2" >&2
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        CARGO_PROFILE_RELEASE_DEBUG=false cargo install --quiet --locked --root "$folder" --target-dir "$folder/build" "$1@$2" \
        >&2 || return 1
    rm -rf "$folder/build"
}

package_target() {
    arch=$1
    case $arch in
        amd64) machine=x86_64 qemu=qemu-x86_64-static ;;
        arm64) machine=aarch64 qemu=qemu-aarch64-static ;;
        *) echo "packages: invalid architecture \"$arch\": use amd64 or arm64" >&2; return 2 ;;
    esac
    rust_target=$machine-unknown-linux-musl
    # Python's wheels are for glibc.
    wheel_target=$machine-unknown-linux-gnu
    # Headers of musl and of the kernel, and libpcap: scripts/setup-packages.sh.
    tools=$package_tools/$arch
    cc=$machine-linux-gnu-gcc
    # Rust's own linker, which links for every architecture; gcc finds it in this folder.
    lld=$(rustc --print target-libdir)/../bin/gcc-ld
    # Runs a program of the architecture.
    runs=()
    [ "$(uname -m)" = "$machine" ] || runs=("$qemu")
    # Debian's compiler with the headers of musl. Paths of this machine are not in the program. Helpers of libgcc for
    # atomics of ARM would need glibc.
    c_flags="-nostdinc -isystem $tools/root/usr/include/$machine-linux-musl"
    c_flags+=" -isystem $("$cc" -print-file-name=include 2>/dev/null) -idirafter $tools/kernel"
    # For the wheel, too.
    wheel_flags="-g0 -ffile-prefix-map=$PWD=. -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    c_flags+=" -U_FORTIFY_SOURCE $wheel_flags"
    [ "$arch" != arm64 ] || c_flags+=" -mno-outline-atomics"
}
