package elastic

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// enrichWith runs a write under the contract's rules. In the outcome a sketch reads S.
func enrichWith(t testing.TB, method, path, query string, body io.Reader) (string, []string) {
	t.Helper()
	rules := adaptertest.Rules(t)
	var changes []string
	w := adaptertest.Writing{
		Rules: func(index string, creates bool) (*rule.Rule, rule.Takes) {
			if !creates && strings.HasPrefix(index, "news-created") { // an index that is not there yet
				return rules.For(index), rule.TakesNothing
			}
			return rules.For(index), rule.TakesAll
		},
		Counts: func(c rule.Change) { changes = append(changes, c.String()) },
	}
	c := Dialect{}.Classify(&adapters.Request{Method: method, Path: path, RawQuery: query})
	var out bytes.Buffer
	expect.Value((Dialect{}).EnrichWrite(c, &out, body, w, 1<<30))(t)
	return symbol(out.String()), changes
}

// symbol puts S in the place of every sketch.
func symbol(text string) string {
	const key = `"neardup_sketch":"`
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, key)
		out.WriteString(before)
		if !found {
			return out.String()
		}
		_, text, _ = strings.Cut(after, `"`)
		out.WriteString(`"neardup_sketch":S`)
	}
}

func TestBulk(t *testing.T) {
	for _, c := range bulkBodies {
		t.Run(c.name, func(t *testing.T) {
			lines := strings.NewReplacer("|", "\n")
			got, changes := enrichWith(t, "POST", c.path, "", strings.NewReader(lines.Replace(c.body)))
			expect.Same(t, lines.Replace(c.want), got, "the body")
			expect.Same(t, c.changes, strings.Join(changes, " "), "the changes")
		})
	}
}

