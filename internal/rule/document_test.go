package rule

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestAppendScripted(t *testing.T) {
	var changes []Change
	e := enricher(testRule(t, "title"), TakesAll, &changes)
	e.Scripted = true
	for _, c := range []struct{ index, doc, want string }{
		{"news-1", `{"title":"one","neardup_sketch":"x"}`, `{"title":"one"}`}, {"news-1", `{"title"`, `{"title"`}, {"logs", `{"neardup_sketch":"x"}`, `{"neardup_sketch":"x"}`},
	} {
		expect.Same(t, c.want, string(e.Append(nil, c.index, []byte(c.doc), false)), "%s", c.doc)
	}
	expect.Same(t, []Change{Scripted, Unreadable, Untouched}, changes, "")
}

// Of a dotted field that is stored in several forms the one within objects counts, whatever comes first.
func TestBothFormsOfADottedField(t *testing.T) {
	rule := testRule(t, "a.b.c", "t")
	of := func(document string) string {
		computed, _ := rule.SketchOf([]byte(document))
		if computed == nil {
			return ""
		}
		return computed.Text
	}
	want := of(`{"t":"x","a":{"b":{"c":"one two"}}}`)
	for _, c := range []struct{ document, want string }{
		{`{"a.b.c":"one two","t":"x"}`, want},
		{`{"a":{"b":{"c":"one two"}},"a.b.c":"one two","t":"x"}`, want},
		{`{"a.b.c":"one two","a":{"b":{"c":"one two"}},"t":"x"}`, want},
		{`{"a":{"b.c":"one two","b":{"c":"one two"}},"t":"x"}`, want},
		{`{"a":[{"b":{"c":"one two"}}],"a.b.c":["one two"],"t":"x"}`, want},
		{`{"a":{"d":1},"a.b.c":"one two","t":"x"}`, want},
		{`{"a.b.c":["two",5],"a":{"b":{"c":"one two"}},"t":"x"}`, want},
		{`{"a":{"b":{"c":null}},"a.b.c":"one two","t":"x"}`, of(`{"t":"x"}`)},
		{`{"a":{"b":{"c":"one two"}},"a":{"d":1},"t":"x"}`, ""},
	} {
		if got := of(c.document); got != c.want || want == "" {
			t.Errorf("%s: %q, want %q", c.document, got, c.want)
		}
	}
}

// Of a document with very many members hardly more than the document itself is in memory.
func TestManyMembersInLittleMemory(t *testing.T) {
	document := []byte(`{"title":"one","body":"two",` + strings.Repeat(`"":0,`, 1<<20) + `"neardup_sketch":"x","n":1}`)
	for _, c := range []struct {
		name       string
		lastCounts bool
		spare      int // for what the document is cut to
	}{{"outdone", true, 0}, {"cut", false, 2 * len(document)}} {
		t.Run(c.name, func(t *testing.T) {
			var changes []Change
			e := enricher(testRule(t, "title", "body"), TakesAll, &changes)
			e.LastCounts = c.lastCounts
			var before, after runtime.MemStats
			enriched := make([]byte, 0, len(document)+1000)
			runtime.ReadMemStats(&before)
			enriched = e.Append(enriched, "news-1", document, false)
			runtime.ReadMemStats(&after)
			if changes[0] != Enriched || c.lastCounts != bytes.Contains(enriched, []byte(`"x"`)) {
				t.Fatal(changes)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > uint64(1<<20+c.spare) {
				t.Errorf("%d bytes were allocated for a document of %d", took, len(document))
			}
		})
	}
}
