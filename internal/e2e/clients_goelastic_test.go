// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/update"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/refresh"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// goElastic is a session with the official Elasticsearch client for Go: its plain and its typed interface and its bulk indexer.
type goElastic struct {
	*recorder
	ctx    context.Context
	prefix string
	list   []corpus.Document
	plain  *elasticsearch.Client
	typed  *elasticsearch.TypedClient
}

func goElasticSession(t *testing.T, base, prefix string, list []corpus.Document) []byte {
	configuration := elasticsearch.Config{
		Addresses: []string{base}, CompressRequestBody: true, EnableCompatibilityMode: true, Header: http.Header{"X-Own": {"header"}},
	}
	plain, err := elasticsearch.NewClient(configuration)
	if err != nil {
		t.Fatal(err)
	}
	configuration.CompressRequestBody, configuration.EnableCompatibilityMode = false, false
	typed, err := elasticsearch.NewTypedClient(configuration)
	if err != nil {
		t.Fatal(err)
	}
	s := goElastic{newRecorder(t), t.Context(), prefix, list, plain, typed}
	s.bulkIndexer()
	s.documents()
	s.searches()
	s.cursors()
	s.raw()
	return marshal(t, s.session)
}

func (s goElastic) index(name string) string { return s.prefix + "-" + name }

// TestClientSessionGoElasticsearch does with the official Elasticsearch client for Go what TestClientSessions does with the others. The client
// takes minutes to compile: no other test of this package should need it.
func TestClientSessionGoElasticsearch(t *testing.T) {
	compareSessions(t, "go-elasticsearch", engines.Elasticsearch, goElasticSession)
}

// elastic returns a client as users have it.
func elastic(t *testing.T, url string) *elasticsearch.Client {
	t.Helper()
	client, err := elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, CompressRequestBody: true})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// bulkIndexer has many workers write at once, so that of the results only what depends on no order is recorded.
