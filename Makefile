# Every command that a contributor or newcomer needs; `make help` lists them.
# `make serve` and `make test` install missing packages through scripts/setup.sh.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Homebrew keeps RocksDB outside the compiler's search paths.
ifeq ($(shell uname -s),Darwin)
  ROCKSDB := $(shell brew --prefix rocksdb 2>/dev/null)
  FLAGS := $(if $(ROCKSDB),-Xcc -I$(ROCKSDB)/include -Xlinker -L$(ROCKSDB)/lib)
endif

# On Linux the release binary includes Swift's libraries. It then needs no Swift installation, starts faster and uses an
# eighth less processor time. Toolchains without static libraries link dynamically. Only release builds evaluate this.
STATIC = $(if $(filter Linux,$(shell uname -s)),$(shell \
  libraries=$$(swift -print-target-info 2>/dev/null | sed -n 's/.*"runtimeResourcePath": *"\(.*\)".*/\1/p'); \
  [ -n "$$libraries" ] && [ -d "$${libraries}_static" ] && echo --static-swift-stdlib))
RELEASE = -c release --product hearth $(STATIC)

DATA ?= .hearth
ARGS ?=
SEED ?= 1
SECONDS ?= 60

.PHONY: help serve build test unit clients compatibility example snippet crash differential listeners access realtime-rules serializability \
  replay kills convergence rules rules-emulator fuzz web-sdk system-tests bench bench-firestore bench-realtime bench-large \
  bench-client bench-firestore-client bench-floods lint format clean setup

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## Install the system libraries that are missing (apt or Homebrew)
	@scripts/setup.sh build

serve: build ## Run the server in emulator mode on loopback, with data in .hearth/
	.build/release/hearth serve --emulator --data $(DATA) $(ARGS)

build: setup ## Build the release binary at .build/release/hearth
	swift build $(RELEASE) $(FLAGS)

test: ## Set up, build, run every test, and check docs/compatibility.md against what ran
	@scripts/setup.sh test
	@scripts/test.sh all $(FLAGS)

unit: ## Run the Swift tests only
	@scripts/setup.sh build
	@scripts/test.sh unit $(FLAGS)

clients: ## Run the tests with official clients only
	@scripts/setup.sh test
	@scripts/test.sh clients $(FLAGS)

compatibility: ## Check that each test named in docs/compatibility.md and docs/bugs.md passed in the last run
	@python3 scripts/compatibility.py

example: ## Run the programs in Examples with two clients each against a server and check their events
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@scripts/example.sh

snippet: ## Build the README's Swift program in a new package, run it against a server, and print the times
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@scripts/snippet.sh

crash: ## Simulate N power cuts of server and client: make crash N=200 (with SYNC=off the server must lose data)
	@scripts/setup.sh test
	@swift build --build-tests $(FLAGS)
	@N=$(or $(N),50) scripts/crash.sh

differential: ## N random programs of queries against a naive evaluator: make differential N=100000 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh differential $(or $(N),100000) $(SEED)

listeners: ## N random histories of listeners, with kills, resumes and resets: make listeners N=500 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh listeners $(or $(N),500) $(SEED)

access: ## N random programs on two engines or servers with different denied documents: make access N=500 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh access $(or $(N),500) $(SEED)

realtime-rules: ## N random rules files of the Realtime Database against a naive evaluator: make realtime-rules N=20000 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh realtime-rules $(or $(N),10000) $(SEED)

serializability: ## N times some 2,800 concurrent transactions, checked for anomalies: make serializability N=25 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh serializability $(or $(N),25) $(SEED)

replay: ## N random programs on the Realtime Database against a naive tree: make replay N=1000 SEED=7
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh replay $(or $(N),1000) $(SEED)

kills: ## N kills of the server while clients write, against what it acknowledged: make kills N=100 SEED=7
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh kills $(or $(N),50) $(SEED)

convergence: ## N random programs on clients of the Swift SDK, with kills and restarts from disk: make convergence N=1000 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh convergence $(or $(N),100) $(SEED)

rules: ## N random rules files against a naive evaluator, alone and on an engine; N swaps under load: make rules N=1000 SEED=1
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@FLAGS="$(FLAGS)" scripts/proofs.sh rules $(or $(N),1000) $(SEED)

rules-emulator: ## N random rules files with 300 requests each against Google's Firestore emulator: make rules-emulator N=50 SEED=1
	@scripts/setup.sh test
	@swift build --build-tests $(FLAGS)
	@scripts/rules-emulator.sh $(or $(N),20) $(SEED)

web-sdk: build ## Run the official web SDK and Google's tests of it: make web-sdk SDK=firebase-js-sdk CLOSURE=closure-library
	@scripts/web-sdk.sh "$(SDK)" "$(CLOSURE)"

system-tests: build ## Run Google's system tests of its Python client: make system-tests SDK=python-firestore
	@scripts/setup.sh test
	@scripts/system-tests.sh "$(SDK)"

fuzz: ## Fuzz one parser: make fuzz TARGET=json SECONDS=600
	@scripts/setup.sh build
	@scripts/fuzz.sh "$(TARGET)" "$(SECONDS)"

bench: build ## Print the table of ratios of docs/benchmarks.md (release build, several minutes)
	@FLAGS="$(FLAGS)" scripts/bench.sh $(ARGS)

bench-firestore: build ## Measure a million documents and 100,000 listeners (ten minutes)
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite firestore $(ARGS)

bench-realtime: build ## Measure 18,800 connections and 1 GB of data (15 minutes)
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite realtime $(ARGS)

bench-large: build ## Measure writes to a database of 10 GB (30 GB of disk, 30 minutes)
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite large $(ARGS)

bench-client: build ## Measure the Realtime Database SDK: 100,000 pending writes, and the start with a large cache
	@scripts/bench-client.sh $(ARGS)

bench-firestore-client: build ## Measure the Firestore SDK: snapshots, local events, queued writes, cached queries
	@scripts/bench-firestore-client.sh $(ARGS)

bench-floods: ## Measure the cost of abusive clients for honest ones (release build)
	@scripts/setup.sh test
	@swift build $(RELEASE) $(FLAGS)
	@.venv/bin/python Benchmarks/floods.py $(ARGS)

lint: ## Check the format of Swift files and the language of comments and documents
	@scripts/lint.sh

format: ## Format the Swift files
	@scripts/lint.sh --fix

clean: ## Remove build results; data in .hearth/ stays
	rm -rf .build .venv Benchmarks/.build Benchmarks/Client/.build Benchmarks/FirestoreClient/.build Fuzz/.build
