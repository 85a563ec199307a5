#!/usr/bin/env bash
# Builds the measurements in release mode and prints the table of ratios; `make bench` has built the server before.
# Arguments go to the measurements: --suite standard|firestore|realtime|large|all, --rounds 5, --seconds 3, --only TEXT,
# --documents 1000000, --listeners 100000.
set -euo pipefail
cd "$(dirname "$0")/.."
# Thousands of connections are thousands of open files, on both ends; many systems begin with 1,024.
least=16384
case "$*" in *realtime* | *"suite all"*) least=20000 ;; esac
if [ "$(ulimit -Sn)" != unlimited ] && [ "$(ulimit -Sn)" -lt "$least" ] && ! ulimit -Sn "$least" 2>/dev/null; then
  echo "bench: needs $least open files, and this system allows $(ulimit -Hn): see ulimit -n" >&2
  exit 1
fi
(cd Benchmarks && swift build -c release --product Benchmarks ${FLAGS:-})
Benchmarks/.build/release/Benchmarks --hearth "$PWD/.build/release/hearth" "$@"
