#!/usr/bin/env bash
# scripts/fetch-eve-schema.sh FILE: writes the JSON schema of Suricata's events, from Debian's
# source package, to FILE.
#
# The schema is under the GPL, so it is fetched and not part of this repository. The script uses the
# machine's Debian mirror and keys with a temporary apt folder, so the machine's package lists do
# not change. The package is not installed.
set -euo pipefail
file=$(realpath -m "$1")
command -v apt-get >/dev/null || { echo "fetch-eve-schema: apt-get is missing" >&2; exit 1; }

mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -m 1 '/debian/*$') || {
    echo "fetch-eve-schema: the sources of apt have no Debian mirror" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
keys=/usr/share/keyrings/debian-archive-keyring.gpg

for suite in trixie-backports testing sid; do
    echo "deb-src [signed-by=$keys] $mirror $suite main" >"$work/sources.list"
    options=(-o "Dir::Etc::SourceList=$work/sources.list" -o "Dir::Etc::SourceParts=/dev/null"
        -o "Dir::State::Lists=$work/lists" -o "Dir::Cache=$work/cache" -o "APT::Sandbox::User=root")
    apt-get -qq "${options[@]}" update >>"$work/log" 2>&1 || continue
    # A mirror may list a version that it does not have (no longer, or not yet).
    for version in $(apt-cache "${options[@]}" showsrc suricata | awk '$1 == "Version:" { print $2 }' | sort -urV); do
        (cd "$work" && apt-get -qq "${options[@]}" source --download-only --tar-only "suricata=$version") >>"$work/log" 2>&1 || continue
        mkdir -p "$(dirname "$file")"
        tar -xOf "$work"/suricata_8*.orig.tar.* --wildcards '*/etc/schema.json' >"$file.part" &&
            mv "$file.part" "$file" && exit 0
    done
done
rm -f "$file.part"
cat "$work/log" >&2
echo "fetch-eve-schema: no suite of $mirror has Suricata 8" >&2
exit 1
