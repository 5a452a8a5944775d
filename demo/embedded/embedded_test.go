package embedded

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
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
		if header.Get("X-Elastic-Product") != "Elasticsearch" {
			t.Errorf("%s: no product header", x)
		}
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
