package typesense

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestContract runs the contract, and its part on searches once for each other way in which hits can come with the fields that
// are looked at.
func TestContract(t *testing.T) {
	adaptertest.Test(t, subject, map[string]string{
		"whole documents": "",
		"without texts":   "exclude_fields=title,body",
		"without id":      "exclude_fields=id",
		"one text":        "include_fields=n,title",
		"neither":         "include_fields=n&exclude_fields=id",
		"no such field":   "include_fields=nosuch&facet_by=n",
	})
}

// subject is the dialect with a fake engine; extra are parameters of every search.
func subject(extra string) adaptertest.Subject {
	return adaptertest.Subject{
		Dialect: Dialect{}, LastCounts: true, Clears: true, Doubts: coerced,
		Pass: []adapters.Request{
			{Method: "GET", Path: "/health"}, {Method: "GET", Path: "/aliases/news"}, {Method: "PUT", Path: "/collections"},
			{Method: "PUT", Path: "/collections/news-1/documents", RawQuery: "filter_by=n:1"}, {Method: "GET", Path: "/multi_search"},
			{Method: "PUT", Path: "/collections/news-1/overrides/x"}, {Method: "POST", Path: "/collections/news-1/documents", RawQuery: "action=destroy"},
			{Method: "HEAD", Path: "/collections/news-1/documents/1"}, {Method: "PUT", Path: "/collections/news-1"},
		},
		Writes:      contractWrites(),
		Write:       contractWrite,
		Reads:       contractReads(),
		Show:        contractShow,
		Names:       []string{"document", "hits", "highlight", "grouped_hits", "results", "fields"},
		Targets:     [][]string{{"news-1"}, {"shop-1"}, {"logs-1"}},
		Search:      func(searches ...adaptertest.Search) *adapters.Request { return contractSearch(extra, searches) },
		WithControl: withControl,
		Engine: func(r *adapters.Request, list func(target []string) []adaptertest.Document) *adapters.Reply {
			return (&fake{of: func(collection string) []map[string]any { return contractList(list([]string{collection})) }}).reply(r)
		},
		Hits: contractHits,
		Reason: func(reply *adapters.Reply) string {
			var e struct{ Message string }
			if json.Unmarshal(reply.Body, &e) != nil || !strings.HasPrefix(reply.Header["Content-Type"][0], "application/json") {
				return ""
			}
			return e.Message
		},
	}
}

func FuzzContractWrites(f *testing.F)   { adaptertest.FuzzWrites(f, subject("")) }
func FuzzContractSearches(f *testing.F) { adaptertest.FuzzSearches(f, subject("")) }

func FuzzContractReplies(f *testing.F) {
	for _, name := range []string{"document", "export", "import", "search", "collections"} {
		f.Add(expect.Value(os.ReadFile(filepath.Join("testdata", name+".reply")))(f))
	}
	adaptertest.FuzzReplies(f, subject(""))
}

// contractWrite returns a write of one document, or an import of several.
func contractWrite(index string, partial bool, documents ...string) *adapters.Request {
	path := "/collections/" + index + "/documents"
	if len(documents) > 1 {
		return post(path+map[bool]string{false: "/import", true: "/import?action=update"}[partial], strings.Join(documents, "\n"))
	}
	r := post(path, documents[0])
	if partial {
		r = post(path+"/1", documents[0])
		r.Method = "PATCH"
	}
	return r
}

// contractShow returns the endpoints that show documents.
func contractShow(documents ...string) []adaptertest.Read {
	documents = slices.Clone(documents)
	hits, imported := make([]string, len(documents)), make([]string, len(documents))
	for i, d := range documents {
		d = strings.ReplaceAll(d, `\u005f`, "_") // the engine writes what it has read in its own way
		documents[i] = d
		hits[i] = `{"document":` + d + `,"highlight":{},"highlights":[]}`
		imported[i] = `{"document":` + d + `,"id":"1","success":true}`
	}
	found := `{"found":1,"hits":[` + strings.Join(hits, ",") + `],"page":1}`
	const documentsPath = "collections/news-1/documents"
	read := func(method, path, reply string) adaptertest.Read {
		r := get("/" + path)
		r.Method = method
		return adaptertest.Read{Request: *r, Reply: reply}
	}
	return []adaptertest.Read{
		read("GET", documentsPath+"/1", documents[0]), read("DELETE", documentsPath+"/1", documents[0]),
		read("POST", documentsPath, documents[0]), read("PATCH", documentsPath+"/1", documents[0]),
		read("GET", documentsPath+"/export", strings.Join(documents, "\n")), read("GET", documentsPath+"/search?q=x", found),
		read("GET", documentsPath+"/search?q=x&group_by=n", `{"grouped_hits":[{"group_key":[1],"hits":[`+strings.Join(hits, ",")+`]}]}`),
		read("POST", "multi_search", `{"results":[`+found+`,{"code":404,"error":"Not found."},`+found+`]}`),
		read("POST", documentsPath+"/import?return_doc=true", strings.Join(imported, "\n")),
	}
}

// contractSearch returns the request of one search, or of several at once with some of the parameters in the query string.
func contractSearch(extra string, searches []adaptertest.Search) *adapters.Request {
	bodies := make([]map[string]any, len(searches))
	for i, s := range searches {
		if s.From%s.Size != 0 {
			return nil
		}
		bodies[i] = map[string]any{"collection": s.Target[0], "page": s.From/s.Size + 1, "per_page": fmt.Sprint(s.Size)}
	}
	if first := bodies[0]; len(searches) == 1 {
		query := fmt.Sprintf("q=x&page=%d&per_page=%s&%s", first["page"], first["per_page"], extra)
		return get(fmt.Sprintf("/collections/%s/documents/search?%s", first["collection"], strings.Trim(query, "&")))
	}
	body, _ := json.Marshal(map[string]any{"searches": bodies})
	return post("/multi_search?"+strings.Trim("q=x&"+extra, "&"), string(body))
}

