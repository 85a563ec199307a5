#!/usr/bin/env bash
# Runs Google's system tests of google-cloud-firestore for Python against Hearth: system-tests.sh PYTHON_FIRESTORE.
# The argument is a checkout of googleapis/python-firestore with tests/system (before it moved in February 2026). Google
# wrote the tests for its own servers; Tests/Clients/System lists the excluded ones with reasons.
set -euo pipefail
cd "$(dirname "$0")/.."
tests=${1:?the checkout of googleapis/python-firestore}/tests/system
hearth=${HEARTH_BIN:-.build/release/hearth}
python=$(realpath -s "${PYTHON:-.venv/bin/python}")
work=$(mktemp -d)
server=
trap '[ -n "$server" ] && kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
"$python" -m pip install -q google-cloud-testutils==1.10.1 pytest-asyncio==1.5.0 mock==5.2.0 PyYAML==6.0.3

"$hearth" serve --emulator --ephemeral --firestore-port 0 --database-port 0 --hub-port 0 >"$work/server.log" 2>&1 &
server=$!
for _ in $(seq 200); do grep -q '^ready' "$work/server.log" && break; sleep 0.1; done
FIRESTORE_EMULATOR_HOST=127.0.0.1:$(sed -nE 's|^Cloud Firestore listens on http://[^:]*:([0-9]+).*|\1|p' "$work/server.log")
export FIRESTORE_EMULATOR_HOST GCLOUD_PROJECT=demo-system

cp "$tests"/test__helpers.py "$tests"/test_system.py "$tests"/test_system_async.py "$work"
cp Tests/Clients/System/conftest_of_system_tests.py "$work/conftest.py"
cd "$work"
"$python" -m pytest -q -rfEs -W ignore --tb=short -p no:cacheprovider --asyncio-mode=auto -o timeout=120 \
  -o asyncio_default_test_loop_scope=session -o asyncio_default_fixture_loop_scope=session
