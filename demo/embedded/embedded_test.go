package embedded

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestSourceBytesAreKept(t *testing.T) {
	url := start(t)
	source := `{ "b":1.0,"a" : "<x> & \u00e9",  "n": 12345678901234567890 , "e":{ } }`
	ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: source})
	ask(t, url, exchange{method: "POST", path: "/_bulk", body: `{"index":{"_index":"i","_id":"2"}}` + "\n" + source + "\n"})
	for _, path := range []string{"/i/_doc/1", "/i/_doc/2", "/i/_source/1", "/i/_search"} {
		if _, got, _ := ask(t, url, exchange{method: "GET", path: path}); !strings.Contains(got, source) {
			t.Errorf("%s: got %s, want the bytes %s", path, got, source)
		}
	}
}

func TestUnsupportedIsSaid(t *testing.T) {
	url := start(t)
	ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: `{"a":"b"}`})
	for _, x := range []exchange{
		{method: "GET", path: "/i/_search", body: `{"aggs":{"a":{"terms":{"field":"a"}}}}`},
		{method: "POST", path: "/i/_update/1", body: `{"script":"x"}`},
		{method: "POST", path: "/i/_pit?keep_alive=1m"},
		{method: "PUT", path: "/j", body: `{"settings":{"analysis":{"analyzer":{"a":{"type":"english"}}}}}`},
	} {
		status, got, header := ask(t, url, x)
		if status != http.StatusNotImplemented || !strings.Contains(got, `"type":"unsupported_operation_exception"`) || !strings.Contains(got, "embedded demo engine") {
			t.Errorf("%s: got %d %s", x, status, got)
		}
		expect.Same(t, "Elasticsearch", header.Get("X-Elastic-Product"), "%s: the product header", x)
	}
}

func FuzzSearch(f *testing.F) {
	for _, s := range []string{`{"query":{"query_string":{"query":"a:(b OR \"c d\") -e \\+"}}}`, `{"query":{"match":{"a":null}}}`, `{"sort":[{"a":{}}],"_source":[1]}`,
		`{"query":{"range":{"a":{"gte":[]}}}}`, `{"query":{"bool":{"must":[{"terms":{"n":[1,"x"]}}]}}}`, `{"fields":["*"],"docvalue_fields":[{"field":null}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		url := start(t)
		ask(t, url, exchange{method: "PUT", path: "/i/_doc/1", body: `{"a":"b c","n":[1,2.5],"o":{"d":"2024-01-01","t":true}}`})
		status, got, _ := ask(t, url, exchange{method: "POST", path: "/i/_search", body: body})
		if !json.Valid([]byte(got)) || status == http.StatusInternalServerError {
			t.Errorf("%s: got %d %s", body, status, got)
		}
	})
}

// TestScroll reads all documents once, as a backfill does, and knows nothing of a scroll that was cleared.
func TestScroll(t *testing.T) {
	url := start(t)
	for i := range 5 {
		ask(t, url, exchange{method: "PUT", path: fmt.Sprintf("/i/_doc/%d", i), body: `{"a":"b"}`})
	}
	seen, pages := "", 0
	next := exchange{method: "POST", path: "/i/_search?scroll=1m", body: `{"sort":["_doc"],"size":2}`}
	for more := true; more; pages++ {
		_, got, _ := ask(t, url, next)
		ids := regexp.MustCompile(`"_id":"(\d)"`).FindAllStringSubmatch(got, -1)
		for _, id := range ids {
			seen += id[1]
		}
		more = len(ids) > 0
		next = exchange{method: "POST", path: "/_search/scroll", body: regexp.MustCompile(`"_scroll_id":"[^"]*"`).FindString(got)}
		next.body = "{" + strings.Replace(next.body, "_scroll_id", "scroll_id", 1) + "}"
	}
	if seen != "01234" || pages != 4 {
		t.Errorf("saw %s in %d pages", seen, pages)
	}
	ask(t, url, exchange{method: "DELETE", path: next.path, body: next.body})
	if status, got, _ := ask(t, url, next); status != http.StatusNotFound {
		t.Errorf("a cleared scroll answers %d %s", status, got)
	}
}
