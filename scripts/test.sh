#!/usr/bin/env bash
# Builds once and runs the tests: `test.sh unit`, `test.sh clients` or `test.sh all`; further words go to swift build.
# Results are kept as JUnit files in .build/results, where scripts/compatibility.py reads what ran. What failed is
# told once more at the end, where the last lines of a long log are all that somebody sees. With RERUN=3 a few Swift
# tests that failed are run three times more, each alone, and those that pass are named at the end, too: see
# scripts/rerun.py. On Linux the Swift tests run in two processes at a time, in each one test after the other:
# docs/decisions/0006 says why.
set -uo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
results=.build/results
mkdir -p "$results"

# What the first process runs and the second leaves out, so that each test runs in exactly one of them. These tests are
# half of the suite's time; they go over sockets, and what else uses the processor stays in the other half.
half='^EndpointsTests\.'

# The tests chosen by an option of Swift Testing, `--filter` or `--skip`: `process NAME OPTION`. `swift test` would hold
# the lock on .build. Names of the cases of a test are kept in the log only.
process() {
  NO_COLOR=1 "$PWD/.build/debug/hearthPackageTests.xctest" --testing-library swift-testing --no-parallel \
    "$2" "$half" --xunit-output "$PWD/$results/swift-$1.xml" 2>&1 \
    | tee "$results/swift-$1.log" | { grep --line-buffered -av '^◇ Test case passing' || true; }
  local code=${PIPESTATUS[0]}
  [ "$code" -le 1 ] || echo "✘ The process of the $1 tests ended with code $code" | tee -a "$results/swift-$1.log"
  return "$code"
}

# Every Swift test; what is printed is in swift.log, whole. 1 says that a test failed, more that a process did.
swift_tests() {
  if [ "$(uname -s)" != Linux ]; then
    swift test --skip-build --no-parallel --xunit-output "$PWD/$results/swift.xml" "$@" 2>&1 \
      | tee "$results/swift.log"
    return
  fi
  local endpoints code=0
  process endpoints --filter &
  endpoints=$!
  # shellcheck disable=SC2064 # the number of now
  trap "pkill -P $endpoints" EXIT
  process other --skip || code=$?
  wait "$endpoints" || code=$(($? > code ? $? : code))
  trap - EXIT
  cat "$results"/swift-{endpoints,other}.log >"$results/swift.log"
  return "$code"
}

swift build --build-tests "$@" || exit 1
status=0
rm -f "$results/unsteady.txt"

if [ "$what" != clients ]; then
  rm -f "$results"/swift*.{xml,log}
  swift_tests "$@" || status=$?
  if [ $status = 1 ] && [ "${RERUN:-0}" != 0 ]; then
    python3 scripts/rerun.py "$RERUN" "$@" && status=0
  fi
fi
if [ "$what" != unit ]; then
  rm -f "$results/clients.xml"
  HEARTH_BIN="$PWD/.build/debug/hearth" .venv/bin/python -m pytest Tests/Clients -q \
    --junitxml "$results/clients.xml" 2>&1 | tee "$results/clients.log" || status=1
fi
if [ "$what" = all ]; then
  python3 scripts/compatibility.py || status=1
fi
if [ $status != 0 ]; then
  echo "What failed:"
  [ "$what" = clients ] || grep -aE '^✘|: Fatal error' "$results/swift.log" | head -60
  [ "$what" = unit ] || grep -aE '^(FAILED|ERROR|E  )' "$results/clients.log" | head -40
fi
# They do not fail the run, and are to be mended all the same.
[ -e "$results/unsteady.txt" ] && cat "$results/unsteady.txt"
exit $status
