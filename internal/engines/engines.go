// Package engines starts real search engines for tests: Elasticsearch, OpenSearch and Typesense, on loopback, with a
// data directory of their own that is gone afterwards. [StartFlink] does the same with an Apache Flink.
//
// Of Elasticsearch and OpenSearch there are several versions, each an engine with a name. The bare names mean the current
// majors. With NEARDUP_OLDER=1 they mean the majors before them, so that any test can run on those.
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
//	NEARDUP_<NAME>_URL, NEARDUP_TYPESENSE_KEY
//	                                   an engine that runs already is used and left as it is: NEARDUP_OPENSEARCH2_URL
//	NEARDUP_OLDER=1                    Elasticsearch and OpenSearch mean Elasticsearch8 and OpenSearch2
//	NEARDUP_FLINK_URL                  the same for a SQL gateway, of a Flink on this machine with its REST interface one port above
//
// In any other case a test whose engine cannot be had is skipped, with the reason.
package engines

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// The names of the engines that Start and Shared know. The first three are also the kinds of engine, as the sidecar's
// configuration calls them.
const (
	Elasticsearch  = "elasticsearch"
	OpenSearch     = "opensearch"
	Typesense      = "typesense"
	Elasticsearch8 = "elasticsearch8"
	OpenSearch2    = "opensearch2"
	// OpenSearchVectors is the current one with the plugins for nearest neighbours and hybrid queries.
	OpenSearchVectors = "opensearchvectors"
)

// spec is what has to be known of an engine beside the script of its kind, of which lib.sh says what it does.
type spec struct {
	name, kind string
	// version is one of those that the script knows, or empty where it knows one only.
	version string
	// older names the engine that NEARDUP_OLDER=1 puts in its place.
	older string
	// health is a path that is answered with 200, whoever asks.
	health string
	// companion is how far from the port for clients that for the engine's own talk between nodes is.
	companion int
	// keyed says that it asks for an API key, which its script takes from <KIND>_API_KEY.
	keyed bool
	// heap is how much memory a Java server gets, if not the usual.
	heap string
	// vectors says that it can search for nearest neighbours.
	vectors bool
}

// specs are all of them. A new version is an entry here and a line in its script, a new kind is an entry and a script.
var specs = []spec{
	{name: Elasticsearch, kind: Elasticsearch, version: "9.4.3", older: Elasticsearch8, health: "/", companion: 100, vectors: true},
	{name: OpenSearch, kind: OpenSearch, version: "3.6.0", older: OpenSearch2, health: "/", companion: 100},
	{name: Typesense, kind: Typesense, health: "/health", companion: -1, keyed: true, vectors: true},
	{name: Elasticsearch8, kind: Elasticsearch, version: "8.19.13", health: "/", companion: 100, vectors: true},
	{name: OpenSearch2, kind: OpenSearch, version: "2.19.1", health: "/", companion: 100, vectors: true},
	{name: OpenSearchVectors, kind: OpenSearch, version: "3.6.0-vectors", older: OpenSearch2, health: "/", companion: 100, heap: "512m", vectors: true},
	flinkSpec,
}

// Kinds lists the kinds of engine, each of which is also the name of its current major.
var Kinds = kinds()

// Older lists the engines that NEARDUP_OLDER=1 puts in place of their current majors.
var Older = []string{Elasticsearch8, OpenSearch2}

func kinds() (names []string) {
	for _, s := range specs {
		if s.name == s.kind && s.name != flinkSpec.name {
			names = append(names, s.name)
		}
	}
	return names
}

// specOf returns the engine that a name means here.
func specOf(name string) (spec, error) {
	for _, s := range specs {
		switch {
		case s.name != name:
		case s.older != "" && os.Getenv("NEARDUP_OLDER") != "":
			return specOf(s.older)
		default:
			return s, nil
		}
	}
	return spec{}, fmt.Errorf("engines: unknown engine %q", name)
}

// Engine is a running search server. It is safe for concurrent use; tests that share one keep apart by the names of
// their indices.
type Engine struct {
	Name string // such as opensearch2
	Kind string // such as opensearch, as the sidecar's configuration calls it
	URL  string // scheme, host and port, without a slash at the end
	Key  string // the API key, for a kind that asks for one
	PID  int    // the server's process, or 0 for one that ran already

	guard *guard // nil for one that ran already
}

