#!/usr/bin/env bash
# scripts/summarise.sh DIR: adds up the results of the steps that scripts/test.sh recorded in DIR.
#
# From DIR/STEP.log the script counts "test result:" lines (passed, failed, ignored) and lines that
# start with "SKIPPED" or "NAME: SKIPPED". A test that prints such a line returns at once, and
# libtest counts it as passed; the script counts it as skipped. A step whose DIR/STEP.status is not
# 0 and that has no failed test (a failed build), or with a test program that was killed, has one failure more, with
# its errors, or its last lines. Failed tests are listed with the first lines of their output. The last line is
# `N passed, N failed, N skipped`, also written to DIR/total. The exit status is 1 if a test failed.
set -euo pipefail
logs=$1
passed=0 failed=0 skipped=0 broken=()

printf '\n'
for log in "$logs"/*.log; do
    name=$(basename "$log" .log)
    # shellcheck disable=SC2046
    set -- $(awk '
        /^test result:/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed;?$/) p += $(i - 1)
                if ($i ~ /^failed;?$/) f += $(i - 1)
                if ($i ~ /^ignored;?$/) s += $(i - 1)
            }
        }
        /^([a-z-]+: )?SKIPPED/ { quiet++ }
        END {
            moved = quiet < p ? quiet : p
            print p - moved, f + 0, s + quiet
        }' "$log")
    # A test program that was killed has no result, whatever others have.
    if grep -qaE '^  process .*\(signal: ' "$log" || { [ "$(cat "$logs/$name.status")" != 0 ] && [ "$2" = 0 ]; }; then
        set -- "$1" $(($2 + 1)) "$3"
        broken+=("$log")
    fi
    printf '  %-18s %5d passed, %d failed, %d skipped\n' "$name" "$1" "$2" "$3"
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
done
grep -hE "^([a-z-]+: )?SKIPPED" "$logs"/*.log | sort | uniq -c | sed 's/^ */  /' || true

# Read twice: first the names of failed tests, then the blocks `---- NAME stdout ----` of these.
for log in "$logs"/*.log; do
    awk '
        FNR == NR { if (/^test .* \.\.\. FAILED$/) failed[$2] = 1; next }
        /^---- .* stdout ----$/ {
            left = ($2 in failed) ? 30 : 0
            if (left) print "\nFAILED: " $2
            next
        }
        /^(failures|successes):$/ { left = 0 }
        left-- > 0 && NF { print "    " $0 }' "$log" "$log"
done

for log in ${broken[@]+"${broken[@]}"}; do
    printf '\nFAILED: %s, not by a test\n' "$(basename "$log" .log)"
    # What cargo says of programs that fail or are killed, and the test that each was in.
    { grep -aE '^(error|fatal runtime error)|overflowed its stack|signal: ' "$log" || tail -n 30 "$log"; } |
        tail -n 40 | sed 's/^/    /'
done

verdict=ok
[ "$failed" = 0 ] || verdict=FAILED
printf '\ntest result: %s. %d passed; %d failed; %d ignored\n' "$verdict" "$passed" "$failed" "$skipped"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" | tee "$logs/total"
[ "$failed" = 0 ]
