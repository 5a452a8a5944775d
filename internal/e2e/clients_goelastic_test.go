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
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/calendarinterval"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/refresh"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"

	"github.com/neardup/sidecar/demo/corpus"
)

const sessionFields = `{"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},"body":{"type":"text"},` +
	`"url":{"type":"keyword"},"host":{"type":"keyword"},"published_at":{"type":"date"}}}}`

const sessionText = `{"multi_match":{"query":"river town old","fields":["title","body"]}}`

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
		Addresses: []string{base}, CompressRequestBody: true, EnableMetrics: true, EnableCompatibilityMode: true, Logger: silent{},
		MaxRetries: 2, Header: http.Header{"X-Own": {"header"}},
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

// silent logs as a user has it who looks for mistakes, with bodies, of which the client then makes copies; but writes nothing.
type silent struct{}

func (silent) RequestBodyEnabled() bool  { return true }
func (silent) ResponseBodyEnabled() bool { return true }
func (silent) LogRoundTrip(*http.Request, *http.Response, error, time.Time, time.Duration) error {
	return nil
}

func (s goElastic) index(name string) string { return s.prefix + "-" + name }

// bulkIndexer has many workers write at once, so that of the results only what depends on no order is recorded.
func (s goElastic) bulkIndexer() {
	reply, err := s.typed.Indices.Create(s.index("main")).Raw(strings.NewReader(sessionFields)).Do(s.ctx)
	s.same("create index", reply, err)
	for _, c := range []struct {
		step, index string
		config      esutil.BulkIndexerConfig
		items       []esutil.BulkIndexerItem
	}{
		{"many workers", "crowd", esutil.BulkIndexerConfig{
			NumWorkers: 6, FlushBytes: 9_000, FlushInterval: 20 * time.Millisecond, Refresh: "true"}, s.whole("index")},
		{"one worker", "main", esutil.BulkIndexerConfig{NumWorkers: 1, Refresh: "true"}, s.whole("create")},
		{"all kinds", "crowd", esutil.BulkIndexerConfig{NumWorkers: 1, FlushInterval: time.Hour, Refresh: "true"}, s.mixed()},
	} {
		var mu sync.Mutex
		var results []string
		note := func(item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem) {
			mu.Lock()
			defer mu.Unlock()
			results = append(results, fmt.Sprintln(item.DocumentID, item.Action, r.Status, r.Result, r.Error.Type, r.Error.Reason))
		}
		c.config.Client, c.config.Index = s.plain, s.index(c.index)
		c.config.OnError = func(_ context.Context, err error) { s.t.Error(err) }
		indexer, err := esutil.NewBulkIndexer(c.config)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, item := range c.items {
			item.OnSuccess = func(_ context.Context, item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem) { note(item, r) }
			item.OnFailure = func(_ context.Context, item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem, err error) {
				if err != nil {
					s.t.Error(err)
				}
				note(item, r)
			}
			if err := indexer.Add(s.ctx, item); err != nil {
				s.t.Fatal(err)
			}
		}
		err = indexer.Close(s.ctx)
		n := indexer.Stats()
		slices.Sort(results)
		counts := []uint64{n.NumAdded, n.NumFlushed, n.NumFailed, n.NumIndexed, n.NumCreated, n.NumUpdated, n.NumDeleted}
		s.same(c.step, []any{results, counts}, err)
	}
}

// whole returns the documents as items of a bulk.
func (s goElastic) whole(action string) (items []esutil.BulkIndexerItem) {
	for _, d := range s.list {
		items = append(items, esutil.BulkIndexerItem{Action: action, DocumentID: d.ID, Body: bytes.NewReader(marshal(s.t, d))})
	}
	return items
}

// mixed returns items of every kind, some of which fail.
func (s goElastic) mixed() []esutil.BulkIndexerItem {
	part := func(body string) *strings.Reader { return strings.NewReader(body) }
	title, whole := string(marshal(s.t, s.list[50].Title)), string(marshal(s.t, s.list[4]))
	return []esutil.BulkIndexerItem{
		{Action: "create", Index: s.index("main"), DocumentID: s.list[0].ID, Body: part("{}")},
		{Action: "delete", DocumentID: s.list[1].ID},
		{Action: "delete", DocumentID: "nowhere"},
		{Action: "index", Index: s.index("main"), DocumentID: "bad", Body: part(`{"published_at":"no date"}`)},
		{Action: "update", DocumentID: s.list[2].ID, Body: part(`{"doc":{"title":` + title + `}}`)},
		{Action: "update", DocumentID: s.list[3].ID, Body: part(`{"doc":{"n":1}}`)},
		{Action: "update", DocumentID: "made", Body: part(`{"doc":{"title":` + title + `},"doc_as_upsert":true}`)},
		{Action: "update", DocumentID: "scripted", Body: part(`{"script":"ctx._source.n = 1","upsert":` + whole + `}`)},
		{Action: "update", DocumentID: "nowhere", Body: part(`{"doc":{"n":1}}`)},
	}
}