func withControl(r *adapters.Request, name, value string) *adapters.Request {
	if r.Method == "GET" {
		return nil
	}
	with := *r
	with.Body = bytes.Replace(r.Body, []byte(`{"collection"`), fmt.Appendf(nil, `{%q:%q,"collection"`, name, value), 1)
	return &with
}

// contractList returns the documents as the fake engine stores them.
func contractList(list []adaptertest.Document) []map[string]any {
	documents := make([]map[string]any, len(list))
	for i, d := range list {
		documents[i] = map[string]any{"id": d.ID}
		if err := json.Unmarshal(d.Source, &documents[i]); err != nil {
			panic(err)
		}
	}
	return documents
}

// contractHits returns the hits in a reply to a search or a multi-search.
func contractHits(reply []byte) [][]string {
	root, _ := jsonedit.Members(reply)
	results, err := jsonedit.Elements(jsonedit.Get(root, "results"))
	if err != nil {
		results = [][]byte{reply}
	}
	all := make([][]string, len(results))
	for i, result := range results {
		members, _ := jsonedit.Members(result)
		hits, _ := jsonedit.Elements(jsonedit.Get(members, "hits"))
		for _, hit := range hits {
			all[i] = append(all[i], string(hit))
		}
	}
	return all
}

func contractWrites() []adaptertest.Write {
	write := func(enriched int, method, path string, lines ...string) adaptertest.Write {
		r := post("/collections/"+path, strings.Join(lines, "\n"))
		r.Method = method
		return adaptertest.Write{Request: *r, Enriched: enriched}
	}
	return []adaptertest.Write{
		write(2, "POST", "news-1/documents/import", `{"title":"one two","body":"three"}`, ` { "n" : 1e3, "body" : ["a", "b"] } `+"\r", "", " \t", `{"title":"?!"}`, `{"bad`, ``),
		write(1, "POST", "shop-1/documents/import?action=update", `{"id":"1","title":"x"}`, `{"id":"2","n":2}`, `{"id":"3","title":"?"}`),
		write(0, "POST", "news-1/documents?action=update", `{"title":"one"}`),
		write(0, "POST", "logs-1/documents/import?action=upsert", `{"title":"one"}`, ``),
		write(1, "POST", "news-1/documents", "{\n  \"title\" : \"one\",\n  \"body\" : null\n}\n"),
		write(1, "POST", "shop-1/documents/?action=emplace", `{"title":"ü\u00fc"}`),
		write(1, "PATCH", "shop-1/documents/1", `{"title":"one"}`),
		write(0, "PATCH", "shop-1/documents?filter_by=n:1", `{"n":2}`),
		write(0, "POST", "logs-1/documents", `{"title":"one"}`),
		// What the engine may leave out of a document has no part in a sketch.
		write(0, "POST", "news-1/documents?dirty_values=drop", `{"title":"one"}`),
		write(0, "POST", "shop-1/documents/import?action=update&dirty_values=coerce_or_drop", `{"title":"one"}`, `{"n":1}`),
		write(1, "POST", "news-1/documents?dirty_values=coerce_or_reject", `{"title":"one"}`),
	}
}

func contractReads() []adaptertest.Read {
	const ours = `"neardup_sketch":"x"`
	read := func(method, path, reply, clean string) adaptertest.Read {
		r := get("/" + path)
		r.Method = method
		return adaptertest.Read{Request: *r, Reply: reply, Clean: clean}
	}
	document := func(before string) string {
		return `{"a":{` + ours + `},"id":"1"` + before + `,"title":"neardup_sketch"}`
	}
	with, without := document(","+ours), document("")
	hits := func(document string) string {
		return `{"found":1,"hits":[{"document":` + document + `,"highlight":{` + ours + `}}],"grouped_hits":[{"hits":[{"document":` + document + `}]}]}`
	}
	schema := func(field string) string {
		return `{"fields":[{"name":"title","type":"string"}` + field + `,{"name":"n"}],"name":"news-1"}`
	}
	const field = `,{"name":"neardup_sketch","type":"string"}`
	return []adaptertest.Read{
		read("GET", "collections/news-1/documents/1", with, without),
		read("DELETE", "collections/news-1/documents/1", with, without),
		read("PATCH", "collections/news-1/documents/1", with, without),
		read("POST", "collections/news-1/documents", "{ "+ours+" ,\n \"id\" : 1 }\n", "{\n \"id\" : 1 }\n"),
		read("GET", "collections/news-1/documents/export", with+"\n"+with+"\n{}", without+"\n"+without+"\n{}"),
		read("POST", "collections/news-1/documents/import", `{"success":true}`+"\n"+`{"document":`+with+`,"success":true}`+"\n"+
			`{"code":409,"document":"{\"id\":\"1\",\"neardup_sketch\":\"x\"}","error":"no"}`,
			`{"success":true}`+"\n"+`{"document":`+document("")+`,"success":true}`+"\n"+`{"code":409,"document":"{\"id\":\"1\"}","error":"no"}`),
		read("GET", "collections/news-1", schema(field), schema("")),
		read("GET", "collections/", "["+schema(field)+","+schema(field)+"]", "["+schema("")+","+schema("")+"]"),
		read("GET", "collections/news-1/documents/search?q=x", hits(with), hits(without)),
		read("POST", "multi_search?q=x", `{"results":[`+hits(with)+`, {"code":404}]}`, `{"results":[`+hits(without)+`, {"code":404}]}`),
	}
}
