package typesense

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
)

var record = flag.Bool("record", false, "record testdata/fake.txtar anew, from a real engine")

// recordedFile holds requests and the replies of a real engine to them: sections request and reply in turn.
const recordedFile = "testdata/fake.txtar"

// recordedDocuments is the corpus behind them, in the order of its list.
func recordedDocuments() []map[string]any {
	var list []map[string]any
	for i := range 260 {
		d := map[string]any{"id": fmt.Sprint("id", i), "title": familyText(i%9, 0)[:9], "body": "e\u0301é <>&/ \u2028 \"q\" " + fmt.Sprint(i), "n": i}
		if i%3 > 0 {
			d[adapters.SketchField] = "AQgq1Zz+/w=="
		}
		list = append(list, d)
	}
	return list
}

// fakeRequest returns a random request, sound or not, of searches that find every document in its order.
func fakeRequest(r *rand.Rand) *adapters.Request {
	const whole = "q=*&sort_by=n:asc"
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	params := map[string]func() string{
		"page":                  func() string { return pick("1", "2", "3", "7", "60", "300", "0", "x", "-1", "01") },
		"per_page":              func() string { return pick("1", "7", "10", "100", "250", "0", "251", "1e1", "2.5") },
		"include_fields":        func() string { return pick("title", "n,id", " title , n", "nosuch", "neardup_sketch,id", ",") },
		"exclude_fields":        func() string { return pick("title", "n,id", "body , title", "nosuch", "neardup_sketch") },
		"facet_by":              func() string { return "n" },
		"highlight_fields":      func() string { return "none" },
		"highlight_full_fields": func() string { return "title" },
		"x-unknown":             func() string { return "1" },
	}
	var names []string
	for name := range params {
		names = append(names, name)
	}
	// The order of a map is not that of the seed.
	slices.Sort(names)
	if r.IntN(2) == 0 {
		query := whole
		for _, name := range names {
			if r.IntN(3) == 0 {
				query += "&" + name + "=" + strings.ReplaceAll(params[name](), " ", "+")
			}
		}
		return get("/collections/" + pick("NAME", "NAME", "NAME", "NAME", "NAME", "NAME_none") + "/documents/search?" + query)
	}
	if r.IntN(12) == 0 {
		return post("/multi_search?"+whole, pick(`{"searches":[}`, `[]`, `{}`, `{"searches":{}}`, `{"searches":[1]}`, `{"searches":[{"collection":"NAME","per_page":null}]}`,
			`{"searches":[{"collection":"NAME","per_page":{}}]}`, `{"searches":[]}`, `{"searches":[`+strings.Repeat(`{"collection":"NAME","per_page":0},`, 50)+`{}]}`))
	}
	searches := make([]map[string]any, 1+r.IntN(3))
	for i := range searches {
		searches[i] = map[string]any{"collection": pick("NAME", "NAME", "NAME", "NAME", "NAME", "NAME_none")}
		for _, name := range names {
			if r.IntN(3) > 0 {
				continue
			}
			value := params[name]()
			searches[i][name] = value
			if n, err := strconv.Atoi(value); err == nil && r.IntN(2) == 0 {
				searches[i][name] = n
			}
		}
	}
	query := whole
	if r.IntN(4) == 0 {
		query += "&page=" + pick("1", "2") + "&per_page=5"
	}
	body, _ := json.Marshal(map[string]any{"searches": searches})
	return post("/multi_search?"+query, string(body))
}

var (
	facetCounts = regexp.MustCompile(`\{"counts":\[[^\]]*\],("field_name":"n"),"stats":\{[^}]*\}\}`)
	anyTime     = regexp.MustCompile(`"search_time_ms":\d+`)
)

// comparable returns a reply less what the fake leaves out of it.
func comparable(status int, body string) string {
	body = anyTime.ReplaceAllString(facetCounts.ReplaceAllString(body, "{$1}"), `"search_time_ms":3`)
	return fmt.Sprintf("%d\n%s\n", status, body)
}

// realCorpus is the engine with the corpus stored in a collection of the bench.
func realCorpus(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, strings.Replace(articles, `"fields":[`, `"fields":[{"name":"neardup_sketch","type":"string","index":false,"optional":true},`, 1), "body")
	var lines strings.Builder
	for _, d := range recordedDocuments() {
		line, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	if reply := b.must(200)(b.direct("POST", "/collections/NAME/documents/import", lines.String())); strings.Contains(reply, `"success":false`) {
		t.Fatal(reply)
	}
	return b
}

func (b *bench) asReal(r *adapters.Request) string {
	path := r.Path
	if r.RawQuery != "" {
		path += "?" + r.RawQuery
	}
	status, body := b.direct(r.Method, path, string(r.Body))
	return comparable(status, strings.ReplaceAll(body, b.collection, "NAME"))
}

func asFake(r *adapters.Request) string {
	documents := recordedDocuments()
	reply := (&fake{of: func(name string) []map[string]any {
		if name != "NAME" {
			return nil
		}
		return documents
	}}).reply(r)
	return comparable(reply.Status, string(reply.Body))
}

// TestRecord records the replies that the fake is held to:
//
//	go test ./adapters/typesense -run TestRecord -record
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("only with -record")
	}
	b, r := realCorpus(t), rand.New(rand.NewPCG(2, 2))
	a := &txtar.Archive{Comment: []byte("Written by TestRecord, from a real engine.\n")}
	for range 50 {
		request := fakeRequest(r)
		asked := fmt.Sprintf("%s %s?%s\n%s\n", request.Method, request.Path, request.RawQuery, request.Body)
		a.Files = append(a.Files, txtar.File{Name: "request", Data: []byte(asked)}, txtar.File{Name: "reply", Data: []byte(b.asReal(request))})
	}
	if err := os.WriteFile(recordedFile, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFakeIsAsRecorded holds the fake to what the engine answered.
func TestFakeIsAsRecorded(t *testing.T) {
	a, err := txtar.ParseFile(recordedFile)
	if err != nil || len(a.Files) < 100 {
		t.Fatal(len(a.Files), err)
	}
	for i := 0; i < len(a.Files); i += 2 {
		line, body, _ := strings.Cut(string(a.Files[i].Data), "\n")
		method, path, _ := strings.Cut(line, " ")
		r := get(path)
		r.Method, r.Body = method, []byte(strings.TrimSuffix(body, "\n"))
		if diff := cmp.Diff(string(a.Files[i+1].Data), asFake(r)); diff != "" {
			t.Errorf("%s\n%s(-engine +fake):\n%s", line, body, diff)
		}
	}
}

// TestRealFake holds the fake to the engine on searches at random.
func TestRealFake(t *testing.T) {
	b, seed := realCorpus(t), rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	for range effort.Rounds(100) {
		request := fakeRequest(r)
		if diff := cmp.Diff(b.asReal(request), asFake(request)); diff != "" {
			t.Fatalf("%s %s?%s\n%s\n(-engine +fake):\n%s", request.Method, request.Path, request.RawQuery, request.Body, diff)
		}
	}
}
