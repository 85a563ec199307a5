#!/usr/bin/env bash
# Builds the measurements of the Firestore SDK in release mode and runs them against a new server in memory.
# HEARTH_BIN overrides the server's binary. Arguments: --documents 100000, --writes 10000.
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
XDG_DATA_HOME=$folder Benchmarks/FirestoreClient/.build/release/FirestoreClientBenchmarks --server "$address" "$@"
