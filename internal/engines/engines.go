// Package engines starts real search engines for tests: Elasticsearch, OpenSearch and Typesense, on loopback, with a
// data directory of their own that is gone afterwards. [StartFlink] does the same with an Apache Flink.
//
// [Start] gives a test an engine to itself; [Shared] gives all tests of a package the same one, which spares 5 to 10
// seconds each time; [Acquire] and [Launch] are for programs. All take what they need from the cache that prepare.sh fills.
//
// An engine never outlives the test process, however that ends: each runs under a guard, a small shell process that
// holds one end of a pipe and purges the engine when the other end, held by the test process, is closed.
//
// Environment:
//
//	CI=true, NEARDUP_ENGINES=required  an engine that cannot be had fails the test; missing ones are fetched
//	NEARDUP_ENGINES=off                tests with engines are skipped (unless CI=true)
//	NEARDUP_ELASTICSEARCH_URL, NEARDUP_OPENSEARCH_URL, NEARDUP_TYPESENSE_URL, NEARDUP_TYPESENSE_KEY
//	                                   an engine that runs already is used and left as it is
//	NEARDUP_FLINK_URL                  the same for a SQL gateway, of a Flink on this machine with its REST interface one port above
//
// In any other case a test whose engine cannot be had is skipped, with the reason.
package engines

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The kinds of engine that Start and Shared know.
const (
	Elasticsearch = "elasticsearch"
	OpenSearch    = "opensearch"
	Typesense     = "typesense"
)

// kind is what has to be known of a kind of engine beside the script of its name, of which lib.sh says what it does.
type kind struct {
	name string
	// health is a path that is answered with 200, whoever asks.
	health string
	// companion is how far from the port for clients that for the engine's own talk between nodes is.
	companion int
	// keyed says that it asks for an API key, which its script takes from <KIND>_API_KEY.
	keyed bool
	// heap is how much memory a Java server gets, if not the usual.
	heap string
}

// kinds are all of them. A new one is an entry here and a script.
var kinds = []kind{
	{name: Elasticsearch, health: "/", companion: 100},
	{name: OpenSearch, health: "/", companion: 100},
	{name: Typesense, health: "/health", companion: -1, keyed: true},
}

// Kinds lists their names.
var Kinds = kindNames()

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// kindOf returns the kind with the name, which tests have from [Kinds] or which is Flink's.
func kindOf(name string) kind {
	if name == flinkKind.name {
		return flinkKind
	}
	return kinds[slices.Index(Kinds, name)]
}

// Engine is a running search server. It is safe for concurrent use; tests that share one keep apart by the names of
// their indices.
type Engine struct {
	Kind string
	URL  string // scheme, host and port, without a slash at the end
	Key  string // the API key, for a kind that asks for one
	PID  int    // the server's process, or 0 for one that ran already

	guard *guard // nil for one that ran already
}

// Start returns an engine for t alone, or the one that the environment names, and stops it when t ends if it has started it.
func Start(t testing.TB, kind string) *Engine {
	t.Helper()
	return start(t, kind, acquire)
}

// Own starts an engine for t alone, whatever the environment names, and stops it when t ends.
func Own(t testing.TB, kind string) *Engine {
	t.Helper()
	return start(t, kind, launchAgain)
}

// Acquire is [Start] for a program that is no test: it returns the engine that the environment names, or one that it starts and that
// release stops, or says why there is none.
func Acquire(kind string) (e *Engine, release func() error, err error) {
	return forProgram(kind, acquire)
}

// Launch is [Own] for a program that is no test.
func Launch(kind string) (e *Engine, release func() error, err error) {
	return forProgram(kind, launchAgain)
}

func forProgram(kind string, get func(kind string) (*Engine, error)) (e *Engine, release func() error, err error) {
	if !slices.Contains(Kinds, kind) {
		return nil, nil, fmt.Errorf("engines: unknown kind %q", kind)
	}
	if e, err = get(kind); err != nil {
		return nil, nil, err
	}
	return e, e.stop, nil
}

func start(t testing.TB, kind string, get func(kind string) (*Engine, error)) *Engine {
	t.Helper()
	known(t, kind)
	skipIfOff(t)
	e, err := get(kind)
	if err != nil {
		Unavailable(t, err)
	}
	t.Cleanup(func() {
		if err := e.stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// slot holds the shared engine of one kind, or why there is none, so that it is tried once only.
type slot struct {
	once   sync.Once
	engine *Engine
	err    error
}

var shared = slots()

func slots() map[string]*slot {
	all := map[string]*slot{}
	for _, name := range Kinds {
		all[name] = &slot{}
	}
	return all
}

// Shared returns the engine that all tests of the running test binary share, starting it at the first call. A package
// that calls it has a TestMain that calls [Main].
func Shared(t testing.TB, kind string) *Engine {
	t.Helper()
	known(t, kind)
	skipIfOff(t)
	s := shared[kind]
	s.once.Do(func() { s.engine, s.err = acquire(kind) })
	if s.err != nil {
		Unavailable(t, s.err)
	}
	return s.engine
}

// Main runs the tests of m, stops the shared engines and returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(engines.Main(m)) }
func Main(m *testing.M) int {
	code := m.Run()
	for _, s := range shared {
		s.once.Do(func() {}) // a start that is under way in a leaked goroutine is waited for
		if s.engine == nil {
			continue
		}
		if err := s.engine.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// Required reports whether tests must fail where something they need is missing.
func Required() bool {
	return os.Getenv("CI") == "true" || os.Getenv("NEARDUP_ENGINES") == "required"
}

// Unavailable ends t because of err: it fails where engines are required, else it is skipped.
func Unavailable(t testing.TB, err error) {
	t.Helper()
	if Required() {
		t.Fatal(err)
	}
	t.Skip(err)
}

func known(t testing.TB, kind string) {
	t.Helper()
	if !slices.Contains(Kinds, kind) {
		t.Fatalf("engines: unknown kind %q", kind)
	}
}

func skipIfOff(t testing.TB) {
	t.Helper()
	if os.Getenv("NEARDUP_ENGINES") == "off" && os.Getenv("CI") != "true" {
		t.Skip("engines are switched off by NEARDUP_ENGINES=off")
	}
}

// acquire connects to the engine that the environment names, or starts one.
func acquire(kind string) (*Engine, error) {
	if url := os.Getenv("NEARDUP_" + strings.ToUpper(kind) + "_URL"); url != "" {
		return connect(kind, strings.TrimRight(url, "/"))
	}
	return launchAgain(kind)
}

// launchAgain starts an engine. A clash of ports is rare but real where packages are tested side by side.
func launchAgain(kind string) (*Engine, error) {
	var err error
	for range 4 {
		var e *Engine
		if e, err = launch(kind); !errors.Is(err, errPortTaken) {
			return e, err
		}
	}
	return nil, err
}

// connect checks that an engine answers at url.
func connect(kind, url string) (*Engine, error) {
	k, e := kindOf(kind), &Engine{Kind: kind, URL: url}
	if k.keyed {
		e.Key = os.Getenv("NEARDUP_" + strings.ToUpper(kind) + "_KEY")
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url + k.health)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", kind, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reach %s at %s: %s", kind, url, resp.Status)
	}
	return e, nil
}

func (e *Engine) stop() error {
	if e.guard == nil {
		return nil
	}
	if err := e.guard.release(); err != nil {
		return fmt.Errorf("stop %s (pid %d): %w", e.Kind, e.PID, err)
	}
	return nil
}
