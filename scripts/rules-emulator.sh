#!/usr/bin/env bash
# Compares the rules of Cloud Firestore with Google's emulator. Usage: rules-emulator.sh N [SEED].
#   N     how many programs, each a rules file with some 300 requests
#   SEED  the first seed
# Ends with a message and code 0 where the emulator of the Google Cloud CLI or Java is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
[ -x "$python" ] || python=python3
"$python" Tests/RulesEmulator/compare.py --programs "${1:-20}" --seed "${2:-1}" --requests 300
