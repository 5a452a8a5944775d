// Command test is what make test and make test-all run: a list of steps in two lanes, side by side, with one engine of each kind for all steps.
// The engines start while the code compiles. Those of the majors before start when the first step needs them, after the current ones have stopped.
// All stop with this program, however it ends.
//
// A step that fails does not stop the others. The last lines are those of go test, one for each package.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/neardup/sidecar/internal/engines"
)

func main() {
	plans := map[string]func() plan{"check": checkPlan, "main": mainPlan, "all": allPlan}
	if len(os.Args) != 2 || plans[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./tools/test check|main|all")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if !execute(ctx, plans[os.Args[1]]()) {
		os.Exit(1)
	}
}

// plan is what a run does.
type plan struct {
	intro   string
	prepare []string // what prepare.sh fetches
	lanes   [][]step
}

// step is a command of a lane. A go test command is run with -json, so that progress and failures can be shown.
type step struct {
	name    string
	args    []string
	dir     string
	env     []string
	engines *fleet // waits until these answer, and gets their addresses
	silent  bool   // fails if it prints anything
}

// onEngines are the packages whose tests use real engines, each with its own indices.
var onEngines = []string{"./internal/engines", "./adapters/elastic", "./adapters/typesense", "./internal/server"}

// concurrent are the packages with concurrency.
var concurrent = []string{"./proxy", "./jobs/...", "./cmd/sidecar", "./internal/server", "./internal/upstream", "./internal/certs", "./adapters/elastic", "./adapters/typesense"}

// shortForm are the tests of internal/e2e that run on the majors before the current ones as well: the main job, the backfill, the contract,
// the comparison of answers, and what they alone can do.
const shortForm = "^(TestMainJob|TestReindexResumes|TestContract|TestSame|TestWritesAre|TestReadsAre|TestClientSessions|TestTypedPaths|TestDoctor$|TestRemove|TestVerify|TestSetup|TestAcceptOfSearches|TestEngineTimeouts)"

var onOlder = []string{"NEARDUP_OLDER=1"}

var withoutEngines = []string{"NEARDUP_ENGINES=off", "CI="}

// checks are the steps of make check. make test adds its main job.
func checks() []step {
	return []step{
		{name: "gofmt", args: []string{"gofmt", "-l", "."}, silent: true},
		{name: "unit", args: goTest("-short", "-shuffle=on", "-timeout=10m", packagesBut("internal/e2e", "internal/conformance", "internal/packages")), env: withoutEngines},
		{name: "vet", args: []string{"go", "vet", "./..."}},
		{name: "staticcheck", args: append([]string{"go", "tool", "staticcheck"}, strings.Fields(packagesBut("internal/e2e"))...)},
	}
}

func checkPlan() plan {
	return plan{
		intro: "make check: gofmt, vet, staticcheck, all tests that need no engine, in their short form. On two cores: 2 minutes, 4 with nothing compiled yet.",
		lanes: [][]step{checks()},
	}
}

func mainPlan() plan {
	current := &fleet{names: engines.Kinds}
	return plan{
		intro: `make test: gofmt, vet, staticcheck, all unit, property, contract and fuzz-seed tests in their short form, and the main job on real
Elasticsearch, OpenSearch and Typesense of today: documents in through their official clients, collapsed pages out, a reindex killed and resumed, a dead engine.
On two cores: 3 minutes, 5 with nothing compiled yet, 10 with nothing fetched yet. make test-all runs everything else.`,
		prepare: []string{"engines", "python"},
		lanes: [][]step{
			checks(),
			{
				{name: "main job", args: goTest("-run=^TestMainJob", "-timeout=10m", "./internal/e2e"), engines: current},
			},
		},
	}
}

