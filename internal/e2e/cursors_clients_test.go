package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8"
	"github.com/elastic/go-elasticsearch/v8/typedapi/core/search"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types"
	"github.com/elastic/go-elasticsearch/v8/typedapi/types/enums/sortorder"
	"github.com/google/go-cmp/cmp"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// scan exports an index with the helper of an engine's Python client: with its own headers, and asking for a collapsed export.
const scan = `
import json, sys
kind, url, index, on = sys.argv[1:5]
if kind == "elasticsearch":
    from elasticsearch import Elasticsearch, helpers
    client = Elasticsearch(url, request_timeout=60)
    if on == "on":
        client = client.options(headers={"Neardup-Control": "on"})
else:
    from opensearchpy import OpenSearch, helpers
    client = OpenSearch(url, timeout=60, headers={"Neardup-Control": "on"} if on == "on" else {})
hits = list(helpers.scan(client, index=index, query={"query": {"match_all": {}}}, size=40, preserve_order=on == "order"))
json.dump([[hit["_id"], sorted(hit["_source"]), sorted(hit)] for hit in hits], sys.stdout)
`

// TestCursorPythonScan exports with the clients' own helper: as the engine does by default, and collapsed where that is asked
// for.
func TestCursorPythonScan(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			direct := api{e, e.URL}
			list := leaves(rand.New(rand.NewPCG(59, 1)), 300, 0.6)
			base := serveFile(t, walking(t, e, walkRule{match: "scan-*", window: 1000}))
			plant(t, direct, base, "scan-1", 1, list)
			run := func(url, on string) (ids []string) {
				cmd := exec.CommandContext(t.Context(), clients.Python(t), "-c", scan, kind, url, "scan-1", on)
				var complaints strings.Builder
				cmd.Stderr = &complaints
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%v %s", err, complaints.String())
				}
				var hits [][]any
				if err := json.Unmarshal(out, &hits); err != nil {
					t.Fatal(err)
				}
				for _, h := range hits {
					if text, err := json.Marshal(h); err != nil || strings.Contains(string(text), "neardup") && url != e.URL || strings.Contains(string(text), "matched_queries") {
						t.Fatalf("a hit shows %s (%v)", text, err)
					}
					ids = append(ids, h[0].(string))
				}
				return ids
			}
			raw := run(e.URL, "off")
			if diff := cmp.Diff(raw, run(base, "off")); diff != "" || len(raw) != len(list) {
				t.Errorf("by default: %s", diff)
			}
			j := newJudge(t, direct, list, 1000)
			if diff := cmp.Diff(j.collapsed(raw), run(base, "on")); diff != "" {
				t.Errorf("collapsed: %s", diff)
			}
		})
	}
}

// TestCursorGoClients walks with the engines' Go clients, within a point in time and without.
func TestCursorGoClients(t *testing.T) {
	for _, kind := range walkers {
		t.Run(kind, func(t *testing.T) {
			o := newOrchard(t, kind, "goclient", 61, 300, 0.5, 2)
			e, base, j := o.e, o.base, o.judge
			raw := walk{e: e, bases: always(e.URL), index: "goclient-1", query: `{"match_all":{}}`, sort: `[{"share":"desc"},"id"]`, size: 2000}.run(t).ids
			for _, pit := range []bool{false, true} {
				got := elasticWalk
				if kind == engines.OpenSearch {
					got = openSearchWalk
				}
				if diff := cmp.Diff(j.collapsed(raw), got(t, base, "goclient-1", pit)); diff != "" {
					t.Errorf("pit %v: %s", pit, diff)
				}
			}
		})
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

func openSearchWalk(t *testing.T, base, index string, pit bool) (ids []string) {
	t.Helper()
	client := openSearch(t, base)
	body := map[string]any{"size": 11, "sort": []any{map[string]string{"share": "desc"}, "id"}}
	request := &opensearchapi.SearchReq{Indices: []string{index}}
	if pit {
		opened, err := client.PointInTime.Create(t.Context(), opensearchapi.PointInTimeCreateReq{
			Indices: []string{index}, Params: opensearchapi.PointInTimeCreateParams{KeepAlive: 60_000_000_000},
		})
		if err != nil {
			t.Fatal(err)
		}
		body["pit"], request.Indices = map[string]string{"id": opened.PitID}, nil
		defer func() {
			_, err := client.PointInTime.Delete(t.Context(), opensearchapi.PointInTimeDeleteReq{PitID: []string{opened.PitID}})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	for {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request.Body = strings.NewReader(string(text))
		resp, err := client.Search(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Hits.Hits) == 0 {
			return ids
		}
		for _, h := range resp.Hits.Hits {
			ids, body["search_after"] = append(ids, h.ID), h.Sort
		}
	}
}