func (s goElastic) documents() {
	work, first, list := s.index("work"), s.list[0].ID, s.list
	index, err := s.typed.Index(work).Id("1").Document(list[0]).Do(s.ctx)
	s.same("index", index, err)
	create, err := s.typed.Create(work, "1").Document(list[1]).Do(s.ctx)
	s.same("create twice", create, err)
	for _, c := range []struct {
		step, id string
		request  update.Request
	}{
		{"whole", "1", update.Request{Doc: marshal(s.t, map[string]string{"title": list[2].Title, "body": list[2].Body})}},
		{"part", "1", update.Request{Doc: json.RawMessage(`{"title":"half of it"}`)}},
		{"other field", "1", update.Request{Doc: json.RawMessage(`{"n":1}`)}},
		{"nothing", "1", update.Request{Doc: json.RawMessage(`{"n":1}`)}},
		{"with source", "1", update.Request{Doc: json.RawMessage(`{"n":2}`), Source_: true}},
		{"doc_as_upsert", "2", update.Request{Doc: marshal(s.t, list[3]), DocAsUpsert: new(true)}},
		{"upsert", "3", update.Request{Doc: json.RawMessage(`{"n":1}`), Upsert: marshal(s.t, list[4])}},
		{"script", "1", update.Request{Script: &types.Script{Source: new("ctx._source.n = 5")}}},
		{"of nothing", "nowhere", update.Request{Doc: json.RawMessage(`{"n":1}`)}},
	} {
		reply, err := s.typed.Update(work, c.id).Request(&c.request).Do(s.ctx)
		s.same("update "+c.step, reply, err)
		got, err := s.typed.Get(work, c.id).Do(s.ctx)
		s.same("after update "+c.step, got, err)
	}
	conflict, err := s.typed.Index(work).Id("1").IfSeqNo("0").IfPrimaryTerm("1").Document(list[0]).Do(s.ctx)
	s.same("conflict", conflict, err)
	part, err := s.typed.Get(s.index("main"), first).SourceIncludes_("t*").Do(s.ctx)
	s.same("get in part", part, err)
	exists, err := s.typed.Exists(work, "1").IsSuccess(s.ctx)
	s.same("exists", exists, err)
	exists, err = s.typed.Exists(work, "nowhere").IsSuccess(s.ctx)
	s.same("exists not", exists, err)
	mget, err := s.typed.Mget().Index(s.index("main")).Ids(list[3].ID, "nowhere", first).Do(s.ctx)
	s.same("mget", mget, err)
	source, err := s.typed.GetSource(s.index("main"), first).Do(s.ctx)
	s.same("get source", source, err)
	deleted, err := s.typed.Delete(work, "2").Refresh(refresh.True).Do(s.ctx)
	s.same("delete", deleted, err)
	count, err := s.typed.Count().Index(s.index("*")).Do(s.ctx)
	s.same("count", count, err)
	touch := &types.Script{Source: new("ctx._source.touched = true")}
	byQuery, err := s.typed.UpdateByQuery(work).Refresh(true).Script(touch).Do(s.ctx)
	s.same("update by query", byQuery, err)
	from, to := &types.ReindexSource{Index: []string{s.index("main")}}, &types.ReindexDestination{Index: s.index("inner")}
	copied, err := s.typed.Reindex().Refresh(true).Source(from).Dest(to).Do(s.ctx)
	s.same("reindex", copied, err)
	mapping, err := s.typed.Indices.GetMapping().Index(s.index("*")).Do(s.ctx)
	s.same("mapping", mapping, err)
	lines := "{\"index\":{\"_id\":\"9\"}}\n" + string(marshal(s.t, list[9])) + "\n{\"delete\":{\"_id\":\"9\"}}\n"
	bulk, err := s.typed.Bulk().Index(work).Raw(strings.NewReader(lines)).Do(s.ctx)
	s.same("bulk", bulk, err)
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
		},
		"typed with aggregations": func(r *search.Request) {
			r.Aggregations = map[string]types.Aggregations{
				"hosts": {Terms: &types.TermsAggregation{
					Field: new("host"), Order: map[string]sortorder.SortOrder{"_key": sortorder.Asc}}},
				"years": {DateHistogram: &types.DateHistogramAggregation{
					Field: new("published_at"), CalendarInterval: &calendarinterval.Year}},
			}
		},
		"typed with what follows": func(r *search.Request) {
			r.PostFilter = &types.Query{Exists: &types.ExistsQuery{Field: "url"}}
			r.Suggest = &types.Suggester{Suggesters: map[string]types.FieldSuggester{
				"spelling": {Text: new("rivr"), Term: &types.TermSuggester{Field: "body"}}}}
		},
	} {
		s.search(step, 12, func(from int) (any, error) {
			r := s.request(from, 12)
			widen(r)
			return s.typed.Search().Index(main).Request(r).Do(s.ctx)
		})
	}
	s.search("typed, with keys", 25, func(from int) (any, error) {
		return s.typed.Search().Index(main).TypedKeys(true).Preference("steady").Request(s.request(from, 25)).Do(s.ctx)
	})
	s.search("everything", 30, func(from int) (any, error) {
		return s.typed.Search().Index(main).From(from).Size(30).Sort("id").Do(s.ctx)
	})
	for i := range 2 {
		s.search(fmt.Sprint("msearch ", i), 20, func(from int) (any, error) {
			entry := fmt.Sprintf(`{"from":%d,"size":20,"query":%s,"sort":["_score","id"]}`, from, sessionText)
			lines := "{}\n" + entry + "\n{\"index\":\"" + main + "\"}\n" + entry + "\n"
			reply, err := s.typed.Msearch().Index(main).Raw(strings.NewReader(lines)).Do(s.ctx)
			if err != nil {
				return nil, err
			}
			return reply.Responses[i], nil
		})
	}
	counted, err := s.typed.Search().Index(main).Size(0).Query(s.request(0, 0).Query).Do(s.ctx)
	s.same("counted", counted, err)
	exported, err := s.typed.Search().Index(main).Size(60).Sort("_doc").Do(s.ctx)
	s.same("in index order", exported, err)
	bad, err := s.typed.Search().Index(main).Raw(strings.NewReader(`{"query":{"nothing":{}}}`)).Do(s.ctx)
	s.same("bad query", bad, err)
	nowhere, err := s.typed.Search().Index(s.index("nowhere")).Do(s.ctx)
	s.same("nowhere", nowhere, err)
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
	first, err := at(nil, "_shard_doc")
	s.same("export from a point in time", first, err)
	closed, err := s.typed.ClosePointInTime().Id(pit.Id).Do(s.ctx)
	s.same("close point in time", closed, err)

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
	cleared, err := s.typed.ClearScroll().ScrollId(*page.ScrollId_).Do(s.ctx)
	s.same("clear scroll", cleared, err)
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
	same := func(step string, reply *esapi.Response, err error) {
		s.t.Helper()
		if err != nil {
			s.t.Fatal(err)
		}
		whole, err := tell(reply.StatusCode, reply.Header, reply.Body)
		s.same(step, whole, err)
	}
	for step, ask := range map[string]esapi.Request{
		"plain get":            esapi.GetRequest{Index: main, DocumentID: first},
		"plain get nothing":    esapi.GetRequest{Index: main, DocumentID: "nowhere"},
		"plain exists":         esapi.ExistsRequest{Index: main, DocumentID: first},
		"plain index":          esapi.IndexRequest{Index: s.index("work"), DocumentID: "plain", Body: esutil.NewJSONReader(s.list[5])},
		"plain count":          esapi.CountRequest{Index: []string{main}, Body: strings.NewReader(`{"query":` + sessionText + `}`)},
		"plain fields":         esapi.FieldCapsRequest{Index: []string{main}, Fields: []string{"*"}},
		"plain index as it is": esapi.IndicesGetRequest{Index: []string{main}},
		"plain text":           esapi.CatCountRequest{Index: []string{main}, H: []string{"count"}},
		"plain bad search":     esapi.SearchRequest{Index: []string{main}, Body: strings.NewReader(`{"query":`)},
		"plain export":         esapi.SearchRequest{Index: []string{main}, Sort: []string{"_doc"}, Size: new(5), Pretty: true},
	} {
		reply, err := ask.Do(s.ctx, c)
		same(step, reply, err)
	}
	reply, err := c.Info()
	same("info", reply, err)
	reply, err = c.Ping()
	same("ping", reply, err)
	reply, err = c.Get(main, first, c.Get.WithOpaqueID("a trace"), c.Get.WithPretty(), c.Get.WithHuman(), c.Get.WithErrorTrace())
	same("traced", reply, err)
}
