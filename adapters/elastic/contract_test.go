package elastic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// TestContract runs the contract, and its part on searches once for each other way in which hits can come with their source.
func TestContract(t *testing.T) {
	adaptertest.Test(t, subject, map[string]string{
		"whole source":       ``,
		"no source":          `,"_source":false`,
		"source filtered":    `,"_source":["n"],"query":{"match_all":{}}`,
		"docvalue fields":    `,"docvalue_fields":["n"]`,
		"fields":             `,"_source":["n"],"fields":["n","title"]`,
		"docvalue no source": `,"docvalue_fields":["n"],"_source":false,"sort":["n"]`,
	})
}

// subject is the dialect with a fake engine; extra stands in the body of every search.
func subject(extra string) adaptertest.Subject {
	return adaptertest.Subject{
		Dialect: Dialect{},
		Pass: []adapters.Request{
			{Method: "GET", Path: "/_cluster/health"}, {Method: "GET", Path: "/_cat/indices"}, {Method: "HEAD", Path: "/news-1"},
			{Method: "DELETE", Path: "/news-1/_doc/1"}, {Method: "POST", Path: "/news-1/_count"}, {Method: "POST", Path: "/_aliases"},
			{Method: "PUT", Path: "/_search/scroll"},
		},
		Writes:  contractWrites(),
		Write:   contractWrite,
		Reads:   contractReads(),
		Show:    contractShow,
		Names:   []string{"_source", "fields", "highlight", "hits", "get", "docs", "mappings", "properties"},
		Targets: contractTargets(extra),
		Search: func(searches ...adaptertest.Search) *adapters.Request {
			var lines []byte
			for _, s := range searches {
				body := fmt.Sprintf(`{"from":%d,"size":%d%s}`, s.From, s.Size, extra)
				if len(searches) == 1 {
					header := adapters.Header{"Content-Type": {"application/json"}}
					return &adapters.Request{Method: "POST", Path: "/" + strings.Join(s.Target, ",") + "/_search", Header: header,
						Body: []byte(body)}
				}
				target, _ := json.Marshal(s.Target)
				lines = fmt.Appendf(lines, "{\"index\":%s}\n%s\n", target, body)
			}
			header := adapters.Header{"Content-Type": {"application/x-ndjson"}}
			return &adapters.Request{Method: "POST", Path: "/_msearch", Header: header, Body: lines}
		},
		WithControl: func(r *adapters.Request, name, value string) *adapters.Request {
			with := *r
			with.Body = bytes.Replace(r.Body, []byte(`{"from"`), fmt.Appendf(nil, `{%q:%q,"from"`, name, value), 1)
			return &with
		},
		Engine: fakeEngine,
		Hits:   fakeHits,
		Reason: func(reply *adapters.Reply) string {
			var e struct {
				Error struct {
					Type, Reason string
					RootCause    []struct{ Type, Reason string } `json:"root_cause"`
				}
				Status int
			}
			if json.Unmarshal(reply.Body, &e) != nil || len(e.Error.RootCause) != 1 || e.Status != reply.Status || e.Error.Type == "" ||
				reply.Header["X-Elastic-Product"] == nil {
				return ""
			}
			return e.Error.Reason
		},
	}
}

func FuzzContractWrites(f *testing.F) {
	for _, d := range oddDocuments {
		line := strings.NewReplacer("\r\n", " ", "\n", " ").Replace(d)
		for _, body := range []string{
			d, `{"doc":` + d + `,"upsert":` + d + `,"scripted_upsert":"false"}`, `{"upsert":` + d + `,"scripted_upsert":true} ` + d,
			"{\"index\":{\"_id\":1}} x\r\n" + line + "\r\n{\"update\":{}\n{\"doc\":" + line + "}}\n" + line + "\n",
		} {
			f.Add([]byte(body))
		}
	}
	f.Add([]byte("\x000")) // in UTF-16
	adaptertest.FuzzWrites(f, subject(""))
}