// bulkBodies are bodies of bulk requests as they come and as they go on.
var bulkBodies = []struct{ name, path, body, want, changes string }{
	{"index in the action", "/_bulk", `{"index":{"_index":"shop-1"}}|{"title":"a"}|`,
		`{"index":{"_index":"shop-1"}}|{"title":"a"` + bulkSketch + `}|`, "enriched"},
	{"the action's index wins", "/shop-1/_bulk", `{"index":{"_index":"logs"}}|{"title":"a"}|`,
		`{"index":{"_index":"logs"}}|{"title":"a"}|`, "untouched"},
	{"create", "/shop-1/_bulk", `{"create":{"_id":"1"}}|{"title":"a"}|`, `{"create":{"_id":"1"}}|{"title":"a"` + bulkSketch + `}|`,
		"enriched"},
	{"delete has no document", "/shop-1/_bulk", `{"delete":{"_id":"1"}}|{"index":{}}|{"title":"a"}|`,
		`{"delete":{"_id":"1"}}|{"index":{}}|{"title":"a"` + bulkSketch + `}|`, "enriched"},
	{"update with doc", "/shop-1/_bulk", `{"update":{"_id":"1"}}|{"doc":{"title":"a"},"detect_noop":true}|`,
		`{"update":{"_id":"1"}}|{"doc":{"title":"a"` + bulkSketch + `},"detect_noop":true}|`, "enriched"},
	{"update of some fields", "/news-1/_bulk", `{"update":{"_id":"1"}}|{"doc":{"title":"a"}}|`,
		`{"update":{"_id":"1"}}|{"doc":{"title":"a","neardup_sketch":null}}|`, "cleared"},
	{"upsert", "/news-1/_bulk", `{"update":{"_id":"1"}}|{"upsert":{"title":"a"},"doc":{"n":1}}|`,
		`{"update":{"_id":"1"}}|{"upsert":{"title":"a"` + bulkSketch + `},"doc":{"n":1}}|`, "untouched enriched"},
	{"doc_as_upsert", "/news-1/_bulk", `{"update":{"_id":"1"}}|{"doc":{"title":"a"},"doc_as_upsert":true}|`,
		`{"update":{"_id":"1"}}|{"doc":{"title":"a","neardup_sketch":null},"doc_as_upsert":true}|`, "cleared"},
	{"doc twice", "/shop-1/_bulk", `{"update":{}}|{"doc":{"title":"a"},"doc":{"title":"b"}}|`,
		`{"update":{}}|{"doc":{"title":"a"},"doc":{"title":"b"}}|`, ""},
	{"no last newline", "/shop-1/_bulk", `{"index":{}}|{"title":"a"}`, `{"index":{}}|{"title":"a"` + bulkSketch + `}`, "enriched"},
	{"blank lines", "/shop-1/_bulk", `| |{"index":{}}|{"title":"a"}|||{"index":{}}||{"index":{}}|{"title":"b"}|`,
		`| |{"index":{}}|{"title":"a"` + bulkSketch + `}|||{"index":{}}||{"index":{}}|{"title":"b"` + bulkSketch + `}|`,
		"enriched enriched"},
	{"broken document", "/shop-1/_bulk", `{"index":{}}|{"title":"a"|{"index":{}}|{"title":"b"}|`,
		`{"index":{}}|{"title":"a"|{"index":{}}|{"title":"b"` + bulkSketch + `}|`, "unreadable enriched"},
	{"broken action", "/shop-1/_bulk", `{"index":{}}|{"title":"a"}|{"index":{|{"title":"b"}|{"index":{}}|{"title":"b"}`,
		`{"index":{}}|{"title":"a"` + bulkSketch + `}|{"index":{|{"title":"b"}|{"index":{}}|{"title":"b"}`, "enriched"},
	{"action without its end", "/shop-1/_bulk", `{"index":{}|{"title":"b"}|`, `{"index":{}|{"title":"b"` + bulkSketch + `}|`,
		"enriched"},
	{"more behind an action", "/shop-1/_bulk", `{"index":{}} x|{"title":"a"}|{"index":{}}{}|{"title":"b"}|`,
		`{"index":{}} x|{"title":"a"` + bulkSketch + `}|{"index":{}}{}|{"title":"b"` + bulkSketch + `}|`, "enriched enriched"},
	{"an index that is a number", "/shop-1/_bulk",
		`{"index":{"_index":12}}|{"title":"a"}|{"index":{"_index":null}}|{"title":"a"}|`,
		`{"index":{"_index":12}}|{"title":"a"}|{"index":{"_index":null}}|{"title":"a"` + bulkSketch + `}|`, "untouched enriched"},
	{"scripted upsert", "/shop-1/_bulk", `{"update":{}}|{"script":"x","scripted_upsert":true,"upsert":{"title":"a",` +
		`"neardup_sketch":"x"}}|`, `{"update":{}}|{"script":"x","scripted_upsert":true,"upsert":{"title":"a"}}|`, "scripted"},
	{"scripted upsert in words", "/shop-1/_bulk",
		`{"update":{}}|{"scripted_upsert":"true","script":"x","upsert":{"title":"a"}}|`,
		`{"update":{}}|{"scripted_upsert":"true","script":"x","upsert":{"title":"a"}}|`, "scripted"},
	{"a text that is not UTF-8", "/shop-1/_bulk",
		`{"index":{}}|{"title":"a` + "\xc0\x80" + `"}|{"update":{}}|{"doc":{"title":"a` + "\xed\xa0\x80" + `"}}|`,
		`{"index":{}}|{"title":"a` + "\xc0\x80" + `"}|{"update":{}}|{"doc":{"title":"a` + "\xed\xa0\x80" + `",` +
			`"neardup_sketch":null}}|`, "unreadable cleared"},
	{"unknown action", "/shop-1/_bulk", `{"upsert":{}}|{"title":"a"}|{"index":{}}|{"title":"b"}|`,
		`{"upsert":{}}|{"title":"a"}|{"index":{}}|{"title":"b"}|`, ""},
	{"action without an object", "/shop-1/_bulk", `{"index":null}|{"title":"a"}|`, `{"index":null}|{"title":"a"}|`, ""},
	{"a pipeline may drop what would create", "/news-created/_bulk",
		`{"index":{"pipeline":"drops"}}|{"title":"a"}|{"index":{"pipeline":"_none"}}|{"title":"a"}|`,
		`{"index":{"pipeline":"drops"}}|{"title":"a"}|{"index":{"pipeline":"_none"}}|{"title":"a"` + bulkSketch + `}|`,
		"unprepared enriched"},
	{"require_alias creates nothing", "/news-created/_bulk",
		`{"index":{"require_alias":true}}|{"title":"a"}|{"index":{}}|{"title":"a"}|`,
		`{"index":{"require_alias":true}}|{"title":"a"}|{"index":{}}|{"title":"a"` + bulkSketch + `}|`, "unprepared enriched"},
	{"client's own value", "/shop-1/_bulk", `{"index":{}}|{"neardup_sketch":"x","title":"a"}|`,
		`{"index":{}}|{"title":"a"` + bulkSketch + `}|`, "enriched"},
}

