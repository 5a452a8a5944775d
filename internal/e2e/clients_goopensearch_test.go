package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opensearch-project/opensearch-go/v4"
	osapi "github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	osutil "github.com/opensearch-project/opensearch-go/v4/opensearchutil"

	"github.com/neardup/sidecar/demo/corpus"
)

// goOpenSearch is a session with the official OpenSearch client for Go and its bulk indexer.
type goOpenSearch struct {
	*recorder
	ctx    context.Context
	prefix string
	list   []corpus.Document
	client *osapi.Client
}

func goOpenSearchSession(t *testing.T, base, prefix string, list []corpus.Document) []byte {
	client, err := osapi.NewClient(osapi.Config{Client: opensearch.Config{
		Addresses: []string{base}, CompressRequestBody: true, Header: http.Header{"X-Own": {"header"}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := goOpenSearch{newRecorder(t), t.Context(), prefix, list, client}
	s.bulkIndexer()
	s.documents()
	s.searches()
	s.cursors()
	return marshal(t, s.session)
}

func (s goOpenSearch) index(name string) string { return s.prefix + "-" + name }

// answer records a reply and its status and headers.
func (s goOpenSearch) answer(step string) func(reply interface{ Inspect() osapi.Inspect }, err error) {
	return func(reply interface{ Inspect() osapi.Inspect }, err error) {
		if reply.Inspect().Response == nil {
			s.t.Fatalf("%s: no reply: %v", step, err)
		}
		s.same(step, []any{reply, reply.Inspect().Response.StatusCode, reply.Inspect().Response.Header}, err)
	}
}

// bulkIndexer has many workers write at once, so that of the results only what depends on no order is recorded.
func (s goOpenSearch) bulkIndexer() {
	s.answer("create index")(s.client.Indices.Create(s.ctx, osapi.IndicesCreateReq{Index: s.index("main"), Body: strings.NewReader(sessionFields)}))
	whole := func(action string) (items []osutil.BulkIndexerItem) {
		for _, d := range s.list {
			items = append(items, osutil.BulkIndexerItem{Action: action, DocumentID: d.ID, Body: bytes.NewReader(marshal(s.t, d))})
		}
		return items
	}
	for _, c := range []struct {
		step, index string
		config      osutil.BulkIndexerConfig
		items       []osutil.BulkIndexerItem
	}{
		{"many workers", "crowd", osutil.BulkIndexerConfig{NumWorkers: 6, FlushBytes: 9_000, FlushInterval: 20 * time.Millisecond}, whole("index")},
		{"one worker", "main", osutil.BulkIndexerConfig{NumWorkers: 1}, whole("create")},
	} {
		var mu sync.Mutex
		var results []string
		note := func(item osutil.BulkIndexerItem, r osapi.BulkRespItem, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.t.Error(err)
			}
			results = append(results, fmt.Sprintln(item.DocumentID, item.Action, r.Status, r.Result, string(marshal(s.t, r.Error))))
		}
		c.config.Client, c.config.Index, c.config.Refresh = s.client, s.index(c.index), "true"
		c.config.OnError = func(_ context.Context, err error) { s.t.Error(err) }
		indexer, err := osutil.NewBulkIndexer(c.config)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range c.items {
			item.OnSuccess = func(_ context.Context, item osutil.BulkIndexerItem, r osapi.BulkRespItem) { note(item, r, nil) }
			item.OnFailure = func(_ context.Context, item osutil.BulkIndexerItem, r osapi.BulkRespItem, err error) {
				note(item, r, err)
			}
			if err := indexer.Add(s.ctx, item); err != nil {
				s.t.Fatal(err)
			}
		}
		err = indexer.Close(s.ctx)
		n := indexer.Stats()
		slices.Sort(results)
		s.same(c.step, []any{results, n.NumAdded, n.NumFlushed, n.NumFailed, n.NumIndexed, n.NumCreated, n.NumUpdated, n.NumDeleted}, err)
	}
}

func (s goOpenSearch) documents() {
	c, work, main, first := s.client, s.index("work"), s.index("main"), s.list[0].ID
	body := func(d corpus.Document) *bytes.Reader { return bytes.NewReader(marshal(s.t, d)) }
	s.answer("index")(c.Index(s.ctx, osapi.IndexReq{Index: work, DocumentID: "1", Body: body(s.list[0])}))
	s.answer("create twice")(c.Document.Create(s.ctx, osapi.DocumentCreateReq{Index: work, DocumentID: "1", Body: body(s.list[1])}))
	for _, u := range []struct{ step, id, body string }{
		{"whole", "1", `{"doc":` + string(marshal(s.t, s.list[2])) + `}`},
		{"part", "1", `{"doc":{"title":"half of it"}}`},
		{"other field", "1", `{"doc":{"n":1}}`},
		{"with source", "1", `{"doc":{"n":2},"_source":true}`},
		{"doc_as_upsert", "2", `{"doc":` + string(marshal(s.t, s.list[3])) + `,"doc_as_upsert":true}`},
		{"upsert", "3", `{"doc":{"n":1},"upsert":` + string(marshal(s.t, s.list[4])) + `}`},
		{"script", "1", `{"script":"ctx._source.n = 5"}`},
		{"of nothing", "nowhere", `{"doc":{"n":1}}`},
	} {
		s.answer("update " + u.step)(c.Update(s.ctx, osapi.UpdateReq{Index: work, DocumentID: u.id, Body: strings.NewReader(u.body)}))
		s.answer("after update " + u.step)(c.Document.Get(s.ctx, osapi.DocumentGetReq{Index: work, DocumentID: u.id}))
	}
	ids := strings.NewReader(`{"ids":["` + first + `","nowhere","` + s.list[3].ID + `"]}`)
	s.answer("mget")(c.MGet(s.ctx, osapi.MGetReq{Index: main, Body: ids}))
	s.answer("delete")(c.Document.Delete(s.ctx, osapi.DocumentDeleteReq{
		Index: work, DocumentID: "2", Params: osapi.DocumentDeleteParams{Refresh: "true"}}))
}

// asked returns a search from a rank on, with more of its body.
func asked(from, size int, more string) *strings.Reader {
	body := fmt.Sprintf(`{"from":%d,"size":%d,"query":%s,"sort":["_score",{"id":"asc"}]%s}`, from, size, sessionText, more)
	return strings.NewReader(body)
}

func (s goOpenSearch) searches() {
	c, main := s.client, []string{s.index("main")}
	for step, more := range map[string]string{
		"text": ``,
		"all of a hit": `,"_source":["t*"],"fields":["url"],"docvalue_fields":["id"],"explain":true,"version":true,"track_total_hits":true,` +
			`"highlight":{"fields":{"*":{}}},"post_filter":{"exists":{"field":"url"}},"aggs":{"hosts":{"terms":{"field":"host","order":{"_key":"asc"}}}}`,
	} {
		s.search(step, 12, func(from int) (any, error) {
			return c.Search(s.ctx, &osapi.SearchReq{Indices: main, Body: asked(from, 12, more)})
		})
	}
	s.search("in the URL", 8, func(from int) (any, error) {
		return c.Search(s.ctx, &osapi.SearchReq{Indices: main, Params: osapi.SearchParams{
			Query: "title:old OR body:river", Sort: []string{"_score", "id:asc"}, From: &from, Size: new(8), TypedKeys: new(true)}})
	})
	s.search("msearch", 20, func(from int) (any, error) {
		var lines bytes.Buffer
		fmt.Fprintf(&lines, "{}\n")
		_, _ = asked(from, 20, "").WriteTo(&lines)
		fmt.Fprintf(&lines, "\n{}\n{\"size\":0}\n")
		reply, err := c.MSearch(s.ctx, osapi.MSearchReq{Indices: main, Body: &lines})
		if err != nil {
			return nil, err
		}
		return reply.Responses[0], nil
	})
	for step, body := range map[string]string{
		"counted":        `{"size":0,"query":` + sessionText + `}`,
		"in index order": `{"sort":["_doc"],"size":60}`,
		"bad query":      `{"query":{"nothing":{}}}`,
		"broken":         `{"query":`,
	} {
		s.answer(step)(c.Search(s.ctx, &osapi.SearchReq{Indices: main, Body: strings.NewReader(body)}))
	}
	s.answer("nowhere")(c.Search(s.ctx, &osapi.SearchReq{Indices: []string{s.index("nowhere")}}))
}

func (s goOpenSearch) cursors() {
	c, main := s.client, []string{s.index("main")}
	pit, err := c.PointInTime.Create(s.ctx, osapi.PointInTimeCreateReq{
		Indices: main, Params: osapi.PointInTimeCreateParams{KeepAlive: time.Minute}})
	if err != nil {
		s.t.Fatal(err)
	}
	at := func(sort string, after []any) (*osapi.SearchResp, error) {
		body := `{"size":15,"pit":{"id":"` + pit.PitID + `","keep_alive":"1m"},"sort":` + sort
		if after != nil {
			body += `,"search_after":` + string(marshal(s.t, after))
		}
		return c.Search(s.ctx, &osapi.SearchReq{Body: strings.NewReader(body + "}")})
	}
	s.cursor("point in time", func(after []any) (any, error) { return at(`[{"published_at":"desc"},"id"]`, after) })
	s.answer("export from a point in time")(at(`["_doc"]`, nil))
	s.answer("close point in time")(c.PointInTime.Delete(s.ctx, osapi.PointInTimeDeleteReq{PitID: []string{pit.PitID}}))

	page, err := c.Search(s.ctx, &osapi.SearchReq{
		Indices: main, Body: asked(0, 14, ""), Params: osapi.SearchParams{Scroll: time.Minute}})
	s.answer("scroll")(page, err)
	for i, hits := 0, page.Hits.Hits; len(hits) > 0; i++ {
		next, err := c.Scroll.Get(s.ctx, osapi.ScrollGetReq{
			ScrollID: *page.ScrollID, Params: osapi.ScrollGetParams{Scroll: time.Minute}})
		s.answer(fmt.Sprint("scroll on ", i))(next, err)
		hits = next.Hits.Hits
	}
	s.answer("clear scroll")(c.Scroll.Delete(s.ctx, osapi.ScrollDeleteReq{ScrollIDs: []string{*page.ScrollID}}))
}
