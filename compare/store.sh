#!/bin/bash
# Makes a store of 200 M flow parts over 30 days, and asks it: time, CPU time, and memory of each question, in rounds.
# Needs 8 GB of disk, ten minutes, a release build, and `duckdb` on the PATH or in RINGTAP_DUCKDB. With nfcapd and nfdump, one
# day is sent there, too, and asked the same.
#
#   compare/store.sh FOLDER [ROUNDS]
set -euo pipefail
folder=${1:?folder} rounds=${2:-5}
ringtap=$(realpath "$(dirname "$0")/../target/release/ringtap")
mkdir -p "$folder"
cd "$folder"

traffic() { "$ringtap" generate --profile w2 --packets "$1" --rate 98 --seed 1 -w - 2> generate.log; }
ask() {
    /usr/bin/time -f "$1: %e s, %U s of CPU, %M KB" "${@:2}" 2>&1 > /dev/null | tail -1
}

[ -d month ] || traffic 254M | "$ringtap" monitor -r - --store month --sequential > month.report 2> month.log
if [ ! -d day ]; then
    if command -v nfcapd > /dev/null; then
        mkdir -p nfcapd
        nfcapd -w nfcapd -p 19995 -B 200000000 -t 3600 -P "$PWD/nfcapd.pid" -D
        sleep 1
        traffic 8.47M | "$ringtap" monitor -r - --store day --sequential --export netflow9://127.0.0.1:19995 > day.report 2> day.log
        sleep 3
        kill "$(cat nfcapd.pid)"
        sleep 3
    else
        traffic 8.47M | "$ringtap" monitor -r - --store day --sequential > day.report 2> day.log
    fi
fi

for _ in $(seq "$rounds"); do
    ask "a host's minute" "$ringtap" query month "flows where host 10.43.5.250" --output csv \
        --from 2023-11-20T10:00:00Z --to 2023-11-20T10:01:00Z
    ask "an hour" "$ringtap" query month top hosts --from 2023-11-20T10:00:00Z --to 2023-11-20T11:00:00Z
    ask "a day" "$ringtap" query day top hosts
    [ ! -d nfcapd ] || ask "a day by nfdump" nfdump -R nfcapd -q -s ip/bytes
    ask "a host's 30 days" "$ringtap" query month timeline of 10.43.5.250 every 1d
    ask "30 days" "$ringtap" query month top hosts
done