func (s goElastic) bulkIndexer() {
	s.as("create index")(s.typed.Indices.Create(s.index("main")).Raw(strings.NewReader(sessionFields)).Do(s.ctx))
	whole := func(action string) (items []esutil.BulkIndexerItem) {
		for _, d := range s.list {
			items = append(items, esutil.BulkIndexerItem{Action: action, DocumentID: d.ID, Body: bytes.NewReader(marshal(s.t, d))})
		}
		return items
	}
	part := func(body string) *strings.Reader { return strings.NewReader(body) }
	title := string(marshal(s.t, s.list[50].Title))
	mixed := []esutil.BulkIndexerItem{ // some of which fail
		{Action: "create", Index: s.index("main"), DocumentID: s.list[0].ID, Body: part("{}")},
		{Action: "delete", DocumentID: s.list[1].ID},
		{Action: "delete", DocumentID: "nowhere"},
		{Action: "index", Index: s.index("main"), DocumentID: "bad", Body: part(`{"published_at":"no date"}`)},
		{Action: "update", DocumentID: s.list[2].ID, Body: part(`{"doc":{"title":` + title + `}}`)},
		{Action: "update", DocumentID: "made", Body: part(`{"doc":{"title":` + title + `},"doc_as_upsert":true}`)},
		{Action: "update", DocumentID: "nowhere", Body: part(`{"doc":{"n":1}}`)},
	}
	for _, c := range []struct {
		step, index string
		config      esutil.BulkIndexerConfig
		items       []esutil.BulkIndexerItem
	}{
		{"many workers", "crowd", esutil.BulkIndexerConfig{NumWorkers: 6, FlushBytes: 9_000, FlushInterval: 20 * time.Millisecond}, whole("index")},
		{"one worker", "main", esutil.BulkIndexerConfig{NumWorkers: 1}, whole("create")},
		{"all kinds", "crowd", esutil.BulkIndexerConfig{NumWorkers: 1, FlushInterval: time.Hour}, mixed},
	} {
		var mu sync.Mutex
		var results []string
		note := func(item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.t.Error(err)
			}
			results = append(results, fmt.Sprintln(item.DocumentID, item.Action, r.Status, r.Result, r.Error.Type, r.Error.Reason))
		}
		c.config.Client, c.config.Index, c.config.Refresh = s.plain, s.index(c.index), "true"
		c.config.OnError = func(_ context.Context, err error) { s.t.Error(err) }
		indexer, err := esutil.NewBulkIndexer(c.config)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range c.items {
			item.OnSuccess = func(_ context.Context, item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem) {
				note(item, r, nil)
			}
			item.OnFailure = func(_ context.Context, item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem, err error) {
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

func (s goElastic) documents() {
	work, first, list := s.index("work"), s.list[0].ID, s.list
	s.as("index")(s.typed.Index(work).Id("1").Document(list[0]).Do(s.ctx))
	s.as("create twice")(s.typed.Create(work, "1").Document(list[1]).Do(s.ctx))
	for _, c := range []struct {
		step, id string
		request  update.Request
	}{
		{"whole", "1", update.Request{Doc: marshal(s.t, map[string]string{"title": list[2].Title, "body": list[2].Body})}},
		{"part", "1", update.Request{Doc: json.RawMessage(`{"title":"half of it"}`)}},
		{"other field", "1", update.Request{Doc: json.RawMessage(`{"n":1}`)}},
		{"with source", "1", update.Request{Doc: json.RawMessage(`{"n":2}`), Source_: true}},
		{"doc_as_upsert", "2", update.Request{Doc: marshal(s.t, list[3]), DocAsUpsert: new(true)}},
		{"upsert", "3", update.Request{Doc: json.RawMessage(`{"n":1}`), Upsert: marshal(s.t, list[4])}},
		{"script", "1", update.Request{Script: &types.Script{Source: new("ctx._source.n = 5")}}},
		{"of nothing", "nowhere", update.Request{Doc: json.RawMessage(`{"n":1}`)}},
	} {
		s.as("update " + c.step)(s.typed.Update(work, c.id).Request(&c.request).Do(s.ctx))
		s.as("after update " + c.step)(s.typed.Get(work, c.id).Do(s.ctx))
	}
	s.as("conflict")(s.typed.Index(work).Id("1").IfSeqNo("0").IfPrimaryTerm("1").Document(list[0]).Do(s.ctx))
	s.as("get in part")(s.typed.Get(s.index("main"), first).SourceIncludes_("t*").Do(s.ctx))
	s.as("exists")(s.typed.Exists(work, "1").IsSuccess(s.ctx))
	s.as("exists not")(s.typed.Exists(work, "nowhere").IsSuccess(s.ctx))
	s.as("mget")(s.typed.Mget().Index(s.index("main")).Ids(list[3].ID, "nowhere", first).Do(s.ctx))
	s.as("get source")(s.typed.GetSource(s.index("main"), first).Do(s.ctx))
	s.as("delete")(s.typed.Delete(work, "2").Refresh(refresh.True).Do(s.ctx))
	s.as("count")(s.typed.Count().Index(s.index("*")).Do(s.ctx))
	s.as("mapping")(s.typed.Indices.GetMapping().Index(s.index("*")).Do(s.ctx))
	lines := "{\"index\":{\"_id\":\"9\"}}\n" + string(marshal(s.t, list[9])) + "\n{\"delete\":{\"_id\":\"9\"}}\n"
	s.as("bulk")(s.typed.Bulk().Index(work).Raw(strings.NewReader(lines)).Do(s.ctx))
}

// request returns a typed search.
func (s goElastic) request(from, size int) *search.Request {
	return &search.Request{
		From: &from, Size: &size,
		Query: &types.Query{MultiMatch: &types.MultiMatchQuery{Query: "river town old", Fields: []string{"title", "body"}}},
		Sort:  []types.SortCombinations{"_score", by("id", sortorder.Asc)},
	}
}

func by(field string, order sortorder.SortOrder) types.SortOptions {
	return types.SortOptions{SortOptions: map[string]types.FieldSort{field: {Order: &order}}}
}

func (s goElastic) searches() {
	main := s.index("main")
	for step, widen := range map[string]func(*search.Request){
		"typed": func(*search.Request) {},
		"typed with all": func(r *search.Request) {
			r.Source_ = types.SourceFilter{Includes: []string{"t*"}}
			r.Fields = []types.FieldAndFormat{{Field: "url"}}
			r.DocvalueFields = []types.FieldAndFormat{{Field: "id"}}
			r.Highlight = &types.Highlight{Fields: map[string]types.HighlightField{"title": {}, "body": {}}}
			r.TrackTotalHits, r.Explain, r.Version = true, new(true), new(true)
			r.PostFilter = &types.Query{Exists: &types.ExistsQuery{Field: "url"}}
			r.Aggregations = map[string]types.Aggregations{"hosts": {Terms: &types.TermsAggregation{
				Field: new("host"), Order: map[string]sortorder.SortOrder{"_key": sortorder.Asc}}}}
		},
	} {
		s.search(step, 12, func(from int) (any, error) {
			r := s.request(from, 12)
			widen(r)
			return s.typed.Search().Index(main).TypedKeys(true).Request(r).Do(s.ctx)
		})
	}
	s.search("everything", 30, func(from int) (any, error) {
		return s.typed.Search().Index(main).From(from).Size(30).Sort("id").Do(s.ctx)
	})
	s.search("msearch", 20, func(from int) (any, error) {
		entry := fmt.Sprintf(`{"from":%d,"size":20,"query":%s,"sort":["_score","id"]}`, from, sessionText)
		lines := "{}\n" + entry + "\n{\"index\":\"" + main + "\"}\n" + entry + "\n"
		reply, err := s.typed.Msearch().Index(main).Raw(strings.NewReader(lines)).Do(s.ctx)
		if err != nil {
			return nil, err
		}
		return reply.Responses[1], nil
	})
	s.as("counted")(s.typed.Search().Index(main).Size(0).Query(s.request(0, 0).Query).Do(s.ctx))
	s.as("in index order")(s.typed.Search().Index(main).Size(60).Sort("_doc").Do(s.ctx))
	s.as("bad query")(s.typed.Search().Index(main).Raw(strings.NewReader(`{"query":{"nothing":{}}}`)).Do(s.ctx))
	s.as("nowhere")(s.typed.Search().Index(s.index("nowhere")).Do(s.ctx))
}

func (s goElastic) cursors() {
	main := s.index("main")
	pit, err := s.typed.OpenPointInTime(main).KeepAlive("1m").Do(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	at := func(after []any, order ...types.SortCombinations) (any, error) {
		values := make([]types.FieldValue, len(after))
		for i, value := range after {
			values[i] = value
		}
		ask := s.typed.Search().Pit(&types.PointInTimeReference{Id: pit.Id, KeepAlive: "1m"})
		return ask.Size(15).Sort(order...).SearchAfter(values...).Do(s.ctx)
	}
	s.cursor("point in time", func(after []any) (any, error) {
		return at(after, by("published_at", sortorder.Desc), "id")
	})
	s.as("export from a point in time")(at(nil, "_shard_doc"))
	s.as("close point in time")(s.typed.ClosePointInTime().Id(pit.Id).Do(s.ctx))

	page, err := s.typed.Search().Index(main).Scroll("1m").Request(s.request(0, 14)).Do(s.ctx)
	s.same("scroll", page, err)
	for i := 0; len(page.Hits.Hits) > 0; i++ {
		next, err := s.typed.Scroll().ScrollId(*page.ScrollId_).Scroll("1m").Do(s.ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		page.Hits = next.Hits
		s.same(fmt.Sprint("scroll on ", i), next, nil)
	}
	s.as("clear scroll")(s.typed.ClearScroll().ScrollId(*page.ScrollId_).Do(s.ctx))
}

// raw asks through the plain interface, with bodies compressed.
func (s goElastic) raw() {
	c, main, first := s.plain, s.index("main"), s.list[0].ID
	s.search("plain", 10, func(from int) (any, error) {
		body := c.Search.WithBody(strings.NewReader(`{"query":` + sessionText + `,"sort":["_score","id"]}`))
		reply, err := c.Search(c.Search.WithIndex(main), body, c.Search.WithFrom(from), c.Search.WithSize(10))
		if err != nil {
			return nil, err
		}
		whole, err := tell(reply.StatusCode, reply.Header, reply.Body)
		return whole.Body, err
	})
	as := func(step string) func(reply *esapi.Response, err error) {
		return func(reply *esapi.Response, err error) {
			if err != nil {
				s.t.Fatal(err)
			}
			s.as(step)(tell(reply.StatusCode, reply.Header, reply.Body))
		}
	}
	for step, ask := range map[string]esapi.Request{
		"plain get":        esapi.GetRequest{Index: main, DocumentID: first},
		"plain exists":     esapi.ExistsRequest{Index: main, DocumentID: first},
		"plain index":      esapi.IndexRequest{Index: s.index("work"), DocumentID: "plain", Body: esutil.NewJSONReader(s.list[5])},
		"plain fields":     esapi.FieldCapsRequest{Index: []string{main}, Fields: []string{"*"}},
		"plain text":       esapi.CatCountRequest{Index: []string{main}, H: []string{"count"}},
		"plain bad search": esapi.SearchRequest{Index: []string{main}, Body: strings.NewReader(`{"query":`)},
		"plain export":     esapi.SearchRequest{Index: []string{main}, Sort: []string{"_doc"}, Size: new(5), Pretty: true},
	} {
		as(step)(ask.Do(s.ctx, c))
	}
	as("info")(c.Info())
	as("ping")(c.Ping())
	as("traced")(c.Get(main, first, c.Get.WithOpaqueID("a trace"), c.Get.WithPretty(), c.Get.WithHuman(), c.Get.WithErrorTrace()))
}