// oddDocuments are JSON, and what is taken for it, of which bytes are easily lost.
var oddDocuments = []string{
	`{"title":"a","n":1e400,"z":-0,"f":1E+2,"d":1.50}`, `{"title":"a","title":"b","n":1,"n":2}`,
	`{"title":"x\ud800y\udc00","\u0074itle":1}`,
	"\uFEFF{\"title\":\"a\"}", "/* { */{\"title\":/*,*/\"a\"/*}*/}// \"\n", "{\r\n \"title\" : \"a\"\r\n}\r\n",
	"{\"title\":\"a\xc0\x80\xed\xa0\x80\"}", "{\"title\":\"\x00\"}",
	`{"title":"a","deep":` + strings.Repeat(`[{"a":`, 400) + "null" + strings.Repeat("}]", 400) + "}", strings.Repeat("[", 2000),
	`{"title":"a"} x`, `{"title":"a"}{"title":"b"}`, `{"title":"a"`,
	`{"":{"":""},"title":[]}`, "{}", " { } ", "null", `"title"`, "", "\n", `{"title":{"title":"a"}}`, `{"title":NaN}`,
}

func FuzzContractReplies(f *testing.F)  { adaptertest.FuzzReplies(f, subject("")) }
func FuzzContractSearches(f *testing.F) { adaptertest.FuzzSearches(f, subject("")) }

