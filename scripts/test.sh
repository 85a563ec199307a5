#!/usr/bin/env bash
# Builds once and runs the tests: `test.sh unit`, `test.sh clients` or `test.sh all`; further words go to swift build.
# Results are kept as JUnit files in .build/results, where scripts/compatibility.py reads what ran. What failed is
# told once more at the end, where the last lines of a long log are all that somebody sees. With RERUN=3 a few Swift
# tests that failed are run three times more, each alone, and those that pass are named at the end, too: see
# scripts/rerun.py.
set -uo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
results=.build/results
mkdir -p "$results"

swift build --build-tests "$@" || exit 1
status=0
rm -f "$results/unsteady.txt"

if [ "$what" != clients ]; then
  rm -f "$results"/swift*.xml
  if ! swift test --skip-build --no-parallel --xunit-output "$PWD/$results/swift.xml" "$@" 2>&1 \
    | tee "$results/swift.log"; then
    [ "${RERUN:-0}" != 0 ] && python3 scripts/rerun.py "$RERUN" "$@" || status=1
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
