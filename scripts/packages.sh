# Sourced by the setup scripts. `need COMMAND PACKAGE…` records the packages if the command is
# missing. `install_needed` updates the package lists once and installs the recorded packages; it
# fails if it cannot. Runs at the same time wait for each other, and for other programs that install packages.

wanted=()
missing=()
apt_folder=/var/lib/apt

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
    # apt waits only for the lock of dpkg, so a lock of our own is held for all of its steps.
    # shellcheck disable=SC2016
    "${as_root[@]}" flock "$apt_folder" env DEBIAN_FRONTEND=noninteractive bash -c '
        for attempt in {1..120}; do
            errors=$(apt-get update -qq 2>&1) && break
            # Another program updates the lists.
            grep -q "Could not get lock" <<<"$errors" && [ "$attempt" -lt 120 ] || { echo "$errors"; exit 1; }
            sleep 5
        done
        exec apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 "$@"' apt "${wanted[@]}" >&2
}
