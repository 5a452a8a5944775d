package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/opensearch-project/opensearch-go/v4"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	ts "github.com/typesense/typesense-go/v2/typesense"
	tsapi "github.com/typesense/typesense-go/v2/typesense/api"
	"github.com/typesense/typesense-go/v2/typesense/api/pointer"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// goLoad writes the documents with the official Go client of OpenSearch or Typesense. That of Elasticsearch takes minutes to compile:
// TestDuplicatesSkipped uses it, behind a build tag.
func goLoad(t *testing.T, a api, index string, list []corpus.Document) {
	t.Helper()
	switch a.e.Kind {
	case engines.OpenSearch:
		client := openSearch(t, a.base)
		var b bytes.Buffer
		for _, d := range list {
			fmt.Fprintf(&b, "{\"index\":{\"_id\":%q}}\n", d.ID)
			if err := json.NewEncoder(&b).Encode(d); err != nil {
				t.Fatal(err)
			}
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
		replies, err := typesense(a).Collection(index).Documents().Import(t.Context(), documents,
			&tsapi.ImportDocumentsParams{Action: pointer.String("create"), BatchSize: pointer.Int(40)})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range replies {
			if !r.Success {
				t.Fatalf("import: %+v", r)
			}
		}
	}
}

// goWalk reads all pages with the clients of goLoad.
func goWalk(t *testing.T, a api, index, q string, size int) [][]string {
	t.Helper()
	var pages [][]string
	for from := 0; ; from += size {
		var ids []string
		if a.typesense() {
			result, err := typesense(a).Collection(index).Documents().Search(t.Context(), &tsapi.SearchCollectionParams{
				Q: &q, QueryBy: pointer.String("title,body"), Page: pointer.Int(from/size + 1), PerPage: pointer.Int(size)})
			if err != nil {
				t.Fatal(err)
			}
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
	resp, err := openSearch(t, a.base).Search(t.Context(), &opensearchapi.SearchReq{Indices: []string{index}, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, h := range resp.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids
}

func openSearch(t *testing.T, url string) *opensearchapi.Client {
	t.Helper()
	client, err := opensearchapi.NewClient(opensearchapi.Config{Client: opensearch.Config{Addresses: []string{url}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func typesense(a api) *ts.Client {
	return ts.NewClient(ts.WithServer(a.base), ts.WithAPIKey(a.e.Key))
}
