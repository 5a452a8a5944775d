package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// kind is a kind of request, as the table of failures has it.
type faultKind struct {
	name string
	// ask returns the request. Each has a number of its own, by which writes are told from one another.
	ask func(n int) sending
	// ids are the ids of the documents that such a request writes; nil where it writes none.
	ids func(n int) []string
	// index that is written to.
	index string
	// own says that the engine knows no such request.
	own bool
	// counted is the kind as neardup_requests_total has it.
	counted string
	// path of the requests to the engine that are the client's own; any other is a look-up of ours.
	path string

	healthy, through gotten // what comes when nothing is wrong: from the engine, and through us
}

// search reports whether what comes may be collapsed.
func (k *faultKind) search() bool {
	return strings.HasPrefix(k.name, "search") || k.name == "cursor page" || k.name == "scroll page"
}

// asks reports whether a request to the engine with this target may be the client's own.
func (k *faultKind) asks(target string) bool {
	path, _, _ := strings.Cut(k.path, "?")
	return strings.HasPrefix(target, path) || k.search() && strings.HasPrefix(target, "/multi_search") // a search of ours in its place
}

func (k *faultKind) writes() bool { return k.ids != nil }

const (
	faultIndex = "fault-1"  // is searched
	faultNew   = "fault-2"  // is written to
	faultSkip  = "faultd-1" // on_duplicate: skip
	faultBands = "faultq-1"
)

// newBench fills an engine with documents and starts a sidecar in front of it.
func newBench(t *testing.T, e *engines.Engine) *faultBench {
	t.Helper()
	b := &faultBench{e: e, relay: inject.Start(t, e.URL), direct: api{e, e.URL}}
	file := config(t, e, setup{match: "fault-*", urls: []string{b.relay.URL()}, limits: "{fallback_share: 1}"})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, `      - match: "faultd-*"
        fields: [title, body]
        bands: auto
        on_duplicate: skip
      - match: "faultq-*"
        fields: [title, body]
        bands: auto
`...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b.side, b.file = startVictim(t, file, nil), file
	b.fill(t, b.side.base)
	id := documents(t)[3].ID
	if b.direct.typesense() {
		b.kinds = faultKindsTypesense(id)
	} else {
		b.kinds = faultKindsElastic(t, b, id)
	}
	for _, k := range b.kinds {
		k.counted = map[string]string{"pass": "pass", "read": "read", "question": "similar"}[k.name]
		switch {
		case k.writes():
			k.counted = "write"
		case k.search():
			k.counted = "search"
		}
		b.healthy(t, k)
	}
	b.relay.Forget()
	return b
}

// fill makes the indices, with documents, through a sidecar.
func (b *faultBench) fill(t *testing.T, base string) {
	t.Helper()
	through, list := api{b.e, base}, documents(t)[:80]
	for _, index := range []string{faultIndex, faultNew, faultSkip, faultBands} {
		if b.e.PID == 0 { // else it is gone with its engine
			b.direct.drop(t, index)
		}
		path := "/" + index
		if b.direct.typesense() {
			path = "/collections" + path
		}
		call(t, b.e, "DELETE", b.e.URL+path, "") // left behind by a run that was broken off
		through.create(t, index)
		through.load(t, index, list)
	}
}

// healthy asks when nothing is wrong.
func (b *faultBench) healthy(t *testing.T, k *faultKind) {
	t.Helper()
	b.n++
	k.through = attempt(t, b.e, b.side.base, k.ask(b.n), within)
	if k.own {
		k.healthy = k.through
	} else {
		b.n++
		k.healthy = attempt(t, b.e, b.relay.URL(), k.ask(b.n), within)
	}
	for _, g := range []gotten{k.through, k.healthy} {
		if !g.ok() {
			t.Fatalf("%s: %v", k.name, g)
		}
	}
	if k.search() && !strings.HasPrefix(k.through.header.Get("Neardup"), "collapsed") {
		t.Fatalf("%s: %v", k.name, k.through)
	}
}

// lonely is a document that no other is like, of size bytes or some more.
func lonely(id string, size int) string {
	words := make([]string, 0, 16)
	for i := range cap(words) {
		words = append(words, fmt.Sprintf("w%s%d", id, i))
	}
	text := strings.Join(words, " ")
	body, _ := json.Marshal(map[string]string{"id": id, "title": "title of " + id, "body": strings.Repeat(text+" ", size/100+1)})
	return string(body)
}

func idsFrom(n, count int) (ids []string) {
	for i := range count {
		ids = append(ids, fmt.Sprintf("n%dd%d", n, i))
	}
	return ids
}

