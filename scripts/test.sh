#!/usr/bin/env bash
# Builds once and runs the tests: `test.sh unit`, `test.sh clients` or `test.sh all`. Further arguments go to `swift build`.
#
# The terminal shows one line for each suite and every failure. Complete logs and JUnit files are in .build/results;
# scripts/compatibility.py reads the latter. Failures are repeated at the end. No test is run a second time.
# On Linux two processes share the Swift tests, and each runs one test at a time: docs/decisions/0006 gives the reason.
set -uo pipefail
cd "$(dirname "$0")/.."
selection=$1
shift
results=.build/results
mkdir -p "$results"

# Clients keep their caches below this folder, and not in the data of the user who runs the tests.
export XDG_DATA_HOME="$PWD/$results/data"
rm -rf "$XDG_DATA_HOME"

# The first process runs these tests and the second all others, so that each test runs exactly once. These tests use
# sockets and take half of the suite's time; the tests that need the processor are in the other half.
socket_tests='^(Ports|FirestoreEndpoints|RealtimeEndpoints|EmulatorSuite)Tests\.'

# Prints the end of each suite, failures with their details, and the summary. The log remains complete.
progress() { grep --line-buffered -aE '^(✔ Suite|✘|[✔✘] Test run with)|↳ |: Fatal error' || true; }

# Runs the tests that an option of Swift Testing selects: `process NAME --filter|--skip`. The bundle is started
# directly, because `swift test` locks .build.
process() {
  NO_COLOR=1 "$PWD/.build/debug/hearthPackageTests.xctest" --testing-library swift-testing --no-parallel \
    "$2" "$socket_tests" --xunit-output "$PWD/$results/swift-$1.xml" 2>&1 \
    | tee "$results/swift-$1.log" | progress
  local code=${PIPESTATUS[0]}
  [ "$code" -le 1 ] || echo "✘ The process of the $1 tests ended with code $code" | tee -a "$results/swift-$1.log"
  return "$code"
}

# Runs every Swift test. Returns 1 if a test failed, and more if a process crashed.
swift_tests() {
  if [ "$(uname -s)" != Linux ]; then
    NO_COLOR=1 swift test --skip-build --no-parallel --xunit-output "$PWD/$results/swift.xml" "$@" 2>&1 \
      | tee "$results/swift.log" | progress
    return "${PIPESTATUS[0]}"
  fi
  local sockets code=0
  process sockets --filter &
  sockets=$!
  # shellcheck disable=SC2064 # expands to the number of this process
  trap "pkill -P $sockets" EXIT
  process other --skip || code=$?
  wait "$sockets" || code=$(($? > code ? $? : code))
  trap - EXIT
  cat "$results"/swift-{sockets,other}.log >"$results/swift.log"
  return "$code"
}

swift build --build-tests "$@" || exit 1
status=0

if [ "$selection" != clients ]; then
  rm -f "$results"/swift*.{xml,log}
  swift_tests "$@" || status=1
fi
if [ "$selection" != unit ]; then
  rm -f "$results/clients.xml"
  HEARTH_BIN="$PWD/.build/debug/hearth" .venv/bin/python -m pytest Tests/Clients -q \
    --junitxml "$results/clients.xml" 2>&1 | tee "$results/clients.log" || status=1
fi
if [ "$selection" = all ]; then
  python3 scripts/compatibility.py || status=1
fi
if [ $status != 0 ]; then
  echo "Failures (complete logs: $results):"
  [ "$selection" = clients ] || grep -aE '^✘|↳ |: Fatal error' "$results/swift.log" | head -60
  [ "$selection" = unit ] || grep -aE '^(FAILED|ERROR|E  )' "$results/clients.log" | head -40
fi
exit $status
