#!/usr/bin/env bash
# Runs Examples/Reminders, Examples/Books and Examples/SocialBlog with two clients each against a new server, and checks the events of
# each client: with the server down, and over kills and restarts of server and clients.
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
  "$bin/hearth" serve --data "$folder/data" --emulator --firestore-port "${1:-0}" --database-port 0 --auth-port 0 --hub-port 0 \
    >"$folder/server.out" 2>&1 &
  server=$!
  pids+=("$server")
  expect server ready
}
serve
address=$(sed -n 's#^Cloud Firestore listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
echo "server on $address"

# Starts a client that reads from a pipe, which a file descriptor keeps open: start WHO DESCRIPTOR COMMAND...
start() {
  local who=$1 descriptor=$2
  shift 2
  rm -f "$folder/$who.in" "$folder/$who.out"
  mkfifo "$folder/$who.in"
  FIRESTORE_EMULATOR_HOST=$address FIREBASE_DATABASE_EMULATOR_HOST=${database:-} \
    XDG_DATA_HOME=$folder/${data:-$who} "$@" <"$folder/$who.in" >"$folder/$who.out" 2>&1 &
  pids+=($!)
  eval "exec $descriptor>\"$folder/$who.in\""
  expect "$who" "${1##*/}. Type help for the commands."
}
start ann 7 "$bin/Reminders" ann
start bob 8 "$bin/Reminders" bob
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
# After a kill, the server's times begin up to a second ahead of the clock. In this second two of them may be equal, and
# the list would have no fixed order.
sleep 1
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
start ann 7 "$bin/Reminders" ann
ann add buy stamps
expect ann "added buy stamps"
ann list
expect ann "4. [ ] buy stamps"
ann quit
expect ann bye
start ann 7 "$bin/Reminders" ann
ann list
expect ann "4. [ ] buy stamps"
ann add post the letter
expect ann "added post the letter"
sleep 1
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
echo "Reminders: the clients received the expected changes, also those of an offline client that was restarted"

# The books: every document is a Codable value; ratings are transactions of both clients.
start ann 7 "$bin/Books" ann
start bob 8 "$bin/Books" bob
ann watch
bob watch
ann add Emma / Jane Austen / 474
expect ann "added Emma by Jane Austen, 474 pages, english"
expect bob "+ Emma by Jane Austen, 474 pages, english"
bob add Germinal / Émile Zola / 591 / french
expect ann "+ Germinal by Émile Zola, 591 pages, french"
ann rate Emma / 5
expect ann "rated Emma by Jane Austen, 474 pages, english, 5.0 stars"
expect bob "~ Emma by Jane Austen, 474 pages, english, 5.0 stars"
bob rate Emma / 4
expect bob "rated Emma by Jane Austen, 474 pages, english, 4.5 stars"
expect ann "~ Emma by Jane Austen, 474 pages, english, 4.5 stars"
bob long 500
expect bob "1. Germinal by Émile Zola, 591 pages, french"
bob lend Emma / carl
expect ann "~ Emma by Jane Austen, 474 pages, english, 4.5 stars, lent to carl"
ann available
expect ann "1. Germinal by Émile Zola, 591 pages, french"
ann return Emma
expect ann "returned Emma"
ann show emma
expect ann "1. Emma by Jane Austen, 474 pages, english, 4.5 stars"
ann show Ulysses
expect ann "no such book"
ann quit
expect ann bye
bob quit
expect bob bye
echo "Books: documents were decoded, queried and changed as values"

# The blog: stars by transaction, live comments, presence, and a client that is killed while it is offline.
database=$(sed -n 's#^Realtime Database listens on http://\([^ ]*\).*#\1#p' "$folder/server.out")
start ann 7 "$bin/SocialBlog" ann
ann_pid=${pids[-1]}
expect ann "* ann is here"
start bob 8 "$bin/SocialBlog" bob
expect ann "* bob is here"
expect bob "* ann is here"
ann post hello
expect ann "sent: hello"
expect bob "+ ann: hello"
bob star 1
expect ann "~ ann: hello (1 star)"
ann star 1
expect bob "~ ann: hello (2 stars)"
ann read 1
bob comment 1 welcome
expect ann "# bob: welcome"

# A second program on the same cache continues without one.
data=ann start eve 9 "$bin/SocialBlog" eve
expect eve "Another program uses the cache. Unsent posts are lost when this program ends."
expect eve "+ ann: hello (2 stars)"
echo quit >&9
expect eve bye

ann offline
expect bob "* ann left"
# A star waits for the server, but the program does not.
ann star 1
ann post written offline
expect ann "+ ann: written offline"
kill -9 "$ann_pid"
wait "$ann_pid" 2>/dev/null || true
start ann 7 "$bin/SocialBlog" ann --offline
expect ann "+ ann: hello (2 stars)"
expect ann "+ ann: written offline"
if grep -qF "written offline" "$folder/bob.out"; then
  echo "bob received a post before it was sent" >&2
  exit 1
fi
ann online
expect bob "+ ann: written offline"
expect bob "* ann is here"
bob posts
expect bob "2. ann: written offline"
ann quit
expect ann bye
bob quit
expect bob bye
if [ "$(grep -cxF -- "+ ann: written offline" "$folder/bob.out")" != 1 ]; then
  echo "bob received the post twice" >&2
  exit 1
fi
echo "SocialBlog: posts, stars, comments and presence arrived, and a post survived a kill"
echo "example: all clients received the expected changes"
