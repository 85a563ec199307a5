#!/usr/bin/env bash
# The long forms of what `make test` shows of the Realtime Database, with figures:
#   prove.sh replay   N random programs from SEED, against a naive tree in memory; replayed pushes rebuild the state
#   prove.sh kills    N kills of the server while clients write, from SEED, against what it acknowledged
set -uo pipefail
SEED=${SEED:-1}
cd "$(dirname "$0")/.."
case "${1:-}" in
replay)
  export HEARTH_REPLAY_PROGRAMS=${N:-1000} HEARTH_REPLAY_SEED=$SEED
  filter=RealtimeEngineTests.ReplayTests
  ;;
kills)
  export HEARTH_KILLS=${N:-50} HEARTH_KILLS_SEED=$SEED
  filter=EndpointsTests.CrashLoopTests
  ;;
*)
  echo "usage: prove.sh replay|kills" >&2
  exit 2
  ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
began=$SECONDS
if ! swift test --skip-build --no-parallel --filter "$filter" >"$log" 2>&1; then
  grep -aE "✘|error:" "$log" | head -n 40
  echo "$1: FAILED; run again with N=${N:-} SEED=$SEED"
  exit 1
fi
case $1 in
replay)
  programs=$(grep -a '✔ Test "' "$log" | sed -E 's/.* with ([0-9]+) test cases? .*/\1/' | grep -E '^[0-9]+$' | awk '{ n += $1 } END { print n + 0 }')
  echo "replay: $programs programs from seed $SEED, every listen, window, value and hash as the naive tree has it, in $((SECONDS - began)) s"
  ;;
kills) echo "kills: $(grep -a ' kills from seed ' "$log" | tail -n 1), in $((SECONDS - began)) s" ;;
esac
