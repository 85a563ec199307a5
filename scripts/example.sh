#!/usr/bin/env bash
# Runs Examples/Reminders with two clients against a new server and checks the events of each client, with the server
# down and over restarts of server and client.
# Needs the products of `swift build`; BIN overrides the build directory .build/debug.
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

# Waits up to a minute until a file contains a line.
expect() {
  local who=$1 line=$2
  for _ in $(seq 600); do
    if grep -qxF -- "$line" "$folder/$who.out"; then
      echo "  $who received: $line"
      return
    fi
    sleep 0.1
  done
  echo "$who never received: $line" >&2
  echo "--- $who" >&2
  cat "$folder/$who.out" >&2
  echo "--- server" >&2
  cat "$folder/server.out" >&2
  exit 1
}

# Starts the server on the same data; later starts use the same port.
serve() {
  rm -f "$folder/server.out"
  "$bin/hearth" serve --data "$folder/data" --emulator --firestore-port "${1:-0}" --database-port 0 \
    >"$folder/server.out" 2>&1 &
  server=$!
  pids+=("$server")
  expect server ready
}
serve
address=$(sed -n 's#^Cloud Firestore listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
echo "server on $address"

# Starts a client that reads from a pipe, which a file descriptor keeps open.
start() {
  local who=$1 descriptor=$2
  rm -f "$folder/$who.in" "$folder/$who.out"
  mkfifo "$folder/$who.in"
  FIRESTORE_EMULATOR_HOST=$address XDG_DATA_HOME=$folder/caches "$bin/Reminders" "$who" <"$folder/$who.in" >"$folder/$who.out" 2>&1 &
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
expect ann "- [ ] call the bank"
expect bob "- [ ] call the bank"
bob list
expect bob "1. [x] buy milk"

# Kills the server. Changes made meanwhile arrive after its restart, together with the old data.
kill -9 "$server"
wait "$server" 2>/dev/null || true
ann add pay the rent
serve "${address##*:}"
expect ann "added pay the rent"
expect bob "+ [ ] pay the rent"
bob add water the plants
expect ann "+ [ ] water the plants"
bob list
expect bob "2. [ ] pay the rent"
expect bob "3. [ ] water the plants"
bob delete 7
expect bob "there is no number 7"
# Offline first: a client that starts without a server shows its cache and writes to it. After another restart the server
# receives the writes of both runs.
kill -9 "$server"
wait "$server" 2>/dev/null || true
ann quit
expect ann bye
start ann 7
ann add buy stamps
expect ann "added buy stamps"
ann list
expect ann "4. [ ] buy stamps"
ann quit
expect ann bye
start ann 7
ann list
expect ann "4. [ ] buy stamps"
ann add post the letter
expect ann "added post the letter"
serve "${address##*:}"
expect bob "+ [ ] buy stamps"
expect bob "+ [ ] post the letter"
ann quit
expect ann bye
bob quit
expect bob bye

# Bob received exactly these changes in this order, also across the restarts. A writing client may receive a reminder
# twice: first the local write, then the version with the server's time.
changes='+ [ ] buy milk
+ [ ] call the bank
~ [x] buy milk
- [ ] call the bank
+ [ ] pay the rent
+ [ ] water the plants
+ [ ] buy stamps
+ [ ] post the letter'
for who in bob; do
  if ! diff <(echo "$changes") <(grep '^[-+~] \[' "$folder/$who.out" | grep -vF '~ [ ]') >&2; then
    echo "$who received other changes than expected" >&2
    exit 1
  fi
done
echo "example: the clients received the expected changes, also those of an offline client that was restarted"
