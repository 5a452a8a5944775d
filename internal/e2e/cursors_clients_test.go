// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"
	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestCursorGoClients walks with Elasticsearch's typed Go client, which writes sort values anew, within a point in time and without.
func TestCursorGoClients(t *testing.T) {
	o := newOrchard(t, engines.Elasticsearch, "goclient", 61, 200, 0.5, 2)
	raw := walk{e: o.e, bases: always(o.e.URL), index: "goclient-1", query: `{"match_all":{}}`, sort: `[{"share":"desc"},"id"]`, size: 2000}.run(t).ids
	for _, pit := range []bool{false, true} {
		if diff := cmp.Diff(o.judge.collapsed(raw), elasticWalk(t, o.base, "goclient-1", pit)); diff != "" {
			t.Errorf("pit %v: %s", pit, diff)
		}
	}
}

func elasticWalk(t *testing.T, base, index string, pit bool) (ids []string) {
	t.Helper()
	client, err := elasticsearch.NewTypedClient(elasticsearch.Config{Addresses: []string{base}})
	if err != nil {
		t.Fatal(err)
	}
	size := 11
	request := &search.Request{Size: &size, Sort: []types.SortCombinations{
		types.SortOptions{SortOptions: map[string]types.FieldSort{"share": {Order: &sortorder.Desc}}}, types.SortOptions{SortOptions: map[string]types.FieldSort{"id": {}}},
	}}
	if pit {
		opened, err := client.OpenPointInTime(index).KeepAlive("1m").Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		request.Pit = &types.PointInTimeReference{Id: opened.Id}
	}
	for {
		call := client.Search().Request(request)
		if !pit {
			call = call.Index(index)
		}
		resp, err := call.Do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Hits.Hits) == 0 {
			break
		}
		for _, h := range resp.Hits.Hits {
			ids, request.SearchAfter = append(ids, *h.Id_), h.Sort
		}
		if pit {
			request.Pit.Id = *resp.PitId
		}
	}
	if pit {
		if _, err := client.ClosePointInTime().Id(request.Pit.Id).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}
