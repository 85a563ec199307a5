#!/usr/bin/env bash
# Builds once and runs the tests: `test.sh unit`, `test.sh clients` or `test.sh all`; further words go to swift build.
# Results are kept as JUnit files in .build/results, where scripts/compatibility.py reads what ran.
set -uo pipefail
cd "$(dirname "$0")/.."
what=$1
shift
results=.build/results
mkdir -p "$results"

swift build --build-tests "$@" || exit 1
status=0

if [ "$what" != clients ]; then
  rm -f "$results"/swift*.xml
  swift test --skip-build --no-parallel --xunit-output "$PWD/$results/swift.xml" "$@" || status=1
fi
if [ "$what" != unit ]; then
  rm -f "$results/clients.xml"
  HEARTH_BIN="$PWD/.build/debug/hearth" .venv/bin/python -m pytest Tests/Clients -q \
    --junitxml "$results/clients.xml" || status=1
fi
if [ "$what" = all ]; then
  python3 scripts/compatibility.py || status=1
fi
exit $status
