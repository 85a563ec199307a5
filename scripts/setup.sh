#!/usr/bin/env bash
# Installs the packages that the build (`setup.sh build`) or the tests (`setup.sh test`) need beyond Swift, git and make:
# RocksDB, the storage engine; zlib, for compressed requests; libcrypt and Argon2, for imported passwords; SQLite, for the
# SDKs' cache; for the tests also Python, with the official clients in .venv.
# Prints one line per installation, and nothing if no package is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-build}

command -v swift >/dev/null || {
  echo "setup: Swift is missing. Install Swift 6.2 or newer: https://www.swift.org/install" >&2
  exit 1
}

missing=()
# Swift includes clang, but PATH may contain only `swift`.
compiler=$(command -v clang || command -v cc || command -v gcc || true)
has_header() {
  if [ -z "$compiler" ]; then [ -e "/usr/include/$1" ] || [ -e "/usr/local/include/$1" ]
  else echo "#include <$1>" | "$compiler" -E -x c - >/dev/null 2>&1; fi
}

case "$(uname -s)" in
Darwin)
  command -v brew >/dev/null || { echo "setup: Homebrew is missing: https://brew.sh" >&2; exit 1; }
  brew --prefix --installed rocksdb >/dev/null 2>&1 || missing+=(rocksdb)
  brew --prefix --installed argon2 >/dev/null 2>&1 || missing+=(argon2)
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "setup: installing ${missing[*]} with Homebrew (rocksdb: the storage engine; argon2: imported passwords)"
    brew install "${missing[@]}"
  fi
  ;;
Linux)
  has_header rocksdb/c.h || missing+=(librocksdb-dev)
  # librocksdb-dev of Debian and Ubuntu depends on zlib; a RocksDB built from source does not install it.
  has_header zlib.h || missing+=(zlib1g-dev)
  # Imported password hashes: bcrypt and Argon2.
  has_header crypt.h || missing+=(libcrypt-dev)
  has_header argon2.h || missing+=(libargon2-dev)
  # The cache of the client SDKs.
  has_header sqlite3.h || missing+=(libsqlite3-dev)
  if [ "$purpose" = test ]; then
    if ! command -v python3 >/dev/null; then missing+=(python3 python3-venv)
    elif ! python3 -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
  fi
  if [ "${#missing[@]}" -gt 0 ]; then
    command -v apt-get >/dev/null || {
      echo "setup: please install ${missing[*]} (apt-get is missing)" >&2
      exit 1
    }
    sudo=""
    if [ "$(id -u)" -ne 0 ]; then
      command -v sudo >/dev/null || { echo "setup: please install as root: ${missing[*]}" >&2; exit 1; }
      sudo=sudo
    fi
    echo "setup: installing ${missing[*]} with apt (librocksdb-dev: the storage engine; zlib1g-dev: compressed requests; libcrypt-dev, libargon2-dev: imported passwords; libsqlite3-dev: the SDKs' cache; python3: the tests with official clients)"
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  ;;
*)
  echo "setup: unsupported system $(uname -s); use Linux or macOS" >&2
  exit 1
  ;;
esac

if [ "$purpose" = test ]; then
  wanted=Tests/Clients/requirements.txt
  # Also reinstalls if the Python of .venv no longer exists, for instance after a system upgrade.
  if ! cmp -s "$wanted" .venv/requirements.installed || ! .venv/bin/python -c 'import pytest' 2>/dev/null; then
    echo "setup: installing the official clients (google-cloud-firestore, firebase-admin, websockets, pytest) into .venv"
    rm -rf .venv
    python3 -m venv .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" .venv/requirements.installed
  fi
fi
