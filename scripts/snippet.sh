#!/usr/bin/env bash
# Makes a new package of the Swift program in README.md, builds it in debug mode from nothing, runs it against a new server, and prints
# the times. HEARTH_BIN overrides the server's binary .build/debug/hearth. KEEP names a folder for the package.
set -euo pipefail
cd "$(dirname "$0")/.."
server=${HEARTH_BIN:-$PWD/.build/debug/hearth}
folder=$(mktemp -d)
package=${KEEP:-$folder/package}
mkdir -p "$package/Sources/Notes"
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$folder"' EXIT

# The Swift block that contains a text: block TEXT
block() {
  awk -v text="$1" '
    /^```swift$/ { inside = 1; code = ""; next }
    /^```$/ { if (inside && index(code, text)) printf "%s", code; inside = 0; next }
    inside { code = code $0 "\n" }' README.md
}
block "import PackageDescription" | sed "s#\"../hearth\"#\"$PWD\"#; s#package: \"hearth\"#package: \"$(basename "$PWD")\"#" >"$package/Package.swift"
block "@main" >"$package/Sources/Notes/Notes.swift"

(cd "$package" && TIMEFORMAT='first build: %R s, processor time %U s + %S s' && time swift build >"$folder/build.out" 2>&1) || {
  cat "$folder/build.out"
  exit 1
}
"$server" serve --ephemeral --emulator --firestore-port 0 --database-port 9000 --hub-port 0 --auth-port 0 >"$folder/server.out" 2>&1 &
pid=$!
for _ in $(seq 600); do
  if grep -qx ready "$folder/server.out" || ! kill -0 "$pid" 2>/dev/null; then break; fi
  sleep 0.1
done
# The program uses port 9000. If another server has it, the program must not run against that server.
grep -qx ready "$folder/server.out" || {
  cat "$folder/server.out"
  echo "snippet: the server did not start on port 9000" >&2
  exit 1
}
timeout 120 "$package/.build/debug/Notes" | tee "$folder/notes.out"
grep -q 'Snap (first)' "$folder/notes.out" && grep -q Hello "$folder/notes.out"
echo "snippet: the program of README.md built and ran"
