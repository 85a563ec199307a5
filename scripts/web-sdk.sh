#!/usr/bin/env bash
# Runs the official web SDK against a new server: web-sdk.sh FIREBASE_JS_SDK CLOSURE_LIBRARY. The arguments are checkouts
# of firebase/firebase-js-sdk and google/closure-library, which are not part of this repository. PARTS selects some of:
#   programs  In Node: Cloud Firestore over WebChannel (streaming, long polling, automatic detection) and the Realtime
#             Database, through a proxy that cuts connections (Tests/Clients/Web). Then the web program of
#             docs/production.md against a production server with TLS, if .venv has the Python clients.
#   node      In Node: Google's integration tests of the Firestore SDK, and those of both interfaces of the Realtime Database
#             SDK that use a server.
#   chromium  In headless Chromium, all in one page: Google's integration tests of the Firestore SDK, with a cache in memory,
#             and with caches in memory and in IndexedDB. INDEXEDDB selects: false or true; both by default. GREP is a pattern for the titles of
#             the tests, LIMIT the seconds of one run (3000 by default). Slow tests and failures are printed as they happen;
#             LIST_SKIPPED=1 also prints skipped ones. Chromium is the program that CHROMIUM names; without one this part is
#             skipped.
# These tests are left out: pipelines, because ExecutePipeline belongs to the Enterprise edition; `api_internal/auth`, because it
# connects to the hosted service and not to an emulator. Node has no IndexedDB, so tests of persistence run in Chromium only.
# The suite itself skips ("pending"): tests whose cache is not the one of the run; large documents, which need the Enterprise edition;
# with every emulator, errors for missing indexes, an aggregation over all fields, Bloom filters, and a stream that changes its
# project; and tests that it marks as skipped for all servers.
# With BENCH=1 it runs the measurements of Benchmarks/FirestoreClient with that SDK instead. FIRESTORE_PORT names a running
# server for the tests of the Firestore SDK, such as Google's emulator.
# WRITES is the number of writes of the first part, CUTS the milliseconds between two cuts.
# Needs node 20 and, from Debian's packages, esbuild, mocha, node-chai, node-chai-as-promised, node-faye-websocket,
# node-sinon and, for Chromium, chromium, node-events, node-util, node-path-browserify and node-process.
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
parts=${PARTS:-programs node chromium}
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs} HEARTH_CLOSURE_LOADER=$web/closure.js HEARTH_WEB_SDK=$work/sdk.js

