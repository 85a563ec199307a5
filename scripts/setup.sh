#!/usr/bin/env bash
# Installs what the build (`setup.sh build`) or the tests (`setup.sh test`) need beyond Swift, git and make:
# RocksDB, the storage engine; zlib, for requests that come compressed; for the tests also Python with the genuine clients in .venv.
# Says in one line what it installs and why; prints nothing where everything is there.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-build}

command -v swift >/dev/null || {
  echo "setup: Swift is missing. Install Swift 6.2 or newer: https://www.swift.org/install" >&2
  exit 1
}

missing=()
# clang comes with Swift, but need not be in the path where only `swift` was linked into it.
compiler=$(command -v clang || command -v cc || command -v gcc || true)
has_header() {
  if [ -z "$compiler" ]; then [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
  else echo "#include <$1>" | "$compiler" -E -x c - >/dev/null 2>&1; fi
}

case "$(uname -s)" in
Darwin)
  command -v brew >/dev/null || { echo "setup: Homebrew is missing: https://brew.sh" >&2; exit 1; }
  brew --prefix --installed rocksdb >/dev/null 2>&1 || missing+=(rocksdb)
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "setup: installing ${missing[*]} with Homebrew (the storage engine)"
    brew install "${missing[@]}"
  fi
  ;;
Linux)
  has_header rocksdb/c.h || missing+=(librocksdb-dev)
  # Debian's and Ubuntu's librocksdb-dev depends on it; a RocksDB that was built by hand does not bring it.
  has_header zlib.h || missing+=(zlib1g-dev)
  if [ "$purpose" = test ]; then
    if ! command -v python3 >/dev/null; then missing+=(python3 python3-venv)
    elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
  fi
  if [ "${#missing[@]}" -gt 0 ]; then
    command -v apt-get >/dev/null || {
      echo "setup: please install ${missing[*]} (no apt-get here to do it)" >&2
      exit 1
    }
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
      command -v sudo >/dev/null || { echo "setup: please install as root: ${missing[*]}" >&2; exit 1; }
      sudo=sudo
    fi
    echo "setup: installing ${missing[*]} with apt (librocksdb-dev: the storage engine; zlib1g-dev: requests that come compressed; python3: the genuine clients' tests)"
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  ;;
*)
  echo "setup: unsupported system $(uname -s); Linux and macOS are" >&2
  exit 1
  ;;
esac

if [ "$purpose" = test ]; then
  wanted=Tests/Clients/requirements.txt
  # Anew too where the Python that .venv was made with is gone, as after an upgrade of the system or a move.
  if ! cmp -s "$wanted" .venv/requirements.installed || ! .venv/bin/python -c 'import pytest' 2>/dev/null; then
    echo "setup: installing the genuine clients (google-cloud-firestore, firebase-admin, websockets, pytest) into .venv"
    rm -rf .venv
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" .venv/requirements.installed
  fi
fi
