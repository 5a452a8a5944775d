package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestRemoteCluster searches an index by way of the engine's being a remote cluster to itself.
func TestRemoteCluster(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	var nodes struct {
		Nodes map[string]struct {
			Transport struct {
				Address string `json:"publish_address"`
			}
		}
	}
	check(t, json.Unmarshal(call(t, e, "GET", e.URL+"/_nodes/transport", "").want(t, 200).body, &nodes))
	address := ""
	for _, node := range nodes.Nodes {
		address = node.Transport.Address
	}
	call(t, e, "PUT", e.URL+"/_cluster/settings", fmt.Sprintf(`{"persistent":{"cluster.remote.elsewhere.seeds":[%q]}}`, address)).want(t, 200)
	defer call(t, e, "PUT", e.URL+"/_cluster/settings", `{"persistent":{"cluster.remote.elsewhere.seeds":null}}`)

	local, index := "remote-1", "elsewhere:remote-1"
	near, direct := api{e, serve(t, e, setup{match: "remote-*"})}, api{e, e.URL}
	far := api{e, serve(t, e, setup{match: "elsewhere:remote-*"})}
	near.create(t, local)
	near.load(t, local, documents(t))
	o := newOracle(t, direct, documents(t))
	for _, minimize := range []string{"true", "false"} {
		params := "ccs_minimize_roundtrips=" + minimize
		for _, target := range []string{index, "elsewhere:remote-*," + local, index + "," + local} {
			body := `{"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"},{"_index":"asc"}],"size":100}`
			raw := call(t, e, "POST", e.URL+"/"+target+"/_search?"+params, body).want(t, 200)
			ids, _ := idsOf(t, raw)
			if len(ids) < 50 {
				t.Fatalf("%s: %s", target, raw.body)
			}
			// A rule for names of this cluster folds none of another's, and one for those of another folds them.
			r := call(t, e, "POST", near.base+"/"+target+"/_search?"+params, body).want(t, 200)
			got, _ := idsOf(t, r)
			if target == index {
				same(t, ids, got, "%s: directly (-), through us (+)", target)
			} else if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; ") || strings.Contains(outcome, "folded=0") {
				t.Errorf("%s: %s", target, outcome)
			}
			if strings.Contains(string(r.body), "neardup_sketch") {
				t.Errorf("%s: our field is shown", target)
			}
		}
		body := `{"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}],"size":20}`
		raw, _ := idsOf(t, call(t, e, "POST", e.URL+"/"+local+"/_search", strings.Replace(body, `"size":20`, `"size":300`, 1)).want(t, 200))
		r := call(t, e, "POST", far.base+"/"+index+"/_search?"+params, body).want(t, 200)
		got, _ := idsOf(t, r)
		if diff := cmp.Diff(o.collapsed(raw)[:20], got); diff != "" {
			t.Errorf("the definition (-), the page (+):\n%s\n%s", diff, r.header.Get("Neardup"))
		}
	}
}

// idsOf returns the ids of the hits of a reply, and the total.
func idsOf(t *testing.T, r reply) (ids []string, total int) {
	t.Helper()
	var result struct {
		Hits struct {
			Total struct{ Value int }
			Hits  []struct {
				ID string `json:"_id"`
			}
		}
	}
	check(t, json.Unmarshal(r.body, &result))
	for _, h := range result.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids, result.Hits.Total.Value
}
