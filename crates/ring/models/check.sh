#!/usr/bin/env bash
# Checks mcring.pml and vernier.pml, models of two rings, in every reachable state: theorems 1 and 2 of the paper and
# that no item is stalled for ever, for several capacities and batches; for MCRingBuffer also each of its two guards
# against a stall alone. The ring as published must stall if a batch does not fit, and planted faults must be found.
# Prints SKIPPED and succeeds if spin or gcc is missing.
set -uo pipefail
cd "$(dirname "$0")"

for tool in spin gcc; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null && continue
    echo "SKIPPED: no $tool here (Debian package $tool): the models of the rings were not checked"
    exit 0
done

models=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# explore MODEL safety|liveness -DNAME…: runs the model; writes the output of spin to $work/log.
explore() {
    local model=$models/$1.pml property=$2
    shift 2
    local verifier=(-DSAFETY -DNOCLAIM) options=()
    [ "$property" = safety ] || { verifier=(-DNFAIR=3) options=(-a -f); set -- "$@" -DLIVE; }
    ( cd "$work" && rm -f pan* ./*.trail &&
        spin -a "$@" "$model" && gcc -O1 -w "${verifier[@]}" -o pan pan.c &&
        ./pan "${options[@]}" -m1000000 -n ) >"$work/log" 2>&1
}

# verdict NAME holds|found PATTERN: `holds` requires a complete search without an error, `found` PATTERN in the log.
verdict() {
    local name=$1 wanted=$2 pattern=${3:-}
    local states
    states=$(awk '/states, stored/ { print $1; exit }' "$work/log")
    if [ "$wanted" = holds ] && grep -q 'errors: 0' "$work/log" &&
        ! grep -Eqi 'max search depth too small|search not completed|out of memory|error:' "$work/log"; then
        printf 'test %s ... ok (%s states, none bad)\n' "$name" "$states"
        passed=$((passed + 1))
    elif [ "$wanted" = found ] && grep -Eq -- "$pattern" "$work/log"; then
        printf 'test %s ... ok (found after %s states: %s)\n' "$name" "$states" \
            "$(grep -Eo -m 1 -- "$pattern" "$work/log")"
        passed=$((passed + 1))
    else
        printf 'test %s ... FAILED\n' "$name"
        sed 's/^/    /' "$work/log"
        failed=$((failed + 1))
    fi
}

# Requested capacity and batch; the last is clamped.
for size in "1 1" "2 1" "3 1" "3 2" "4 2" "5 50"; do
    read -r capacity batch <<<"$size"
    sizes=(-DCAP="$capacity" -DBATCH="$batch")
    explore mcring safety "${sizes[@]}"
    verdict "mcring::theorems_1_and_2::capacity_${capacity}_batch_$batch" holds
    [ "$capacity" -lt 5 ] || continue
    explore mcring liveness "${sizes[@]}"
    verdict "mcring::no_wedge::capacity_${capacity}_batch_$batch" holds
done

# There is no flush, and arrivals are constant, as in the paper: either guard alone is enough.
for capacity in 1 2 3 4; do
    explore mcring liveness -DCAP=$capacity -DBATCH=50 -DCONSTANT -DKEEP
    verdict "mcring::no_wedge_by_the_clamp_alone::capacity_$capacity" holds
    explore mcring liveness -DCAP=$capacity -DBATCH=9 -DCONSTANT -DUNCLAMPED
    verdict "mcring::no_wedge_by_publishing_when_full_or_empty_alone::capacity_$capacity" holds
done

# As published, with constant arrivals: a batch that the ring cannot hold is never complete, so the producer finds the ring
# full and the consumer finds it empty for ever. A batch that just fits completes. With our guards none stalls.
for capacity in 1 2 3; do
    explore mcring liveness -DCAP=$capacity -DBATCH=$((capacity + 1)) -DPUBLISHED
    verdict "mcring::published::stalls::capacity_${capacity}_batch_$((capacity + 1))" found 'acceptance cycle'
    explore mcring liveness -DCAP=$capacity -DBATCH=$capacity -DPUBLISHED
    verdict "mcring::published::no_wedge::capacity_${capacity}_batch_$capacity" holds
    explore mcring liveness -DCAP=$capacity -DBATCH=$((capacity + 1)) -DCONSTANT
    verdict "mcring::no_wedge_by_both_guards::capacity_${capacity}_batch_$((capacity + 1))" holds
done

explore mcring safety -DCAP=3 -DBATCH=2 -DBUG=1
verdict "mcring::planted::publishes_before_it_writes" found 'assertion violated .*'
explore mcring safety -DCAP=3 -DBATCH=2 -DBUG=2
verdict "mcring::planted::full_check_off_by_one" found 'assertion violated .*'
explore mcring liveness -DCAP=3 -DBATCH=9 -DBUG=3
verdict "mcring::planted::neither_guard" found 'acceptance cycle'
explore mcring safety -DCAP=3 -DBATCH=2 -DBUG=4
verdict "mcring::planted::gives_back_before_it_reads" found 'assertion violated .*'

# Capacity, and the most empty polls between two reads of the fine index.
for size in "1 1" "2 1" "2 3" "3 1"; do
    read -r capacity poll_limit <<<"$size"
    sizes=(-DCAP="$capacity" -DPOLL_LIMIT="$poll_limit")
    explore vernier safety "${sizes[@]}"
    verdict "vernier::theorems_1_and_2::capacity_${capacity}_poll_limit_$poll_limit" holds
    [ "$capacity" -lt 3 ] || continue
    explore vernier liveness "${sizes[@]}"
    verdict "vernier::no_wedge_and_no_flush::capacity_${capacity}_poll_limit_$poll_limit" holds
done

planted() {
    explore vernier "$2" -DCAP=2 -DPOLL_LIMIT=1 -DBUG="$1"
    verdict "vernier::planted::$3" found "$4"
}
planted 1 safety publishes_before_it_writes 'assertion violated .*'
planted 2 safety full_check_off_by_one 'assertion violated .*'
planted 3 liveness never_looks_at_the_fine_index 'acceptance cycle'
planted 4 safety gives_back_before_it_reads 'assertion violated .*'
planted 5 safety bursts_leave_the_fine_index_behind 'assertion violated .*'

[ "$failed" = 0 ] && result=ok || result=FAILED
printf '\ntest result: %s. %d passed; %d failed; 0 ignored\n' "$result" "$passed" "$failed"
[ "$failed" = 0 ]
