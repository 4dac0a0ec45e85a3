#!/usr/bin/env bash
# Packs the inputs in a folder; the bytes of the archive depend on them alone: fuzz/pack.sh FOLDER ARCHIVE
set -euo pipefail
archive=$(realpath "$2")
cd "$1"
find . -type f -printf '%P\n' | LC_ALL=C sort |
    tar --create --files-from=- --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 | gzip --best --no-name > "$archive"
