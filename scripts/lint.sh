#!/usr/bin/env bash
# Checks all hand-written Swift files with swift-format, and the language of comments and documents with prose.py.
# `--fix` formats the files instead.
set -euo pipefail
cd "$(dirname "$0")/.."
sources() {
  git ls-files -z --cached --others --exclude-standard '*.swift' | grep -zv '/Generated/'
}
if [ "${1:-}" = --fix ]; then
  sources | xargs -0 swift format format --in-place --parallel --configuration .swift-format
else
  sources | xargs -0 swift format lint --strict --parallel --configuration .swift-format
  python3 scripts/prose.py
  echo "lint: $(sources | tr -dc '\0' | wc -c | tr -d ' ') files, no findings"
fi
