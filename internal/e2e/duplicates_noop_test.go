package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestDuplicatesNoOps: an update without a change stays one in a document whose cluster is another's, as after a job, and keeps it there; an
// update to another text leaves it. Both with and without a look at near-duplicates at write time.
func TestDuplicatesNoOps(t *testing.T) {
	const text = `"title":"the ferry to the island leaves the old pier at seven","body":"it carries bread, letters and the only doctor, and comes back at night"`
	for _, more := range []string{"on_duplicate: tag", "native: true"} {
		t.Run(more, func(t *testing.T) {
			e := engines.Shared(t, engines.Elasticsearch)
			index := "noops-1"
			direct := api{e, e.URL}
			through := api{e, serveFile(t, walking(t, e, walkRule{match: index, window: 1000, more: "bands: auto\n" + more}))}
			through.create(t, index)
			through.drop(t, index)
			update := func(doc, want string) ledgered {
				t.Helper()
				reply := call(t, e, "POST", through.base+"/"+index+"/_update/1", `{"doc":{`+doc+`}}`).want(t, 200).body
				var r struct{ Result string }
				if err := json.Unmarshal(reply, &r); err != nil || r.Result != want {
					t.Errorf("%s: %s, want %s", doc, reply, want)
				}
				return ledgerOf(t, direct, index)["1"]
			}
			call(t, e, "PUT", through.base+"/"+index+"/_doc/1", `{`+text+`,"n":1}`).want(t, 201)
			own := ledgerOf(t, direct, index)["1"].Cluster
			if update(text, "noop").Cluster != own || len(own) != 17 {
				t.Errorf("its own cluster is %q", own)
			}
			job := own[:4] + "0000000000000"
			call(t, e, "POST", direct.base+"/"+index+"/_update/1", `{"doc":{"neardup_cluster":"`+job+`"}}`).want(t, 200)
			if got := update(text, "noop").Cluster; got != job {
				t.Errorf("an update without a change moves it from %s to %q", job, got)
			}
			if got := update(text+`,"n":2`, "updated").Cluster; got != job {
				t.Errorf("an update of another field moves it from %s to %q", job, got)
			}
			if got := update(strings.Replace(text, "ferry", "night ferry", 1), "updated"); got.Cluster == job || got.Cluster == own || len(got.Bands) == 0 {
				t.Errorf("another text leaves it in %q", got.Cluster)
			}
			cleared := update(`"title":"a title by itself"`, "updated")
			if cleared.Sketch != "" || len(cleared.Bands) > 0 || len(cleared.Cluster) != 17 || cleared.Cluster == own {
				t.Errorf("a part of the text leaves %+v", cleared.Ours)
			}
			if got := update(`"title":"a title by itself"`, "noop").Cluster; got != cleared.Cluster {
				t.Errorf("the same part again moves it from %s to %s", cleared.Cluster, got)
			}
			if got := update(`"title":null,"body":""`, "updated").Cluster; got != cleared.Cluster {
				t.Errorf("without a text its cluster is %s, not %s", got, cleared.Cluster)
			}
			if strings.Contains(string(call(t, e, "GET", through.base+"/"+index+"/_source/1", "").want(t, 200).body), adapters.FieldPrefix) {
				t.Error("our fields show")
			}
		})
	}
}

// TestDuplicatesOfOthers: a client that may write and not search has its documents stored as without us.
func TestDuplicatesOfOthers(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	index := "others-1"
	through, direct := duplicates(t, e, index, "skip")
	var key struct{ Value string }
	reply := call(t, e, "POST", direct.base+"/keys", `{"description":"writes","actions":["documents:create","documents:upsert","collections:get"],"collections":["`+index+`"]}`).want(t, 201)
	if err := json.Unmarshal(reply.body, &key); err != nil {
		t.Fatal(err)
	}
	const text = `"title":"the ferry to the island leaves the old pier at seven","body":"it carries bread, letters and the only doctor, and comes back at night"`
	for _, id := range []string{"1", "2"} {
		call(t, e, "POST", through.base+"/collections/"+index+"/documents", `{"id":"`+id+`",`+text+`}`, "X-Typesense-Api-Key", key.Value).want(t, 201)
	}
	if all := ledgerOf(t, direct, index); len(all) != 2 || all["2"].Sketch == "" {
		t.Errorf("stored is %v", all)
	}
}
