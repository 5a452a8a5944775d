package elastic

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

var updating = flag.Bool("update", false, "write what the dialect asks and answers into testdata/exchanges")

// An exchange file holds one search, from the client's request to its answer, with the replies of a real engine:
//
//	-- plan --       what is known of the target, a word or two on a line: lacking, rate 0.5, window 4;
//	                 and of its rule: by n, same n, native
//	-- request --    POST /path?query, then the body
//	-- ask 1 --      what the engine is asked, in the same form
//	-- reply 1 --    the status, then the body, as recorded by TestRecord
//	-- answer --     one line for each search of what was done, an empty line, the body; or an error
//
// A file is replayed whatever engine gave the replies; its name ends with that engine's kind.
type exchange struct {
	path    string
	archive *txtar.Archive
	plan    adapters.Plan
	request *adapters.Request
	replies []*adapters.Reply
}

// pinned is the scheme of the recorded sketches: a new default must not make them incomparable.
var pinned = sketch.Scheme{Family: sketch.FastSimilarity, Words: 4, Positions: 32}

func exchangeRules(t testing.TB) rule.Rules {
	t.Helper()
	sketcher := expect.Value(sketch.New(pinned))(t)
	return rule.Rules{{Match: "news-*", Fields: []string{"title", "body"}, Profile: rerank.Profile{Threshold: 0.6},
		Window: 30, Compute: true, Sketcher: sketcher}}
}

func loadExchanges(t testing.TB) []*exchange {
	t.Helper()
	paths, err := filepath.Glob("testdata/exchanges/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no exchanges found", err)
	}
	var list []*exchange
	for _, path := range paths {
		archive := expect.Value(txtar.ParseFile(path))(t)
		x := &exchange{path: path, archive: archive}
		x.plan = parsePlan(t, x.section("plan"))
		x.request = parseRequest(x.section("request"))
		for {
			status, body, _ := strings.Cut(x.section(fmt.Sprint("reply ", len(x.replies)+1)), "\n")
			if status == "" {
				break
			}
			code := expect.Value(strconv.Atoi(status))(t)
			x.replies = append(x.replies, &adapters.Reply{Status: code, Header: adapters.Header{}, Body: []byte(body)})
		}
		list = append(list, x)
	}
	return list
}

// section returns a section less the line end that the archive's form adds.
func (x *exchange) section(name string) string {
	for _, f := range x.archive.Files {
		if f.Name == name {
			return strings.TrimSuffix(string(f.Data), "\n")
		}
	}
	return ""
}

// rewrite puts the replies, and what the dialect made of them, into the file.
func (x *exchange) rewrite(t testing.TB, asks []string, answer string) {
	t.Helper()
	a := &txtar.Archive{Comment: x.archive.Comment}
	add := func(name, text string) { a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(text + "\n")}) }
	add("plan", x.section("plan"))
	add("request", x.section("request"))
	for i, ask := range asks {
		add(fmt.Sprint("ask ", i+1), ask)
		if i < len(x.replies) {
			add(fmt.Sprint("reply ", i+1), fmt.Sprintf("%d\n%s", x.replies[i].Status, x.replies[i].Body))
		}
	}
	add("answer", answer)
	expect.OK(t, os.WriteFile(x.path, txtar.Format(a), 0o644))
}

