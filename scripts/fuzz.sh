#!/usr/bin/env bash
# Fuzzes one parser for a number of seconds from its committed corpus. Prints the number of inputs in total and per
# second. A failing input stays in Fuzz/findings/TARGET; run it again with
#   HEARTH_FUZZ_TARGET=TARGET Fuzz/.build/release/fuzz FILE
# Usage: scripts/fuzz.sh TARGET [SECONDS]; --merge adds useful inputs to the corpus.
set -euo pipefail
cd "$(dirname "$0")/../Fuzz"
known=$(cd Corpus && printf '%s ' *)
target=${1:-}
seconds=${2:-60}
if [ -z "$target" ] || [ ! -d "Corpus/$target" ]; then
  echo "usage: make fuzz TARGET=… SECONDS=…; TARGET is one of: $known" >&2
  exit 2
fi

swift build -c release --sanitize fuzzer --product fuzz
fuzz=.build/release/fuzz
export HEARTH_FUZZ_TARGET=$target
export SWIFT_BACKTRACE=enable=no # its signal handlers would keep libFuzzer from saving the input
if [ "${3:-}" = "--merge" ]; then
  "$fuzz" -merge=1 "Corpus/$target" ".build/fuzz-work/$target"
  exit
fi

mkdir -p ".build/fuzz-work/$target" "findings/$target"
log=.build/fuzz-work/$target.log
status=0
"$fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
  -print_final_stats=1 -artifact_prefix="findings/$target/" \
  ".build/fuzz-work/$target" "Corpus/$target" >"$log" 2>&1 || status=$?
if [ "$status" -ne 0 ]; then
  tail -n 60 "$log" >&2
  echo "$target: FAILED; the input is in Fuzz/findings/$target" >&2
  exit "$status"
fi
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
echo "$target: $executions executions in $seconds s, $rate a second, no failure"
