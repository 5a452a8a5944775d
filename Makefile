# Two commands for a newcomer: make demo, make test.
GO ?= go

.PHONY: demo test check engines e2e soak fuzz bench bench-parts bench-e2e quality build clean

# See it work: an embedded engine, a small corpus, one search without and with; nothing is installed.
demo:
	$(GO) run ./cmd/sidecar demo

# Everything: formatting, vet, static analysis, unit, property and contract tests with the race detector, then the built program
# in front of real Elasticsearch, OpenSearch and Typesense servers, which are fetched once and stopped again.
test: check engines e2e

check:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "gofmt -w $$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	NEARDUP_ENGINES=off CI= $(GO) test -race -shuffle=on -short $$($(GO) list ./... | grep -v /internal/e2e)
	GOARCH=386 $(GO) vet ./sketch/... ./rerank ./adapters/...
	cd bench && $(GO) vet ./... && $(GO) test ./...

# The real engines and the Python clients, into a cache outside the tree.
engines:
	bash internal/engines/prepare.sh

e2e:
	NEARDUP_ENGINES=required $(GO) test -count=1 -timeout 30m -p 1 ./...

# The long forms of tests: a bulk of a gigabyte in each form, minutes of concurrent writes and backfills, searches at random, the search
# contract over thousands of pages, jobs over a million documents, clusters on Flink. About two hours.
soak:
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 240m -p 1 -v \
	  -run 'InFlatMemory|RefusedImport|ConcurrentWrites|WritesAtRandom|BesideBackfill|AliasMoves|TestRealSearches|RandomSchedules|ScanOutlasts|TestContract|TestCursor|TestRealPages|TestDuplicatesOfScribblers|TestReindex|TestFlinkClusters|Million' \
	  ./internal/e2e ./adapters/elastic ./adapters/typesense ./jobs/cluster

# Each fuzz target for FUZZTIME.
FUZZTIME ?= 30s
fuzz:
	@set -e; for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    echo "$$package $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$package; \
	  done; done

# Text to sketch beside other libraries in one run: about 4 minutes, the first time some more for what is fetched.
bench:
	cd bench && $(GO) run .

# The benchmarks of single parts.
bench-parts:
	$(GO) test -run '^$$' -bench . -benchmem ./sketch/... ./rerank ./adapters/...
	NEARDUP_SOAK=1 $(GO) test -run '^$$' -bench Bands -benchtime 1x -timeout 30m ./jobs/cluster

# Reindexing beside the engine's own update by query, and native searches beside those collapsed at query time, on real engines.
bench-e2e:
	NEARDUP_ENGINES=required NEARDUP_SOAK=1 $(GO) test -count=1 -timeout 60m -p 1 -v -run 'TestReindexSpeed' -bench BenchmarkNative -benchtime 150x ./internal/e2e

# Precision and recall on labelled sets: make quality PRACTICE=<folder of folders>; without it on the project's own.
quality:
	NEARDUP_PRACTICE="$(PRACTICE)" $(GO) test -count=1 -v -run 'TestQuality|TestPractice' ./internal/quality

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/sidecar ./cmd/sidecar

clean:
	rm -rf bin
