# Sourced by the setup scripts. `need COMMAND PACKAGE…` records the packages if the command is
# missing. `install_needed` updates the package lists once and installs the recorded packages; it
# fails if it cannot.

wanted=()
missing=()

need() {
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null && return
    missing+=("$1")
    wanted+=("${@:2}")
}

install_needed() {
    [ ${#wanted[@]} -gt 0 ] || return 0
    echo "setup: ${missing[*]} missing, installing: ${wanted[*]}" >&2
    command -v apt-get >/dev/null || { echo "setup: apt-get is missing" >&2; return 1; }
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null || { echo "setup: installation needs root or sudo" >&2; return 1; }
        as_root=(sudo)
    fi
    "${as_root[@]}" apt-get update -qq >&2 || return 1
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${wanted[@]}" >&2
}
