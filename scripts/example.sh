#!/usr/bin/env bash
# Plays Examples/Reminders with two clients against a server of its own, and checks what each saw.
# Needs what `swift build` made; BIN names another build directory than .build/debug.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${BIN:-$PWD/.build/debug}
folder=$(mktemp -d)
pids=()

finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

# Waits until a file holds a line, for at most 30 seconds.
expect() {
  local who=$1 line=$2
  for _ in $(seq 300); do
    if grep -qxF -- "$line" "$folder/$who.out"; then
      echo "  $who saw: $line"
      return
    fi
    sleep 0.1
  done
  echo "$who never saw: $line" >&2
  echo "--- $who" >&2
  cat "$folder/$who.out" >&2
  echo "--- server" >&2
  cat "$folder/server.out" >&2
  exit 1
}

"$bin/hearth" serve --ephemeral --emulator --firestore-port 0 --database-port 0 \
  >"$folder/server.out" 2>&1 &
pids+=($!)
expect server ready
address=$(sed -n 's#^Cloud Firestore listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
echo "server on $address"

# Starts a client whose input is a pipe that stays open on a file descriptor.
start() {
  local who=$1 descriptor=$2
  mkfifo "$folder/$who.in"
  FIRESTORE_EMULATOR_HOST=$address "$bin/Reminders" <"$folder/$who.in" >"$folder/$who.out" 2>&1 &
  pids+=($!)
  eval "exec $descriptor>\"$folder/$who.in\""
  expect "$who" "Reminders. Type help for the commands."
}
start ann 7
start bob 8
ann() { echo "$*" >&7; }
bob() { echo "$*" >&8; }

bob list
expect bob "nothing to do"
ann watch
bob watch
ann add buy milk
expect ann "added buy milk"
expect ann "+ [ ] buy milk"
expect bob "+ [ ] buy milk"
bob add call the bank
expect bob "added call the bank"
expect ann "+ [ ] call the bank"
ann list
expect ann "1. [ ] buy milk"
expect ann "2. [ ] call the bank"
bob done 1
expect bob "done buy milk"
expect ann "~ [x] buy milk"
expect bob "~ [x] buy milk"
ann delete 2
expect ann "deleted call the bank"
expect bob "- [ ] call the bank"
bob list
expect bob "1. [x] buy milk"
bob delete 7
expect bob "there is no number 7"
ann quit
expect ann bye
bob quit
expect bob bye
echo "example: both clients saw what they should"
