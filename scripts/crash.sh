#!/usr/bin/env bash
# Simulates N power cuts of the store on disk, N of accounts in it and N of the complete server, and N kills and power cuts
# of clients of each SDK, from SEED. With SYNC=off the test of the store must find losses, and fails.
# FAULTS=200 also fails each of the first 200 writes and syncs; FULL=1 fills a disk.
set -uo pipefail
cd "$(dirname "$0")/.."
crash=.build/debug/hearth-crash
[ -x "$crash" ] || { echo "crash.sh: $crash is not built (Linux only): swift build --build-tests"; exit 2; }
status=0
if [ "${SYNC:-on}" = off ]; then
  exec "$crash" cuts "${N:-50}" --seed "${SEED:-1}" --no-sync
fi
"$crash" cuts "${N:-50}" --seed "${SEED:-1}" || status=1
"$crash" accounts "${N:-50}" --seed "${SEED:-1}" || status=1
.venv/bin/python Tests/Clients/power_cuts.py "${N:-50}" --seed "${SEED:-1}" || status=1
"$crash" client "${N:-50}" --seed "${SEED:-1}" || status=1
"$crash" firestore-client "${N:-50}" --seed "${SEED:-1}" || status=1
if [ -n "${FAULTS:-}" ]; then
  "$crash" faults write 1 "$FAULTS" || status=1
  "$crash" faults sync 1 "$FAULTS" || status=1
fi
[ -z "${FULL:-}" ] || "$crash" full || status=1
exit $status
