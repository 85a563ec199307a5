#!/usr/bin/env bash
# Builds the measurements of the Realtime Database SDK in release mode and runs them against a new server in memory.
# HEARTH_BIN overrides the server's binary. Arguments: --writes 100000, --cache-mb 90, --events 20000,
# or --memory-seconds 600 for the memory alone.
set -euo pipefail
cd "$(dirname "$0")/.."
server=${HEARTH_BIN:-$PWD/.build/release/hearth}
(cd Benchmarks/Client && swift build -c release)
folder=$(mktemp -d)
"$server" serve --ephemeral --emulator --firestore-port 0 --database-port 0 --hub-port 0 --auth-port 0 >"$folder/server.out" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || true; rm -rf "$folder"' EXIT
for _ in $(seq 600); do
  grep -qx ready "$folder/server.out" && break
  sleep 0.1
done
address=$(sed -n 's#^Realtime Database listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
XDG_DATA_HOME=$folder Benchmarks/Client/.build/release/ClientBenchmarks --server "$address" "$@"
