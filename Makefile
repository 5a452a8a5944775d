# Two commands for a newcomer: make demo, make test.
GO ?= go
# What the program says of itself. A build holds neither the folder nor the time: equal sources and equal values give equal bytes.
VERSION ?= $(shell git describe --tags --dirty 2>/dev/null)
REVISION ?= $(shell git rev-parse HEAD 2>/dev/null)

.PHONY: demo test check packages engines e2e lane-1 lane-2 lane-3 lane-4 lane-5 first-minute soak chaos fuzz vuln bench bench-parts bench-e2e bench-jobs quality release-check build man clean

# See it work: an embedded engine, a small corpus, one search without and with; nothing is installed.
demo:
	$(GO) run ./cmd/sidecar demo

# Everything: formatting, vet, static analysis, unit, property and contract tests with the race detector, then the built program
# in front of real Elasticsearch, OpenSearch and Typesense servers, which are fetched once and stopped again.
test: check packages engines
	+$(MAKE) --no-print-directory -k -j 3 e2e

check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	NEARDUP_ENGINES=off CI= $(GO) test -race -shuffle=on -short $$($(GO) list ./... | grep -v /internal/e2e)
	GOARCH=386 $(GO) vet ./sketch/... ./rerank ./adapters/...
	cd bench && $(GO) vet ./... && NEARDUP_ENGINES=off CI= $(GO) test ./...

# The binary built twice, deb and rpm (the deb installed into a throw-away root), systemd unit, Dockerfile, compose file, Helm chart and the
# workflows, with tools that are built once from tools/ into the cache: about 2 minutes the first time, then 15 s.
packages:
	NEARDUP_PACKAGES=required $(GO) test -count=1 -timeout 20m ./internal/packages

# What a release needs beside: the binary built with nothing cached, all platforms, GoReleaser's check and a snapshot with SBOMs. About 15 minutes.
release-check:
	NEARDUP_PACKAGES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 90m -v ./internal/packages

# The real engines and the Python clients, into a cache outside the tree.
engines:
	bash internal/engines/prepare.sh

# What starts engines goes in lanes, three of them side by side, each with engines of its own: the tests of the built program in two halves,
# the other packages, and then what mostly waits. More at a time only get into each other's way. sketch takes minutes for its statistics in
# full: check has their short form, soak the long one.
HALF = ^Test[A-L]
ON_ENGINES = elastic|typesense|cmd/sidecar|proxy
e2e: lane-1 lane-2 lane-3 lane-4 lane-5
lane-1:
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 30m -run '$(HALF)' ./internal/e2e
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 15m ./internal/engines
lane-2:
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 30m -skip '$(HALF)' ./internal/e2e
lane-3:
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 15m $$($(GO) list ./... | grep -vE '/(packages|conformance|e2e|engines|sketch|$(ON_ENGINES))$$')
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 30m -p 1 $$($(GO) list ./... | grep -E '/($(ON_ENGINES))$$')
lane-4:
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 25m ./internal/conformance
lane-5:
	cd bench && NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 15m ./e2e

# The long forms of tests: a bulk of a gigabyte in each form, minutes of concurrent writes and backfills, searches at random, the search
# contract over thousands of pages, jobs over a million documents, clusters on Flink, the statistics of sketches. About two hours.
soak:
	$(GO) test -count=1 -timeout 30m ./sketch
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 240m -p 1 -v \
	  -run 'InFlatMemory|RefusedImport|ConcurrentWrites|WritesAtRandom|BesideBackfill|AliasMoves|TestRealSearches|RandomSchedules|ScanOutlasts|TestContract|TestCursor|TestRealPages|TestDuplicatesOfScribblers|TestReindex|TestFlinkClusters|Million|SoakMixed|MemoryUnderLoad|TestFailures|TestNoWriteTwice|TestTLSElasticsearch|TestAttack|TestSigned|TestRealLate' \
	  ./internal/e2e ./adapters/elastic ./adapters/typesense ./jobs/cluster

# From git clone to the first collapsed page of a cluster, as README says it, with nothing built or fetched before.
first-minute:
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -v -run TestFirstMinute ./internal/e2e

# A thousand faults over all three engines while writers and searchers work, and a ledger of what they were told held against what is
# stored: about 25 minutes. NEARDUP_SEED repeats the faults of a run.
chaos:
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 60m -v -run 'TestChaos$$' ./internal/e2e

# Each fuzz target for FUZZTIME.
FUZZTIME ?= 30s
fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$package; \
	  done; done

# Known vulnerabilities of what is linked, by the Go team's database (GOVULNDB names another).
vuln:
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.8.0 ./...

# Text to sketch beside other libraries in one run: about 4 minutes, the first time some more for what is fetched.
bench:
	cd bench && $(GO) run .

# The benchmarks of single parts.
bench-parts:
	$(GO) test -run '^$$' -bench . -benchmem ./sketch/... ./rerank ./adapters/...
	NEARDUP_SOAK=1 $(GO) test -run '^$$' -bench Bands -benchtime 1x -timeout 30m ./jobs/cluster

# The built sidecar beside bare proxies and the engines alone, on real engines, and how its cost grows: half an hour. It writes
# docs/performance.json, from which the tables of docs/performance.md and the curves are made. E2E='-only passed,pages -out /tmp/parts.json' for parts of it, elsewhere.
bench-e2e:
	cd bench && NEARDUP_ENGINES=required $(GO) run ./e2e $(E2E)
	$(GO) test -count=1 -run 'TestPerformance|TestPictures/growth' ./internal/pictures -update

# Reindexing beside the engine's own update by query, and native searches beside those collapsed at query time, on real engines.
bench-jobs:
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 60m -p 1 -v -run 'TestReindexSpeed' -bench BenchmarkNative -benchtime 150x ./internal/e2e

# Precision and recall on labelled sets: make quality PRACTICE=<folder of folders>; without it on the project's own.
quality:
	NEARDUP_PRACTICE="$(PRACTICE)" $(GO) test -count=1 -v -run 'TestQuality|TestPractice' ./internal/quality

build:
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false \
	  -ldflags "-s -w -buildid= -X main.version=$(VERSION) -X main.revision=$(REVISION)" -o bin/sidecar ./cmd/sidecar

# Manual pages into bin/man, shell completions into bin/completions.
man:
	GO=$(GO) bash deploy/packages/stage.sh bin

clean:
	rm -rf bin