func parsePlan(t testing.TB, text string) adapters.Plan {
	t.Helper()
	known, rules := adapters.Scope{Window: 30}, exchangeRules(t)
	for range 100 { // pages that reach as far as those that were recorded
		known.Widening = known.Learn(rerank.Stats{Read: 1, Reach: 12})
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch name {
		case "":
		case "lacking":
			known.Lacking = true
		case "window":
			known.Window, err = strconv.Atoi(value)
		case "rate":
			known.Rate, err = strconv.ParseFloat(value, 64)
		case "by":
			rules[0].Choice = rule.Choice{By: rule.ByField, Field: value}
		case "same":
			rules[0].Together.Same = []string{value}
		case "native":
			rules[0].Native, rules[0].Clusters, known.Native = true, true, rules[0]
		default:
			t.Fatalf("plan: unknown word %q", name)
		}
		expect.OK(t, err)
	}
	behind := adapters.Scope{}
	behind.Add(rules[0])
	known.Chooses, known.Deciding, known.Texts = behind.Chooses, behind.Deciding, behind.Texts
	return adapters.Plan{Rules: rules, MaxWindow: 1000, Scope: func(target string) adapters.Scope {
		scope := known
		scope.Configured = strings.Contains(target, "news-")
		return scope
	}}
}

func parseRequest(text string) *adapters.Request {
	line, body, _ := strings.Cut(text, "\n")
	method, url, _ := strings.Cut(line, " ")
	path, query, _ := strings.Cut(url, "?")
	return &adapters.Request{Method: method, Path: path, RawQuery: query,
		Header: adapters.Header{"Content-Type": {"application/json"}}, Body: []byte(body)}
}

func formatRequest(r *adapters.Request) string {
	url := r.Path
	if r.RawQuery != "" {
		url += "?" + r.RawQuery
	}
	return fmt.Sprintf("%s %s\n%s", r.Method, url, r.Body)
}

// run holds the exchange, with replies from reply, and returns what was asked and answered.
func (x *exchange) run(t testing.TB, reply func(n int, ask *adapters.Request) *adapters.Reply) (asks []string, answer string) {
	t.Helper()
	parsed := Dialect{}.ParseSearch(Dialect{}.Classify(x.request), x.request, x.plan)
	if parsed.Left() {
		t.Fatalf("left alone: %s", parsed.Reason)
	}
	end, err := adaptertest.Run(parsed, func(ask *adapters.Request) *adapters.Reply {
		asks = append(asks, formatRequest(ask))
		if given := reply(len(asks)-1, ask); given != nil {
			return given
		}
		return &adapters.Reply{Status: 599, Body: []byte("a reply lacks")}
	})
	if refused, ok := errors.AsType[*collapse.Refused](err); ok && refused.Reply.Status == 599 {
		return asks, "error: a reply lacks"
	}
	if err != nil {
		return asks, "error: " + err.Error()
	}
	var lines strings.Builder
	for _, o := range end.Outcomes {
		fmt.Fprintf(&lines, "target=%s reason=%s raw=%d read=%d folded=%d without=%d exact=%t limited=%t rounds=%d window=%d%s%s\n",
			o.Target, o.Reason, o.Raw, o.Read, o.Folded, o.Without, o.Exact, o.Limited, o.Rounds, o.Window,
			map[bool]string{true: " dry run"}[o.DryRun], nativeNote(o))
	}
	return asks, lines.String() + "\n" + string(end.Body)
}

// nativeNote says what became of a search that the engine was to collapse.
func nativeNote(o adapters.Outcome) string {
	switch {
	case o.Native:
		return " native"
	case o.Fell != "":
		return " fell=" + string(o.Fell)
	}
	return ""
}

func (x *exchange) recorded(n int, _ *adapters.Request) *adapters.Reply {
	if n < len(x.replies) {
		return x.replies[n]
	}
	return nil
}

func TestExchanges(t *testing.T) {
	for _, x := range loadExchanges(t) {
		t.Run(filepath.Base(x.path), func(t *testing.T) {
			asks, answer := x.run(t, x.recorded)
			if *updating {
				x.rewrite(t, asks, answer)
				return
			}
			expect.Same(t, len(x.replies), len(asks), "how often it asked")
			for i, ask := range asks {
				expect.Same(t, x.section(fmt.Sprint("ask ", i+1)), ask, "ask %d", i+1)
			}
			expect.Same(t, x.section("answer"), answer, "answer")
		})
	}
}
