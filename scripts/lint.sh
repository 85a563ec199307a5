#!/usr/bin/env bash
# swift-format over all hand-written sources; --fix rewrites them. Generated code is not ours to format.
set -euo pipefail
cd "$(dirname "$0")/.."
sources() {
  git ls-files -z --cached --others --exclude-standard '*.swift' | grep -zv '/Generated/'
}
if [ "${1:-}" = --fix ]; then
  sources | xargs -0 swift format format --in-place --parallel --configuration .swift-format
else
  sources | xargs -0 swift format lint --strict --parallel --configuration .swift-format
  echo "lint: $(sources | tr -dc '\0' | wc -c | tr -d ' ') files, no findings"
fi
