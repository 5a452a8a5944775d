// The Go client of Elasticsearch takes minutes to compile: make test-all has this tag, make test does without it.

//go:build goclient

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/elastic/go-elasticsearch/v8/esutil"
	"github.com/google/go-cmp/cmp"
	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/opensearch-project/opensearch-go/v4/opensearchapi"
	tsapi "github.com/typesense/typesense-go/v2/typesense/api"
	"github.com/typesense/typesense-go/v2/typesense/api/pointer"
)

func TestDuplicatesSkipped(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index, list := "skipped-1", documents(t)
		truth := sketchesOf(t, e, "skippedtruth-1", list)
		through, direct := duplicates(t, e, index, "skip")
		skipped := through.inPieces(t, index, list)
		all := ledgerOf(t, direct, index)
		checkStored(t, direct, list, all, skipped)
		for id, other := range skipped {
			if _, there := all[other]; !there || !truth[id].near(truth[other]) {
				t.Errorf("%s stands for %s: it is there: %v, and a near-duplicate: %v", other, id, there, truth[id].near(truth[other]))
			}
		}
		kept := 0 // near-duplicates of an earlier document that is stored, which are stored all the same
		for i, d := range list {
			if _, there := all[d.ID]; there && slices.ContainsFunc(list[:i], func(before corpus.Document) bool {
				_, stands := all[before.ID]
				return stands && truth[d.ID].near(truth[before.ID])
			}) {
				kept++
			}
		}
		if len(skipped) < 100 || kept*50 > len(skipped) {
			t.Errorf("%d documents were left out, %d stayed beside what they repeat", len(skipped), kept)
		}
		before := versions(stored(t, direct, index))
		skipLoad(t, through, index, list) // under other ids, by the official client
		direct.refresh(t, index)
		if diff := cmp.Diff(before, versions(stored(t, direct, index))); diff != "" {
			t.Errorf("the same texts under other ids changed what is stored: %s", diff)
		}
		checkWrittenAgain(t, through, direct, index, all)
	})
}

func skipLoad(t *testing.T, a api, index string, list []corpus.Document) {
	t.Helper()
	list = slices.Clone(list)
	for i := range list {
		list[i].ID = "again-" + list[i].ID
	}
	switch a.e.Kind {
	case engines.Elasticsearch:
		bulk, err := esutil.NewBulkIndexer(esutil.BulkIndexerConfig{Client: elastic(t, a.base), Index: index, NumWorkers: 2, FlushBytes: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range list {
			body, _ := json.Marshal(d) // a struct of strings
			if err := bulk.Add(t.Context(), esutil.BulkIndexerItem{Action: "create", DocumentID: d.ID, Body: bytes.NewReader(body)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := bulk.Close(t.Context()); err != nil || bulk.Stats().NumFailed > 0 || int(bulk.Stats().NumFlushed) != len(list) {
			t.Errorf("%v %+v", err, bulk.Stats())
		}
	case engines.OpenSearch:
		var b bytes.Buffer
		for _, d := range list {
			body, _ := json.Marshal(d)
			fmt.Fprintf(&b, "{\"create\":{\"_id\":%q}}\n%s\n", d.ID, body)
		}
		resp, err := openSearch(t, a.base).Bulk(t.Context(), opensearchapi.BulkReq{Index: index, Body: &b})
		if err != nil || resp.Errors || len(resp.Items) != len(list) || resp.Items[3]["create"].Result != "noop" || resp.Items[3]["create"].Version != 1 {
			t.Errorf("%v %+v", err, resp)
		}
	case engines.Typesense:
		bodies := make([]any, len(list))
		for i, d := range list {
			bodies[i] = d
		}
		replies, err := typesense(a).Collection(index).Documents().Import(t.Context(), bodies[1:], &tsapi.ImportDocumentsParams{Action: pointer.String("create")})
		if err != nil || slices.ContainsFunc(replies, func(r *tsapi.ImportDocumentResponse) bool { return !r.Success }) || len(replies) != len(list)-1 {
			t.Errorf("%v %d answers", err, len(replies))
		}
		document, err := typesense(a).Collection(index).Documents().Create(t.Context(), bodies[0])
		if id, _ := document["id"].(string); err != nil || strings.HasPrefix(id, "again-") || document[adapters.SketchField] != nil || document["title"] == "" {
			t.Errorf("%v %v", err, document)
		}
	}
}
