#!/usr/bin/env bash
# Runs the official web SDK in Node against a new server: web-sdk.sh FIREBASE_JS_SDK CLOSURE_LIBRARY. The arguments are
# checkouts of firebase/firebase-js-sdk and google/closure-library, which are not part of this repository.
#   1. The web program of docs/production.md against a production server with TLS, if .venv has the Python clients.
#   2. Cloud Firestore over WebChannel (streaming, long polling, automatic detection) and the Realtime Database, through a
#      proxy that cuts connections (Tests/Clients/Web).
#   3. Google's integration tests of the Firestore SDK, without pipelines, accounts and JSON bundles (browser only).
#   4. Google's tests of both interfaces of the Realtime Database SDK that use a server.
# With BENCH=1 it runs the measurements of Benchmarks/FirestoreClient with that SDK instead.
# WRITES is the number of writes of the first part, CUTS the milliseconds between two cuts.
# Needs node 20 and, from Debian's packages, esbuild, mocha, node-chai, node-chai-as-promised, node-faye-websocket and
# node-sinon.
set -euo pipefail
cd "$(dirname "$0")/.."
sdk=${1:?the checkout of firebase/firebase-js-sdk}
export CLOSURE_LIBRARY=${2:?the checkout of google/closure-library}
hearth=${HEARTH_BIN:-.build/release/hearth}
writes=${WRITES:-300}
cuts=${CUTS:-2000}
web=$PWD/Tests/Clients/Web
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs} HEARTH_CLOSURE_LOADER=$web/closure.js HEARTH_WEB_SDK=$work/sdk.js

# The SDK's build selects platform files. Here, generated files re-export the browser's.
cp -r "$sdk/packages" "$work/packages"
mkdir -p "$work/config" && echo '{"projectId":"demo-web","databaseURL":"http://localhost"}' >"$work/config/project.json"
for file in "$work"/packages/firestore/src/platform/browser/*.ts; do
  name=$(basename "$file" .ts)
  if [ -e "$work/packages/firestore/src/platform/$name.ts" ]; then
    echo "export * from './browser/$name';" >"$work/packages/firestore/src/platform/$name.ts"
  fi
done

options=(--bundle --platform=node --log-level=error
  --define:process.env.TEST_PLATFORM='"browser"'
  --alias:@firebase/app-compat="$work/packages/app-compat/src/index.ts"
  --alias:@firebase/app="$work/packages/app/src/index.ts"
  --alias:@firebase/firestore="$work/packages/firestore/src/index.ts"
  --alias:@firebase/database="$work/packages/database/src/index.node.ts"
  --alias:@firebase/util="$work/packages/util/index.ts"
  --alias:@firebase/component="$work/packages/component/index.ts"
  --alias:@firebase/logger="$work/packages/logger/index.ts"
  --alias:@firebase/webchannel-wrapper/webchannel-blob="$web/webchannel-blob.js"
  --alias:@firebase/webchannel-wrapper/bloom-blob="$web/bloom-blob.js"
  --alias:idb="$web/absent.js" --alias:tslib="$web/absent.js" --alias:re2js="$web/absent.js")

bundle() {
  esbuild "$1" "${options[@]}" --format=cjs --outfile="$2" --alias:@firebase/auth="$web/absent.js" \
    --external:faye-websocket --external:chai --external:chai-as-promised --external:sinon --external:chai-exclude --external:indexeddbshim
}

# The web program of docs/production.md with all products, against a production server. Its test needs a command that makes
# a bundle: build PROGRAM BUNDLE.
printf "export * from '%s';\n" "$work/packages/auth/src" "$work/packages/auth/src/platform_node" >"$work/auth.ts"
{
  echo '#!/usr/bin/env bash'
  declare -p options
  # shellcheck disable=SC2016
  printf 'esbuild "$1" "${options[@]}" --format=esm --outfile="$2" --inject:%q' "$web/browser.js"
  printf ' --alias:firebase/%s=%q' app "$work/packages/app/src/index.ts" auth "$work/auth.ts" \
    firestore "$work/packages/firestore/src/index.ts" database "$work/packages/database/src/index.node.ts"
  echo " --banner:js='import { createRequire } from \"node:module\"; const require = createRequire(import.meta.url);'"
} >"$work/build"
chmod +x "$work/build"

"$hearth" serve --emulator --ephemeral --firestore-port 0 --database-port 0 --hub-port 0 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 200); do grep -q '^ready' "$work/server.log" && break; sleep 0.1; done
port() { sed -nE "s|^$1 listens on http://[^:]*:([0-9]+).*|\\1|p" "$work/server.log"; }
firestore=$(port 'Cloud Firestore')
realtime=$(port 'Realtime Database')

failed=0
bundle "$web/sdk.js" "$HEARTH_WEB_SDK"
if [ -n "${BENCH:-}" ]; then
  node Benchmarks/FirestoreClient/web.js "$firestore"
  exit
fi
for mode in streaming long auto; do
  timeout 600 node "$web/firestore.js" "$mode" "$firestore" "$writes" "$cuts" 2>"$work/errors" || {
    failed=1
    echo "Firestore, $mode: FAILED"
    tail -5 "$work/errors"
  }
done
timeout 600 node "$web/realtime.js" "$realtime" "$writes" "$cuts" 2>"$work/errors" || {
  failed=1
  echo "Realtime Database: FAILED"
  tail -5 "$work/errors"
}

if [ -x .venv/bin/python ]; then
  HEARTH_BIN=$(realpath "$hearth") HEARTH_WEB_BUILD=$work/build .venv/bin/python -m pytest Tests/Clients/test_production_guide.py -q -k official_sdk || failed=1
fi

browsers_only='created by (a bundle|fromJSON)|toJSON bundle getDocFromCache'
export FIRESTORE_EMULATOR_PORT=$firestore FIRESTORE_TARGET_BACKEND=emulator INCLUDE_FIRESTORE_PERSISTENCE=false
export RTDB_EMULATOR_PORT=$realtime RTDB_EMULATOR_NAMESPACE=demo-web
run() { # NAME FILE [MOCHA OPTION ...]
  local name=$1 file=$2
  shift 2
  bundle "$file" "$work/$name.js"
  timeout 900 mocha --require "$web/setup.js" --timeout 40000 --exit "$@" "$work/$name.js" >"$work/$name.log" 2>&1 || {
    failed=1
    sed -n '/ failing/,$p' "$work/$name.log" | grep -vE '^ +at ' | head -60
  }
  echo "$name: $(grep -E '^ +[0-9]+ (passing|pending|failing)' "$work/$name.log" | tr -s ' \n' ' ')"
}
for test in "$work"/packages/firestore/test/integration/{api,api_internal,remote,browser}/*.test.ts; do
  case "$test" in *pipeline* | *indexeddb* | *index_configuration* | *api_internal/auth*) continue ;; esac
  run "$(basename "$(dirname "$test")")-$(basename "$test" .test.ts)" "$test" --grep "$browsers_only" --invert
done
for test in "$work"/packages/database-compat/test/{,browser/}*.test.ts \
  "$work"/packages/database/test/{connection,exp/integration}.test.ts; do
  name=database-$(basename "$test" .test.ts)
  sdk_of_node=${test%%/test/*}/src/index.node
  printf "import '%s';\nimport '%s';\n" "$sdk_of_node" "$test" >"$work/$name.entry.ts"
  run "$name" "$work/$name.entry.ts"
done
exit $failed