// bulky returns a kind that writes documents together.
func bulky(name, index, path string, count, size int, line func(id string) string) *faultKind {
	return &faultKind{name: name, index: index, path: path, ids: func(n int) []string { return idsFrom(n, count) }, ask: func(n int) sending {
		var b strings.Builder
		for _, id := range idsFrom(n, count) {
			b.WriteString(line(id) + lonely(id, size) + "\n")
		}
		return sending{"POST", path, b.String(), nil}
	}}
}

func fixed(name string, r sending) *faultKind {
	return &faultKind{name: name, ask: func(int) sending { return r }, path: r.path}
}

func faultKindsElastic(t *testing.T, b *faultBench, id string) []*faultKind {
	t.Helper()
	query := `"size":10,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]`
	first := b.direct.search(t, faultIndex, "the", 0, 10, "")
	var sorts struct {
		Hits struct {
			Hits []struct{ Sort json.RawMessage }
		}
	}
	decode(t, first.reply.body, &sorts)
	after := string(sorts.Hits.Hits[9].Sort)
	action := func(index string) func(id string) string {
		return func(id string) string { return `{"create":{"_index":"` + index + `","_id":"` + id + `"}}` + "\n" }
	}
	kinds := []*faultKind{
		fixed("pass", sending{"POST", "/_analyze", `{"analyzer":"standard","text":"a text of some words"}`, nil}),
		fixed("read", sending{"GET", "/" + faultIndex + "/_doc/" + id, "", nil}),
		{name: "write", index: faultNew, path: "/" + faultNew + "/_doc/", ids: func(n int) []string { return idsFrom(n, 1) },
			ask: func(n int) sending {
				id := idsFrom(n, 1)[0]
				return sending{"PUT", "/" + faultNew + "/_doc/" + id, lonely(id, 200), nil}
			}},
		bulky("bulk", faultNew, "/_bulk", 10, 300, action(faultNew)),
		bulky("long bulk", faultNew, "/_bulk", 40, 30_000, action(faultNew)),
		bulky("bulk with skip", faultSkip, "/_bulk", 10, 300, action(faultSkip)),
		fixed("search", sending{"POST", "/" + faultIndex + "/_search", `{` + query + `}`, nil}),
		fixed("search, compressed", sending{"POST", "/" + faultIndex + "/_search", `{` + query + `}`, []string{"Accept-Encoding", "gzip"}}),
		fixed("search of several", sending{"POST", "/" + faultIndex + "/_msearch", "{}\n{" + query + "}\n{}\n{" + query + "}\n", nil}),
		fixed("cursor page", sending{"POST", "/" + faultIndex + "/_search", `{` + query + `,"search_after":` + after + `}`, nil}),
	}
	question := fixed("question", sending{"GET", "/_neardup/" + faultBands + "/similar/" + id, "", nil})
	question.own, question.path = true, ""
	return append(kinds, question)
}

func faultKindsTypesense(id string) []*faultKind {
	none := func(string) string { return "" }
	search := "q=the&query_by=title,body&per_page=10"
	of := func(index string) string { return "/collections/" + index + "/documents" }
	kinds := []*faultKind{
		fixed("pass", sending{"PUT", "/collections/" + faultIndex + "/synonyms/one", `{"synonyms":["zig","zag"]}`, nil}),
		fixed("read", sending{"GET", of(faultIndex) + "/" + id, "", nil}),
		{name: "write", index: faultNew, path: of(faultNew), ids: func(n int) []string { return idsFrom(n, 1) },
			ask: func(n int) sending {
				return sending{"POST", of(faultNew), lonely(idsFrom(n, 1)[0], 200), nil}
			}},
		bulky("bulk", faultNew, of(faultNew)+"/import?action=create", 10, 300, none),
		bulky("long bulk", faultNew, of(faultNew)+"/import?action=create", 40, 30_000, none),
		bulky("bulk with skip", faultSkip, of(faultSkip)+"/import?action=create", 10, 300, none),
		fixed("search", sending{"GET", of(faultIndex) + "/search?" + search, "", nil}),
		fixed("search, compressed", sending{"GET", of(faultIndex) + "/search?" + search, "", []string{"Accept-Encoding", "gzip"}}),
		fixed("search of several", sending{"POST", "/multi_search", `{"searches":[{"collection":"` + faultIndex + `","q":"the","query_by":"body"},{"collection":"` + faultIndex +
			`","q":"of","query_by":"body"}]}`, nil}),
		fixed("cursor page", sending{"GET", of(faultIndex) + "/search?" + search + "&page=2", "", nil}),
	}
	question := fixed("question", sending{"GET", "/_neardup/" + faultBands + "/similar/" + id, "", nil})
	question.own, question.path = true, ""
	return append(kinds, question)
}