// contractWrite returns a write of one document, or a bulk of several.
func contractWrite(index string, partial bool, documents ...string) *adapters.Request {
	if len(documents) == 1 && partial {
		return &adapters.Request{Method: "POST", Path: "/" + index + "/_update/1", Body: []byte(`{"doc":` + documents[0] + `}`)}
	}
	if len(documents) == 1 {
		return &adapters.Request{Method: "PUT", Path: "/" + index + "/_doc/1", Body: []byte(documents[0])}
	}
	var lines []byte
	for i, d := range documents {
		if partial {
			lines = fmt.Appendf(lines, "{\"update\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"doc\":%s}\n", index, i, d)
		} else {
			lines = fmt.Appendf(lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n%s\n", index, i, d)
		}
	}
	return &adapters.Request{Method: "POST", Path: "/_bulk", Body: lines}
}

// contractShow returns the endpoints that show documents.
func contractShow(documents ...string) []adaptertest.Read {
	hits := make([]string, len(documents))
	for i, d := range documents {
		hits[i] = fmt.Sprintf(`{"_index":"news-1","_id":"%d","_source":%s}`, i, d)
	}
	list := strings.Join(hits, ",")
	search := `{"took":1,"hits":{"total":{"value":1,"relation":"eq"},"hits":[` + list + `]}}`
	read := func(method, path, reply string) adaptertest.Read {
		return adaptertest.Read{Request: adapters.Request{Method: method, Path: path}, Reply: reply}
	}
	return []adaptertest.Read{
		read("GET", "/news-1/_source/0", documents[0]), read("GET", "/news-1/_doc/0", hits[0]), read("POST", "/_mget",
			`{"docs":[`+list+`]}`),
		read("POST", "/news-1/_search", search), read("POST", "/_search/scroll", search), read("POST", "/_msearch",
			`{"responses":[`+search+`]}`),
		read("POST", "/news-1/_update/0", `{"_id":"0","get":{"_source":`+documents[0]+`}}`),
		read("POST", "/_bulk", `{"items":[{"update":{"get":{"_source":`+documents[0]+`}}}]}`),
	}
}

// contractTargets leaves out the rule that computes what lacks where the client asks for fields of its own: texts can't be
// extracted beside them, so a hit without a sketch stands alone.
func contractTargets(extra string) [][]string {
	if strings.Contains(extra, `"fields"`) {
		return [][]string{{"shop-1"}, {"logs-1"}}
	}
	return [][]string{{"news-1"}, {"shop-1"}, {"news-1", "shop-1", "news-2", "logs-1"}, {"logs-1"}}
}

func contractWrites() []adaptertest.Write {
	write := func(enriched int, method, path string, lines ...string) adaptertest.Write {
		return adaptertest.Write{Request: adapters.Request{Method: method, Path: path, Body: []byte(strings.Join(lines, "\n"))},
			Enriched: enriched}
	}
	return []adaptertest.Write{
		write(2, "POST", "/_bulk", `{"index":{"_index":"news-1"}}`, `{"title":"one two","body":"three"}`,
			`{"create":{"_index":"shop-1","_id":"ü"}}`,
			`{ "n" : 1e3, "title" : ["a", "b"] } `, `{"index":{"_index":"logs-1"}}`, `{"title":"one"}`,
			`{"delete":{"_index":"news-1","_id":"1"}}`, ``),
		write(2, "PUT", "/news-1/_bulk", `{"update":{"_id":"1"}}`,
			`{"doc":{"title":"a b","body":"c"},"upsert":{"title":"x","body":"y"}}`,
			`{"update":{"_id":"2"}}`, `{"script":{"source":"ctx._source.n++"}}`, ``),
		write(1, "POST", "/shop-1/_update/1", `{"doc":{"title":"x"}}`),
		write(1, "POST", "/news-1/_doc", "{\n  \"title\" : \"one\",\n  \"body\" : null\n}\n"),
		write(1, "PUT", "/news-1/_doc/1", `{"title":"one"}`),
		write(1, "PUT", "/news-1/_create/1", `{"body":"one"}`),
		write(0, "PUT", "/logs-1/_doc/1", `{"title":"one"}`),
	}
}

func contractReads() []adaptertest.Read {
	read := func(method, path, reply, clean string) adaptertest.Read {
		return adaptertest.Read{Request: adapters.Request{Method: method, Path: path}, Reply: reply, Clean: clean}
	}
	const mapping = `"neardup_sketch":{"type":"binary","doc_values":true}`
	hits := func(sketch string) string {
		return `{"_scroll_id":"x","hits":{"hits":[{"_id":"1","_source":{"title":"neardup_sketch"` + sketch + `},"fields":{"n":[1]` +
			strings.Replace(sketch, `"x"`, `["x"]`, 1) + `}}]}}`
	}
	const ours = `,"neardup_sketch":"x"`
	reads := []adaptertest.Read{
		read("GET", "/news-1/_doc/1", `{"_id":"1","_source":{"neardup_sketch":"x","title":"a"}}`,
			`{"_id":"1","_source":{"title":"a"}}`),
		read("GET", "/news-1/_source/1", `{"title":"a","in":{"neardup_sketch":1}`+ours+`}`, `{"title":"a","in":{"neardup_sketch":1}}`),
		read("POST", "/_mget", "{\n \"docs\" : [ { \"_source\" : { \"neardup_sketch\" : \"x\" } } ]\n}\n",
			"{\n \"docs\" : [ { \"_source\" : { } } ]\n}\n"),
		read("GET", "/news-1", `{"news-1":{"mappings":{"properties":{`+mapping+`,"title":{"type":"text"}}}}}`,
			`{"news-1":{"mappings":{"properties":{"title":{"type":"text"}}}}}`),
		read("GET", "/_mapping", `{"news-1":{"mappings":{"properties":{"title":{"type":"text"},`+mapping+`}}}}`,
			`{"news-1":{"mappings":{"properties":{"title":{"type":"text"}}}}}`),
		read("GET", "/news-1/_mapping/field/*", `{"news-1":{"mappings":{"neardup_sketch":{"full_name":"neardup_sketch",`+
			`"mapping":{}}}}}`, `{"news-1":{"mappings":{}}}`),
		read("GET", "/news-1/_field_caps", `{"indices":["news-1"],"fields":{"neardup_sketch":{"binary":{"searchable":false}},`+
			`"n":{}}}`, `{"indices":["news-1"],"fields":{"n":{}}}`),
		read("POST", "/news-1/_explain/1", `{"matched":true,"get":{"_source":{"n":1`+ours+`}}}`,
			`{"matched":true,"get":{"_source":{"n":1}}}`),
	}
	for _, path := range []string{"/_search/scroll", "/news-1/_search", "/_all/_search", "/news-1/_search/",
		"/news-1/_search/template"} {
		reads = append(reads, read("POST", path, hits(ours), hits("")))
	}
	reads = append(reads, read("POST", "/_msearch", `{"responses":[`+hits(ours)+`]}`, `{"responses":[`+hits("")+`]}`))
	return append(reads, read("POST", "/news-1/_async_search", `{"response":`+hits(ours)+`}`, `{"response":`+hits("")+`}`))
}
