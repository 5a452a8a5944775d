// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	ts "github.com/typesense/typesense-go/v2/typesense"
	tsapi "github.com/typesense/typesense-go/v2/typesense/api"
	"github.com/typesense/typesense-go/v2/typesense/api/pointer"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// TestOfficialClients has the corpus go in and the pages come out through the sidecar with each engine's official Go client; TestMainJobPages does
// the same with those in Python, TestClientSessions uses those in Python and JavaScript widely.
func TestOfficialClients(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "news-go", documents(t)
		through, direct := api{e, serve(t, e, setup{match: "news-*", rule: "group: true"})}, api{e, e.URL}
		through.create(t, index)
		goLoad(t, through, index, list)
		o := newOracle(t, direct, list)
		for _, q := range queries {
			same(t, slices.Collect(slices.Chunk(o.list(t, index, q), 10)), goWalk(t, through, index, q, 10), "%q", q)
		}
	})
}

// goLoad writes the documents with the engine's official Go client.
func goLoad(t *testing.T, a api, index string, list []corpus.Document) {
	t.Helper()
	switch a.e.Kind {
	case engines.Elasticsearch:
		elasticLoad(t, a.base, index, list)
	case engines.OpenSearch:
		client := openSearch(t, a.base)
		var b bytes.Buffer
		for _, d := range list {
			fmt.Fprintf(&b, "{\"index\":{\"_id\":%q}}\n", d.ID)
			check(t, json.NewEncoder(&b).Encode(d))
		}
		resp, err := client.Bulk(t.Context(), opensearchapi.BulkReq{Index: index, Body: &b, Params: opensearchapi.BulkParams{Refresh: "true"}})
		if err != nil || resp.Errors {
			t.Fatalf("bulk: %v %+v", err, resp)
		}
	case engines.Typesense:
		documents := make([]any, len(list))
		for i, d := range list {
			documents[i] = d
		}
		replies := expect.Value(typesense(a).Collection(index).Documents().Import(t.Context(), documents,
			&tsapi.ImportDocumentsParams{Action: pointer.String("create"), BatchSize: pointer.Int(40)}))(t)
		for _, r := range replies {
			if !r.Success {
				t.Fatalf("import: %+v", r)
			}
		}
	}
}

func elasticLoad(t *testing.T, url, index string, list []corpus.Document) {
	t.Helper()
	bulk := must(esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: elastic(t, url), Index: index, NumWorkers: 2, FlushBytes: 100_000, Refresh: "true"}))(t)
	for _, d := range list {
		body := must(json.Marshal(d))(t)
		item := esutil.BulkIndexerItem{Action: "index", DocumentID: d.ID, Body: bytes.NewReader(body)}
		item.OnFailure = func(_ context.Context, item esutil.BulkIndexerItem, r esutil.BulkIndexerResponseItem, err error) {
			t.Errorf("%s: %v %+v", item.DocumentID, err, r.Error)
		}
		check(t, bulk.Add(t.Context(), item))
	}
	check(t, bulk.Close(t.Context()))
	expect.Must(t, len(list), int(bulk.Stats().NumIndexed), "indexed documents")
}

// goWalk reads all pages with the engine's official Go client.
func goWalk(t *testing.T, a api, index, q string, size int) [][]string {
	t.Helper()
	var pages [][]string
	for from := 0; ; from += size {
		var ids []string
		if a.typesense() {
			result := expect.Value(typesense(a).Collection(index).Documents().Search(t.Context(), &tsapi.SearchCollectionParams{
				Q: &q, QueryBy: pointer.String("title,body"), Page: pointer.Int(from/size + 1), PerPage: pointer.Int(size)}))(t)
			for _, h := range *result.Hits {
				ids = append(ids, (*h.Document)["id"].(string))
			}
		} else {
			ids = goSearch(t, a, index, q, from, size)
		}
		if len(ids) == 0 {
			return pages
		}
		pages = append(pages, ids)
	}
}

func goSearch(t *testing.T, a api, index, q string, from, size int) []string {
	t.Helper()
	query := `{"match_all":{}}`
	if q != "*" {
		query = `{"multi_match":{"query":"` + q + `","fields":["title","body"]}}`
	}
	body := strings.NewReader(fmt.Sprintf(`{"from":%d,"size":%d,"query":%s,"sort":["_score",{"id":"asc"}]}`, from, size, query))
	var ids []string
	if a.e.Kind == engines.OpenSearch {
		resp := must(openSearch(t, a.base).Search(t.Context(), &opensearchapi.SearchReq{Indices: []string{index}, Body: body}))(t)
		for _, h := range resp.Hits.Hits {
			ids = append(ids, h.ID)
		}
		return ids
	}
	client := must(elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{a.base}}))(t)
	resp := must(client.Search().Index(index).Raw(body).Do(t.Context()))(t)
	for _, h := range resp.Hits.Hits {
		ids = append(ids, *h.Id_)
	}
	return ids
}

func elastic(t *testing.T, url string) *elasticsearch.Client {
	t.Helper()
	return must(elasticsearch.NewClient(elasticsearch.Config{Addresses: []string{url}, CompressRequestBody: true}))(t)
}

func openSearch(t *testing.T, url string) *opensearchapi.Client {
	t.Helper()
	return must(opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{url}}}))(t)
}

func typesense(a api) *ts.Client {
	return ts.NewClient(ts.WithServer(a.base), ts.WithAPIKey(a.e.Key))
}
