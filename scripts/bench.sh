#!/usr/bin/env bash
# Builds the measurements in release mode and prints the table of ratios. `make bench` builds the server first.
# Arguments: --suite standard|firestore|realtime|large|all, --rounds 5, --seconds 3, --only TEXT,
# --documents 1000000, --listeners 100000.
set -euo pipefail
cd "$(dirname "$0")/.."
# Each connection is an open file at both ends, and many systems start with a limit of 1,024.
minimum=16384
case "$*" in *realtime* | *"suite all"*) minimum=20000 ;; esac
if [ "$(ulimit -Sn)" != unlimited ] && [ "$(ulimit -Sn)" -lt "$minimum" ] && ! ulimit -Sn "$minimum" 2>/dev/null; then
  echo "bench: needs $minimum open files, and this system allows $(ulimit -Hn): see ulimit -n" >&2
  exit 1
fi
(cd Benchmarks && swift build -c release --product Benchmarks ${FLAGS:-})
Benchmarks/.build/release/Benchmarks --hearth "$PWD/.build/release/hearth" "$@"
