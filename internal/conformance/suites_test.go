// Package conformance runs the tests that the engines' own projects publish for their REST interfaces, directly and through the
// sidecar: its replies must be the engine's own but for hits that are folded.
//
// The suites are fetched by internal/engines/suites.sh. Each section of a suite runs
//
//  1. at the engine,
//  2. through a sidecar whose rule matches no index: nothing may differ,
//  3. through a sidecar with a rule for every index and threshold 1: documents get sketches, and hits with the same text fold,
//  4. the same, but only what reads documents goes through the sidecar, which finds them without sketches.
//
// What the sections expect of the replies does not count: they are compared with the engine's own. What differs is tried once
// more. What may differ stands in testdata/allowed.txt, each with its reason; each hit left out must have the text of one above
// it. A third of the sections are asked with white space in the replies, and a third compressed.
//
// A section takes most of a second, because each way creates and deletes its indices. So a normal run takes a few sections of each
// endpoint for documents, searches and mappings, others on each engine, and one in four of them in each of the ways 2 and 4. With
// NEARDUP_SOAK=1 all sections run in all ways, and twice at the engine:
//
//	NEARDUP_ENGINES=required NEARDUP_SOAK=1 go test -count=1 -timeout 3h -run TestSuites -v ./internal/conformance
//
// The engines are always its own, for they are wiped after each section. They are the current majors, and with NEARDUP_OLDER=1 those
// before them. The suites are older than either: what an engine refuses is compared like any other reply.
package conformance

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// sections narrows a run down, to look at a finding.
var sections = flag.String("sections", "", "run the sections whose name this matches, and tell what came of each")

func TestMain(m *testing.M) {
	flag.Parse()
	// An engine that runs already is not ours to wipe.
	for _, name := range []string{engines.Elasticsearch, engines.OpenSearch, engines.Elasticsearch8, engines.OpenSearch2} {
		if err := os.Unsetenv(engines.Variable(name, "URL")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := m.Run()
	if built {
		path, _ := binary()
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// program is a suite as it runs on an engine.
type program struct {
	suite  string  // the folder
	compat string  // of the media type, where the engine understands that version of the API
	thin   float64 // how few sections a normal run takes, 0 for none
	few    least   // of a normal run
	all    least   // of a whole run
}

// least is how much must be seen, somewhat below what was measured: a suite that is not read, or not run, is no success.
type least struct {
	sections, hits int // sections that were compared, and folded hits
}

// programs are the suites for each engine.
var programs = map[string][]program{
	engines.Elasticsearch: {
		{"opensearch", "", 4, least{20, 0}, least{300, 40}},
		{"elasticsearch", "7", 10, least{4, 0}, least{85, 5}},
	},
	engines.OpenSearch: {
		{"opensearch", "", 4, least{20, 1}, least{350, 40}},
		{"elasticsearch", "", 0, least{}, least{1, 1}}, // what it has beside the other one is of no use there
	},
}

// TestSuites is the whole of it.
func TestSuites(t *testing.T) {
	if testing.Short() {
		t.Skip("-short")
	}
	list := expect.Value(readAllowed(allowedText))(t)
	for kind, suites := range programs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := engines.Start(t, kind)
			dir := suitesDir(t)
			l := newLab(t, e)
			l.long = os.Getenv("NEARDUP_SOAK") != ""
			ran := map[string]bool{}
			for _, p := range suites {
				if !l.long && p.thin == 0 {
					continue
				}
				if e.Name != engines.Elasticsearch8 { // the last that understands version 7
					p.compat = ""
				}
				s := expect.Value(readSuite(filepath.Join(dir, p.suite, "rest-api-spec"), p.compat))(t)
				l.suite(t, p, s, ran, list)
			}
		})
	}
}

// suitesDir returns the folder of the suites.
func suitesDir(t *testing.T) string {
	t.Helper()
	script := filepath.Join("..", "engines", "suites.sh")
	if !engines.Required() && exec.Command("bash", script, "installed").Run() != nil {
		engines.Unavailable(t, errors.New("the suites are not installed; run internal/engines/suites.sh install"))
	}
	out, err := exec.CommandContext(t.Context(), "bash", script, "install").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		engines.Unavailable(t, fmt.Errorf("fetch the suites: %w", err))
	}
	return strings.TrimSpace(string(out))
}

// suite runs a suite and fails t on any finding that is not allowed. A normal run leaves out sections that an earlier suite had as
// well.
func (l *lab) suite(t *testing.T, p program, s *suite, ran map[string]bool, list allowed) {
	t.Helper()
	few := s.few(max(p.thin, 1), l.kind == engines.OpenSearch, ran)
	chosen := func(se *section) bool { return l.long || few[se] }
	if *sections != "" {
		pattern := regexp.MustCompile(*sections)
		chosen = func(se *section) bool { return pattern.MatchString(se.name()) }
	}
	compared, hits := 0, 0
	for _, se := range s.sections {
		if !chosen(se) {
			continue
		}
		ran[se.name()] = true
		v := expect.Value(l.judge(t.Context(), s, se))(t)
		if hits += v.folded; v.skipped == "" {
			compared++
		}
		for _, f := range list.findings(se, v) {
			t.Errorf("suite %s: %s", p.suite, f)
		}
		if *sections != "" {
			t.Logf("suite %s: %s: %+v", p.suite, se.name(), v)
		}
	}
	t.Logf("suite %s on %s: %d sections compared; %d hits folded", p.suite, l.kind, compared, hits)
	if *sections != "" {
		return
	}
	want := p.few
	if l.long {
		want = p.all
	}
	if compared < want.sections || hits < want.hits {
		t.Errorf("suite %s: %d sections are compared, and %d hits are folded; want at least %+v", p.suite, compared, hits, want)
	}
}
