#!/usr/bin/env bash
# Builds the measurements of the Realtime Database SDK in release mode and runs them against a new server in memory.
# HEARTH_BIN overrides the server's binary. Arguments: --writes 100000, --cache-mb 90, --events 20000,
# or --memory-seconds 600 [--memory-rate 150] for the memory alone.
# WEB_SDK names a checkout of firebase/firebase-js-sdk: its client is measured in Node by the same steps (see web-sdk.sh).
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

[ -n "${WEB_SDK:-}" ] || exit 0
packages=$WEB_SDK/packages
absent=$PWD/Tests/Clients/Web/absent.js
printf "export * as app from '@firebase/app';\nexport * as database from '@firebase/database';\n" >"$folder/entry.js"
esbuild "$folder/entry.js" --bundle --platform=node --format=cjs --outfile="$folder/sdk.js" --log-level=error \
  --alias:@firebase/app="$packages/app/src/index.ts" --alias:@firebase/database="$packages/database/src/index.node.ts" \
  --alias:@firebase/util="$packages/util/index.ts" --alias:@firebase/component="$packages/component/index.ts" \
  --alias:@firebase/logger="$packages/logger/index.ts" --alias:@firebase/auth="$absent" --alias:idb="$absent" \
  --alias:tslib="$absent" --external:faye-websocket
NODE_PATH=${NODE_PATH:-/usr/share/nodejs} HEARTH_WEB_SDK=$folder/sdk.js \
  node Benchmarks/Client/Web/measure.js "$address" "${WEB_WRITES:-100000}" "${WEB_EVENTS:-20000}"