func allPlan() plan {
	current, older := &fleet{names: engines.Kinds}, &fleet{names: engines.Older}
	return plan{
		intro: `make test-all: the long forms of all tests; the race detector where goroutines meet; on real engines everything that is claimed of them; packages,
documentation, examples and clients. On two cores: 25 minutes. It does not run gofmt, vet of the root module or staticcheck: make test does.`,
		prepare: []string{"engines", "older", "python", "javascript", "browser", "flink", "suites"},
		lanes: [][]step{
			{
				{name: "race", args: goTest("-race", "-short", "-timeout=15m", strings.Join(concurrent, " ")), env: withoutEngines},
				{name: "long forms", args: goTest("-timeout=20m", packagesBut("internal/e2e", "internal/conformance", "internal/packages", "internal/engines", "adapters/elastic", "adapters/typesense", "internal/server"))},
				{name: "32 bits", args: []string{"go", "vet", "./sketch/...", "./rerank", "./adapters/..."}, env: []string{"GOARCH=386"}},
				{name: "sketches by vector instructions", args: goTest("./sketch"), env: []string{"GOEXPERIMENT=simd"}},
				{name: "vet of internal/e2e", args: []string{"go", "vet", "-tags=goclient", "./internal/e2e"}},
				{name: "staticcheck of internal/e2e", args: []string{"go", "tool", "staticcheck", "-tags=goclient", "./internal/e2e"}},
				{name: "vet of examples", args: []string{"go", "vet", "./..."}, dir: "examples/search"},
				{name: "packages", args: goTest("-timeout=20m", "./internal/packages"), env: []string{"NEARDUP_PACKAGES=required"}},
				{name: "vet of bench", args: []string{"go", "vet", "./..."}, dir: "bench"},
				// It empties its engines again and again, so these are its own.
				{name: "conformance", args: goTest("-timeout=20m", "./internal/conformance")},
			},
			{
				{name: "engines", args: goTest("-p=1", "-timeout=20m", strings.Join(onEngines, " ")), engines: current},
				{name: "e2e", args: goTest("-tags=goclient", "-timeout=30m", "./internal/e2e"), engines: current},
				{name: "older engines", args: goTest("-short", "-p=1", "-timeout=15m", "./adapters/elastic"), engines: older, env: onOlder},
				{name: "e2e on older engines", args: goTest("-short", "-timeout=15m", "-run="+shortForm, "-skip=/typesense", "./internal/e2e"), engines: older, env: onOlder},
				// It measures, so it comes last, when little else runs, and starts its own engines.
				{name: "bench", args: goTest("-timeout=15m", "./..."), dir: "bench"},
			},
		},
	}
}

// goTest returns a command; an argument may have several words.
func goTest(args ...string) []string {
	return append([]string{"go", "test", "-json", "-vet=off", "-count=1"}, strings.Fields(strings.Join(args, " "))...)
}

// packagesBut lists the packages of the root module but those in the given folders.
func packagesBut(folders ...string) string {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, "go list:", err)
		os.Exit(1)
	}
	var list []string
next:
	for path := range strings.FieldsSeq(string(out)) {
		for _, folder := range folders {
			if strings.HasSuffix(path, "/"+folder) {
				continue next
			}
		}
		list = append(list, path)
	}
	return strings.Join(list, " ")
}

// fleet are engines that the steps of a lane share which follow one another.
type fleet struct {
	names   []string
	started sync.Once
	ready   sync.WaitGroup
	mu      sync.Mutex
	env     []string
	errs    []error
	release []func() error
}

// start begins to start the engines, once.
func (f *fleet) start() {
	f.started.Do(func() {
		for _, name := range f.names {
			f.ready.Go(func() {
				e, release, err := engines.Acquire(name)
				f.mu.Lock()
				defer f.mu.Unlock()
				if err != nil {
					f.errs = append(f.errs, err)
					return
				}
				f.release = append(f.release, release)
				f.env = append(f.env, engines.Variable(name, "URL")+"="+e.URL, engines.Variable(name, "KEY")+"="+e.Key)
			})
		}
	})
}

// await waits until the engines answer and returns the environment that names them.
func (f *fleet) await() ([]string, error) {
	f.start()
	f.ready.Wait()
	return append(f.env, "NEARDUP_ENGINES=required"), errors.Join(f.errs...)
}

// stop stops what has been started.
func (f *fleet) stop() {
	f.started.Do(func() {})
	f.ready.Wait()
	for _, release := range f.release {
		if err := release(); err != nil {
			fmt.Fprintln(os.Stderr, "stop an engine:", err)
		}
	}
	f.release = nil
}
