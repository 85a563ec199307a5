#!/usr/bin/env bash
# Builds the server and the measurements in release mode and prints the table of ratios.
# Arguments go to the measurements: --rounds 5, --seconds 3, --only TEXT.
set -euo pipefail
cd "$(dirname "$0")/.."
swift build -c release --product hearth ${FLAGS:-}
(cd Benchmarks && swift build -c release ${FLAGS:-})
Benchmarks/.build/release/Benchmarks --hearth "$PWD/.build/release/hearth" "$@"
