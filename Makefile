# Every command a contributor or newcomer needs. `make help` lists them.
# make serve and make test do all the set-up themselves: scripts/setup.sh says what it installs and why.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Homebrew keeps RocksDB outside the compiler's search paths.
ifeq ($(shell uname -s),Darwin)
  ROCKSDB := $(shell brew --prefix rocksdb 2>/dev/null)
  FLAGS := $(if $(ROCKSDB),-Xcc -I$(ROCKSDB)/include -Xlinker -L$(ROCKSDB)/lib)
endif

# On Linux Swift's own libraries become part of the release binary: it runs where Swift is not installed, starts faster
# and takes an eighth less of the processor, since calls into them need no detour. Where a toolchain comes without the
# static libraries they are linked as everywhere else. Asked of the compiler only by the commands that build the release.
STATIC = $(if $(filter Linux,$(shell uname -s)),$(shell \
  libraries=$$(swift -print-target-info 2>/dev/null | sed -n 's/.*"runtimeResourcePath": *"\(.*\)".*/\1/p'); \
  [ -n "$$libraries" ] && [ -d "$${libraries}_static" ] && echo --static-swift-stdlib))
RELEASE = -c release --product hearth $(STATIC)

DATA ?= .hearth
ARGS ?=
SEED ?= 1
SECONDS ?= 60

.PHONY: help serve build test unit clients compatibility example crash differential listeners serializability replay kills \
  fuzz web-sdk system-tests bench bench-firestore bench-realtime bench-large bench-floods lint format clean setup

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

setup: ## Install the system libraries that are missing (apt or Homebrew)
	@scripts/setup.sh build

serve: build ## Run the server for newcomers: emulator mode, loopback, data kept in .hearth/
	.build/release/hearth serve --emulator --data $(DATA) $(ARGS)

build: setup ## Build the release binary at .build/release/hearth
	swift build $(RELEASE) $(FLAGS)

test: ## Set up, build, run every test, and check docs/compatibility.md against what ran
	@scripts/setup.sh test
	@scripts/test.sh all $(FLAGS)

unit: ## The Swift tests alone
	@scripts/setup.sh build
	@scripts/test.sh unit $(FLAGS)

clients: ## The genuine clients' tests alone
	@scripts/setup.sh test
	@scripts/test.sh clients $(FLAGS)

compatibility: ## Check that each test docs/compatibility.md names exists and passed in the last `make test`
	@python3 scripts/compatibility.py

example: ## Play Examples/Reminders against a server of its own and check what two clients saw
	@scripts/setup.sh build
	@swift build --build-tests $(FLAGS)
	@scripts/example.sh

crash: ## N simulated power cuts: make crash N=200 (SYNC=off shows that the test finds losses)
	@scripts/setup.sh build
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

web-sdk: build ## The genuine web SDK and Google's tests of it: make web-sdk SDK=firebase-js-sdk CLOSURE=closure-library
	@scripts/web-sdk.sh "$(SDK)" "$(CLOSURE)"

system-tests: build ## Google's system tests of its Python client: make system-tests SDK=python-firestore
	@scripts/setup.sh test
	@scripts/system-tests.sh "$(SDK)"

fuzz: ## Fuzz one parser: make fuzz TARGET=json SECONDS=600
	@scripts/setup.sh build
	@scripts/fuzz.sh "$(TARGET)" "$(SECONDS)"

bench: build ## Print the table of ratios of docs/benchmarks.md (release build, several minutes)
	@FLAGS="$(FLAGS)" scripts/bench.sh $(ARGS)

bench-firestore: build ## The rows of Cloud Firestore that take ten minutes: a million documents, 100,000 listeners
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite firestore $(ARGS)

bench-realtime: build ## The rows of the Realtime Database that take a quarter of an hour: 18,800 connections, 1 GB of data
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite realtime $(ARGS)

bench-large: build ## The cost of a write to a database of 10 GB: needs 30 GB of disk, and half an hour
	@FLAGS="$(FLAGS)" scripts/bench.sh --suite large $(ARGS)

bench-floods: ## What clients that misbehave cost those that do not (release build; needs the clients of make test)
	@scripts/setup.sh test
	@swift build $(RELEASE) $(FLAGS)
	@.venv/bin/python Benchmarks/floods.py $(ARGS)

lint: ## swift-format, strict, with the project's configuration
	@scripts/lint.sh

format: ## Rewrite the sources as swift-format wants them
	@scripts/lint.sh --fix

clean: ## Remove what builds made; data in .hearth/ stays
	rm -rf .build .venv Benchmarks/.build Fuzz/.build
