package typesense

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
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
			d[rule.SketchField] = "AQgq1Zz+/w=="
		}
		list = append(list, d)
	}
	return list
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
	b.put(recordedDocuments())
	return b
}

// recordings calls held with each recorded request, the reply to it, and where the reply is kept.
func recordings(t *testing.T, held func(r *adapters.Request, reply string, kept *txtar.File)) *txtar.Archive {
	t.Helper()
	a, err := txtar.ParseFile(recordedFile)
	if err != nil || len(a.Files) < 100 {
		t.Fatal(len(a.Files), err)
	}
	for i := 0; i < len(a.Files); i += 2 {
		line, body, _ := strings.Cut(string(a.Files[i].Data), "\n")
		method, path, _ := strings.Cut(line, " ")
		r := get(path)
		r.Method, r.Body = method, []byte(strings.TrimSuffix(body, "\n"))
		held(r, string(a.Files[i+1].Data), &a.Files[i+1])
	}
	return a
}

// TestRealRecorded holds the recording to a real engine, or records it anew:
//
//	go test ./adapters/typesense -run TestRealRecorded -record
func TestRealRecorded(t *testing.T) {
	b := realCorpus(t)
	a := recordings(t, func(r *adapters.Request, reply string, kept *txtar.File) {
		status, body := b.direct(r.Method, r.Path+"?"+r.RawQuery, string(r.Body))
		own := comparable(status, strings.ReplaceAll(body, b.collection, "NAME"))
		if diff := cmp.Diff(reply, own); diff != "" && !*record {
			t.Errorf("%s %s?%s\n%s\n(-recorded +engine):\n%s", r.Method, r.Path, r.RawQuery, r.Body, diff)
		}
		kept.Data = []byte(own)
	})
	if !*record {
		return
	}
	expect.OK(t, os.WriteFile(recordedFile, txtar.Format(a), 0o644))
}

// TestFakeIsAsRecorded holds the fake to what the engine answered.
func TestFakeIsAsRecorded(t *testing.T) {
	f := &fake{of: func(name string) []map[string]any {
		return map[string][]map[string]any{"NAME": recordedDocuments()}[name]
	}}
	recordings(t, func(r *adapters.Request, reply string, _ *txtar.File) {
		own := f.reply(r)
		expect.Same(t, reply, comparable(own.Status, string(own.Body)), "%s %s?%s\n%s\n(-engine +fake)", r.Method, r.Path, r.RawQuery, r.Body)
	})
}