# The SDK's build selects platform files. Here, generated files re-export the browser's files. Tests that run only in Node
# also expect that snapshots become bundles of JSON, which the browser's files do not support.
cp -r "$sdk/packages" "$work/packages"
mkdir -p "$work/config" && echo '{"projectId":"demo-web","databaseURL":"http://localhost"}' >"$work/config/project.json"
for file in "$work"/packages/firestore/src/platform/browser/*.ts; do
  name=$(basename "$file" .ts)
  if [ -e "$work/packages/firestore/src/platform/$name.ts" ]; then
    echo "export * from './browser/$name';" >"$work/packages/firestore/src/platform/$name.ts"
  fi
done

snapshots_like() { # node|browser
  echo "export * from './$1/snapshot_to_json';" >"$work/packages/firestore/src/platform/snapshot_to_json.ts"
}

options=(--bundle --log-level=error
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

bundle() { # FILE OUTPUT [ESBUILD OPTION ...], by default for Node
  local file=$1 output=$2
  shift 2
  [ $# -gt 0 ] || set -- --platform=node --format=cjs --external:chai --external:chai-as-promised --external:sinon
  esbuild "$file" "${options[@]}" "$@" --outfile="$output" --alias:@firebase/auth="$web/absent.js" \
    --external:faye-websocket --external:chai-exclude --external:indexeddbshim
}

# Writes a command that bundles a program with all products of the SDK: build PROGRAM BUNDLE.
printf "export * from '%s';\n" "$work/packages/auth/src" "$work/packages/auth/src/platform_node" >"$work/auth.ts"
{
  echo '#!/usr/bin/env bash'
  declare -p options
  # shellcheck disable=SC2016
  printf 'esbuild "$1" "${options[@]}" --platform=node --format=esm --outfile="$2" --inject:%q' "$web/browser.js"
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
if [ -n "${BENCH:-}" ]; then
  bundle "$web/sdk.js" "$HEARTH_WEB_SDK"
  node Benchmarks/FirestoreClient/web.js "$firestore"
  exit
fi

programs() {
  bundle "$web/sdk.js" "$HEARTH_WEB_SDK"
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
    HEARTH_BIN=$(realpath "$hearth") HEARTH_WEB_BUILD=$work/build \
      .venv/bin/python -m pytest Tests/Clients/test_production_guide.py -q -k official_sdk || failed=1
  fi
}

export FIRESTORE_EMULATOR_PORT=${FIRESTORE_PORT:-$firestore} FIRESTORE_TARGET_BACKEND=emulator
export RTDB_EMULATOR_PORT=$realtime RTDB_EMULATOR_NAMESPACE=demo-web
firestore_tests() { # the files
  for test in "$work"/packages/firestore/test/integration/{api,api_internal,remote,browser}/*.test.ts; do
    case "$test" in *pipeline* | *api_internal/auth*) ;; *) echo "$test" ;; esac
  done
}

run() { # NAME FILE
  bundle "$2" "$work/$1.js"
  timeout 900 mocha --require "$web/setup.js" --timeout 40000 --exit "$work/$1.js" >"$work/$1.log" 2>&1 || {
    failed=1
    sed -n '/ failing/,$p' "$work/$1.log" | grep -vE '^ +at ' | head -60
  }
  echo "$1: $(grep -E '^ +[0-9]+ (passing|pending|failing)' "$work/$1.log" | tr -s ' \n' ' ')"
}

node_tests() {
  export INCLUDE_FIRESTORE_PERSISTENCE=false
  snapshots_like node
  for test in $(firestore_tests); do
    run "$(basename "$(dirname "$test")")-$(basename "$test" .test.ts)" "$test"
  done
  for test in "$work"/packages/database-compat/test/{,browser/}*.test.ts \
    "$work"/packages/database/test/{connection,exp/integration}.test.ts; do
    name=database-$(basename "$test" .test.ts)
    sdk_of_node=${test%%/test/*}/src/index.node
    printf "import '%s';\nimport '%s';\n" "$sdk_of_node" "$test" >"$work/$name.entry.ts"
    run "$name" "$work/$name.entry.ts"
  done
}

chromium_tests() {
  local absent=$web/absent-node.js
  snapshots_like browser
  command -v "${CHROMIUM:-chromium}" >/dev/null || {
    echo "chromium: skipped, because there is no program ${CHROMIUM:-chromium}"
    return
  }
  esbuild "$NODE_PATH/mocha/browser-entry.js" --bundle --platform=browser --outfile="$work/mocha.js" --log-level=error \
    --define:global=globalThis --alias:browser-stdout="$absent" --alias:os="$absent" --alias:tty="$absent" \
    --alias:stream="$absent"
  {
    echo "require('chai').use(require('chai-as-promised'));"
    firestore_tests | sed "s/.*/require('&');/"
  } >"$work/chromium.entry.js"
  bundle "$work/chromium.entry.js" "$work/chromium.js" --platform=browser --format=iife --define:global=globalThis
  for persistence in ${INDEXEDDB:-false true}; do
    INCLUDE_FIRESTORE_PERSISTENCE=$persistence node "$web/chromium.js" "chromium, IndexedDB $persistence" \
      "$work/mocha.js" "$work/chromium.js" || failed=1
  done
}

for part in $parts; do
  case $part in
    programs) programs ;;
    node) node_tests ;;
    chromium) chromium_tests ;;
    *) echo "web-sdk.sh: there is no part '$part'" >&2 && exit 2 ;;
  esac
done
exit $failed
