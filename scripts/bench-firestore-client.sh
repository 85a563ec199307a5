#!/usr/bin/env bash
# Builds the measurements of the Firestore SDK in release mode and runs them against a new server in memory.
# HEARTH_BIN overrides the server's binary. Arguments: --documents 100000, --writes 10000.
# WEB_SDK and CLOSURE_LIBRARY name checkouts of firebase/firebase-js-sdk and google/closure-library: the official SDK is
# measured in Node by the same steps, with its cache in memory, because Node has no IndexedDB (see web-sdk.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
server=${HEARTH_BIN:-$PWD/.build/release/hearth}
(cd Benchmarks/FirestoreClient && swift build -c release)
folder=$(mktemp -d)
"$server" serve --ephemeral --emulator --firestore-port 0 --database-port 0 --hub-port 0 --auth-port 0 >"$folder/server.out" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq 600); do
  grep -qx ready "$folder/server.out" && break
  sleep 0.1
done
address=$(sed -n 's#^Cloud Firestore listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
export XDG_DATA_HOME=$folder
measure=Benchmarks/FirestoreClient/.build/release/FirestoreClientBenchmarks
"$measure" --server "$address" "$@"

# The first query of new processes: with the cache's file in the system's memory, and without.
find "$folder" -path '*cached*' -name '*.sqlite' | sed -E 's/.*cached([0-9]+).*/\1 &/' | sort -n | while read -r count file; do
  for _ in 1 2 3; do "$measure" --first-query "$count" --state 'new process'; done
  for _ in 1 2 3; do
    dd if="$file" iflag=nocache count=0 status=none
    "$measure" --first-query "$count" --state 'new process, file not in memory'
  done
done

[ -z "${WEB_SDK:-}" ] || BENCH=1 HEARTH_BIN=$server scripts/web-sdk.sh "$WEB_SDK" "$CLOSURE_LIBRARY"