// Start returns an engine for t alone, or the one that the environment names, and stops it when t ends if it has started it.
func Start(t testing.TB, name string) *Engine {
	t.Helper()
	return start(t, name, acquire)
}

// Own starts an engine for t alone, whatever the environment names, and stops it when t ends.
func Own(t testing.TB, name string) *Engine {
	t.Helper()
	return start(t, name, launchAgain)
}

// Acquire is [Start] for a program that is no test: it returns the engine that the environment names, or one that it starts and that
// release stops, or says why there is none.
func Acquire(name string) (e *Engine, release func() error, err error) {
	return forProgram(name, acquire)
}

// Launch is [Own] for a program that is no test.
func Launch(name string) (e *Engine, release func() error, err error) {
	return forProgram(name, launchAgain)
}

func forProgram(name string, get func(spec) (*Engine, error)) (e *Engine, release func() error, err error) {
	s, err := specOf(name)
	if err != nil {
		return nil, nil, err
	}
	if e, err = get(s); err != nil {
		return nil, nil, err
	}
	return e, e.stop, nil
}

func start(t testing.TB, name string, get func(spec) (*Engine, error)) *Engine {
	t.Helper()
	s := known(t, name)
	skipIfOff(t)
	e, err := get(s)
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

// slot holds a shared engine, or why there is none, so that it is tried once only.
type slot struct {
	once   sync.Once
	engine *Engine
	err    error
}

var shared = slots()

func slots() map[string]*slot {
	all := map[string]*slot{}
	for _, s := range specs {
		all[s.name] = &slot{}
	}
	return all
}

// Shared returns the engine that all tests of the running test binary share, starting it at the first call. A package
// that calls it has a TestMain that calls [Main].
func Shared(t testing.TB, name string) *Engine {
	t.Helper()
	which := known(t, name)
	skipIfOff(t)
	s := shared[which.name]
	s.once.Do(func() { s.engine, s.err = acquire(which) })
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

func known(t testing.TB, name string) spec {
	t.Helper()
	s, err := specOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func skipIfOff(t testing.TB) {
	t.Helper()
	if os.Getenv("NEARDUP_ENGINES") == "off" && os.Getenv("CI") != "true" {
		t.Skip("engines are switched off by NEARDUP_ENGINES=off")
	}
}

// acquire connects to the engine that the environment names, or starts one.
func acquire(s spec) (*Engine, error) {
	if url := os.Getenv(Variable(s.name, "URL")); url != "" {
		return connect(s, strings.TrimRight(url, "/"))
	}
	return launchAgain(s)
}

// Variable returns the environment variable that says this of the engine.
func Variable(name, what string) string { return "NEARDUP_" + strings.ToUpper(name) + "_" + what }

// launchAgain starts an engine. A clash of ports is rare but real where packages are tested side by side.
func launchAgain(s spec) (*Engine, error) {
	var err error
	for range 4 {
		var e *Engine
		if e, err = launch(s); !errors.Is(err, errPortTaken) {
			return e, err
		}
	}
	return nil, err
}

// connect checks that an engine answers at url.
func connect(s spec, url string) (*Engine, error) {
	e := &Engine{Name: s.name, Kind: s.kind, URL: url}
	if s.keyed {
		e.Key = os.Getenv(Variable(s.name, "KEY"))
	}
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get(url + s.health)
	if err != nil {
		return nil, fmt.Errorf("reach %s: %w", s.name, err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reach %s at %s: %s", s.name, url, resp.Status)
	}
	return e, nil
}

// Vectors reports whether the engine can search for nearest neighbours. OpenSearch can with a plugin.
func (e *Engine) Vectors() bool {
	s, err := specOf(e.Name)
	return err == nil && s.vectors
}

func (e *Engine) stop() error {
	if e.guard == nil {
		return nil
	}
	if err := e.guard.release(); err != nil {
		return fmt.Errorf("stop %s (pid %d): %w", e.Name, e.PID, err)
	}
	return nil
}
