package adaptertest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// TestLarder holds the made-up engine's dialect to the contract, and shows what a Subject is.
func TestLarder(t *testing.T) { adaptertest.Test(t, larderSubject()) }

func FuzzWrites(f *testing.F)   { adaptertest.FuzzWrites(f, larderSubject()) }
func FuzzReplies(f *testing.F)  { adaptertest.FuzzReplies(f, larderSubject()) }
func FuzzSearches(f *testing.F) { adaptertest.FuzzSearches(f, larderSubject()) }

func request(method, path, body string) *adapters.Request {
	path, query, _ := strings.Cut(path, "?")
	return &adapters.Request{Method: method, Path: path, RawQuery: query, Header: adapters.Header{}, Body: []byte(body)}
}

func larderSubject() adaptertest.Subject {
	return adaptertest.Subject{
		Dialect: larder{},
		Pass: []adapters.Request{
			*request("GET", "/health", ""), *request("DELETE", "/docs/news-1/1", ""), *request("GET", "/find/news-1", ""),
		},
		Writes: []adaptertest.Write{
			{Request: *request("PUT", "/docs/news-1/1", "{\n  \"title\" : \"a\"\n}\n"), Enriched: 1},
			{Request: *request("POST", "/docs/news-1", `{"title":"a"}`+"\n\n"+`{"n":1}`+"\r\n"+`{"body":"b"}`), Enriched: 2},
			{Request: *request("POST", "/docs/shop-1?merge", `{"title":"a"}`+"\n"+`{"n":1}`), Enriched: 1},
			{Request: *request("PATCH", "/docs/logs-1/1", `{"title":"a"}`)},
		},
		Write: func(index string, partial bool, documents ...string) *adapters.Request {
			switch {
			case len(documents) > 1 && partial:
				return request("POST", "/docs/"+index+"?merge=1", strings.Join(documents, "\n"))
			case len(documents) > 1:
				return request("POST", "/docs/"+index, strings.Join(documents, "\n"))
			case partial:
				return request("PATCH", "/docs/"+index+"/1", documents[0])
			}
			return request("PUT", "/docs/"+index+"/1", documents[0])
		},
		Reads: []adaptertest.Read{
			{Request: *request("GET", "/docs/news-1/1", ""), Reply: `{"a":1,"neardup_sketch":"x"}`, Clean: `{"a":1}`},
			{Request: *request("GET", "/docs/news-1", ""), Reply: "{\"neardup_sketch\":\"x\"}\n{\"a\":1}\n", Clean: "{}\n{\"a\":1}\n"},
		},
		Show: func(documents ...string) []adaptertest.Read {
			items := make([]string, len(documents))
			for i, d := range documents {
				items[i] = fmt.Sprintf(`{"id":"%d","doc":%s}`, i, d)
			}
			return []adaptertest.Read{
				{Request: *request("GET", "/docs/news-1/0", ""), Reply: documents[0]},
				{Request: *request("PATCH", "/docs/news-1/0", ""), Reply: documents[0]},
				{Request: *request("GET", "/docs/news-1", ""), Reply: strings.Join(documents, "\n")},
				{Request: *request("POST", "/find/news-1", ""), Reply: `{"total":9,"items":[` + strings.Join(items, ",") + `]}`},
			}
		},
		Names:   []string{"items", "doc"},
		Targets: [][]string{{"news-1"}, {"shop-1"}, {"logs-1"}},
		Search: func(searches ...adaptertest.Search) *adapters.Request {
			if len(searches) > 1 {
				return nil
			}
			s := searches[0]
			return request("POST", "/find/"+s.Target[0], fmt.Sprintf(`{"from":%d,"count":%d}`, s.From, s.Size))
		},
		WithControl: func(r *adapters.Request, name, value string) *adapters.Request {
			with := *r
			with.Body = bytes.Replace(r.Body, []byte("{"), fmt.Appendf(nil, `{%q:%q,`, name, value), 1)
			return &with
		},
		Engine: larderEngine,
		Hits: func(reply []byte) [][]string {
			root, _ := adapters.Members(reply)
			items, _ := adapters.Elements(adapters.Get(root, "items"))
			hits := make([]string, len(items))
			for i := range items {
				hits[i] = string(items[i])
			}
			return [][]string{hits}
		},
		Reason: func(reply *adapters.Reply) string {
			var e struct{ Problem string }
			_ = json.Unmarshal(reply.Body, &e) // then there is none
			return e.Problem
		},
		ErrorReply: larder{}.ErrorReply,
	}
}

// larderEngine answers a search as the engine would, and refuses what it does not know.
func larderEngine(r *adapters.Request, list func(target []string) []adaptertest.Document) *adapters.Reply {
	body := struct{ From, Count int }{0, 10}
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil || r.RawQuery != "" || body.From < 0 || body.Count < 0 {
		return larder{}.ErrorReply(r, 400, "what is asked for is not understood")
	}
	all := list([]string{strings.TrimPrefix(r.Path, "/find/")})
	page := all[min(body.From, len(all)):]
	page = page[:min(body.Count, len(page))]
	items := make([]string, len(page))
	for i, d := range page {
		items[i] = fmt.Sprintf(`{"id":%q,"doc":%s}`, d.ID, d.Source)
	}
	reply := fmt.Appendf(nil, `{"total":%d,"items":[%s]}`, len(all), strings.Join(items, ","))
	return &adapters.Reply{Status: 200, Header: adapters.Header{"Content-Type": {"application/json"}}, Body: reply}
}
