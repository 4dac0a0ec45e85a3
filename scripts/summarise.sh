#!/usr/bin/env bash
# scripts/summarise.sh DIR: adds up the steps recorded by scripts/test.sh in DIR.
#
# Of DIR/STEP.log it counts "test result:" lines (passed, failed, ignored) and lines that begin with "SKIPPED" or with
# "NAME: SKIPPED". Such a line comes from a test that returned at once, which libtest calls passed: it is moved from
# passed to skipped. A step whose DIR/STEP.status is not 0 and that shows no failed test (it did not build, say) counts
# as one failure. The last line is `N passed, N failed, N skipped`, also left in DIR/total; the exit status is 1 if any
# failed.
set -euo pipefail
logs=$1
passed=0 failed=0 skipped=0

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
    [ "$(cat "$logs/$name.status")" = 0 ] || [ "$2" -gt 0 ] || set -- "$1" 1 "$3"
    printf '  %-18s %5d passed, %d failed, %d skipped\n' "$name" "$1" "$2" "$3"
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
done
grep -hE "^([a-z-]+: )?SKIPPED" "$logs"/*.log | sort | uniq -c | sed 's/^ */  /' || true

verdict=ok
[ "$failed" = 0 ] || verdict=FAILED
printf '\ntest result: %s. %d passed; %d failed; %d ignored\n' "$verdict" "$passed" "$failed" "$skipped"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped" | tee "$logs/total"
[ "$failed" = 0 ]