func TestOneDocument(t *testing.T) {
	const s = `,"neardup_sketch":S`
	for _, c := range []struct{ name, method, path, query, body, want string }{
		{"put", "PUT", "/shop-1/_doc/1", "", `{"title":"a"}`, `{"title":"a"` + s + `}`},
		{"post pretty", "POST", "/shop-1/_doc", "", "{\n  \"title\": \"a\"\n}\n", "{\n  \"title\": \"a\"" + s + "\n}\n"},
		{"require_alias", "PUT", "/news-created/_doc/1", "require_alias", `{"title":"a"}`, `{"title":"a"}`},
		{"pipeline", "PUT", "/news-created/_doc/1", "pipeline=drops", `{"title":"a"}`, `{"title":"a"}`},
		{"update clears", "POST", "/shop-1/_update/1", "", `{"doc":{"title":null}}`, `{"doc":{"title":null,"neardup_sketch":null}}`},
		{"update of some", "POST", "/news-1/_update/1", "", `{"doc":{"body":"a"},"upsert":{"body":"a"}}`,
			`{"doc":{"body":"a","neardup_sketch":null},"upsert":{"body":"a"` + s + `}}`},
		{"update by script", "POST", "/shop-1/_update/1", "", `{"script":"x","params":{"title":"a"}}`,
			`{"script":"x","params":{"title":"a"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := enrichWith(t, c.method, c.path, c.query, strings.NewReader(c.body))
			expect.Same(t, c.want, got, "the body")
		})
	}
}

// TestManyMembersOfAnUpdate: an update with more members than any engine takes goes on as it stands, and takes no list of them.
func TestManyMembersOfAnUpdate(t *testing.T) {
	body := `{"doc":{"neardup_sketch":"F"},` + strings.Repeat(`"":1,`, 1<<20) + `"doc_as_upsert":true}`
	used := allocated(func() {
		expect.Same(t, body, enrichJSON(t, "POST", "/shop-1/_update/1", body), "")
	})
	if used > 10*uint64(len(body)) {
		t.Errorf("%d bytes for an update of %d", used, len(body))
	}
}

func TestOverlongLines(t *testing.T) {
	padding := strings.Repeat("x", jsonedit.MaxDocument)
	long := `{"title":"` + padding + `"}`
	short := "{\"index\":{}}\n{\"title\":\"b\"}\n"
	const enriched = "{\"index\":{}}\n{\"title\":\"b\",\"neardup_sketch\":S}\n"
	for _, c := range []struct{ name, body, want string }{
		{"document", "{\"index\":{}}\n" + long + "\n" + short, "{\"index\":{}}\n" + long + "\n" + enriched},
		{"last document", short + "{\"index\":{}}\n" + long, enriched + "{\"index\":{}}\n" + long},
		{"action", short + `{"index":{}}` + padding + "\n" + short, enriched + "\x01\n" + short},
	} {
		if got, _ := enrichWith(t, "POST", "/shop-1/_bulk", "", strings.NewReader(c.body)); got != c.want {
			t.Errorf("%s: %d bytes became %d, want %d", c.name, len(c.body), len(got), len(c.want))
		}
	}
	for _, path := range []string{"/shop-1/_doc/1", "/shop-1/_create/1"} {
		if got, _ := enrichWith(t, "PUT", path, "", strings.NewReader(long)); got != long {
			t.Errorf("%s: an overlong document changed", path)
		}
	}
}

const bulkSketch = `,"neardup_sketch":S`
