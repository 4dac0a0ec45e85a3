# Sourced by the scripts that make packages: `package_target ARCH` sets the names of a Debian architecture, and the
# environment of cargo and C compilers for static programs.

package_target() {
    arch=$1
    case $arch in
        amd64) machine=x86_64 qemu=qemu-x86_64-static ;;
        arm64) machine=aarch64 qemu=qemu-aarch64-static ;;
        *) echo "packages: invalid architecture \"$arch\": use amd64 or arm64" >&2; return 2 ;;
    esac
    rust_target=$machine-unknown-linux-musl
    # Headers of musl and of the kernel, and libpcap: scripts/setup-packages.sh.
    tools=$PWD/target/package-tools/$arch
    cc=$machine-linux-gnu-gcc
    # Runs a program of the architecture.
    runs=()
    [ "$(uname -m)" = "$machine" ] || runs=("$qemu")
    # Debian's compiler with the headers of musl. Paths of this machine are not in the program. Helpers of libgcc for
    # atomics of ARM would need glibc.
    c_flags="-nostdinc -isystem $tools/root/usr/include/$machine-linux-musl"
    c_flags+=" -isystem $("$cc" -print-file-name=include 2>/dev/null) -idirafter $tools/kernel"
    c_flags+=" -U_FORTIFY_SOURCE -g0 -ffile-prefix-map=$PWD=. -ffile-prefix-map=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    [ "$arch" != arm64 ] || c_flags+=" -mno-outline-atomics"
}
