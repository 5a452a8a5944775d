package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// TestEqualUpdates sends updates with the text that is stored already, alone and in a bulk, directly and through the sidecar. With a sketch
// that is a no-op either way; without one the first through the sidecar stores the sketch, and no more than that, and the next is a no-op
// (decision 030).
func TestEqualUpdates(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			base := serveFile(t, config(t, e, setup{match: "noop-*"}))
			const text = `"title":"a report of some length","body":"the river rose again last night and the ferry stays at its pier"`
			api{e, base}.create(t, "noop-1")
			document := func(id, from string) {
				call(t, e, "PUT", from+"/noop-1/_doc/"+id+"?refresh=true", `{`+text+`,"n":1}`).want(t, 201)
			}
			document("sketched", base)
			for _, id := range []string{"alone", "bulk", "directly"} {
				document(id, e.URL)
			}
			alone := func(from, id, doc string) string {
				var r struct {
					Result  string
					Version int `json:"_version"`
				}
				check(t, json.Unmarshal(call(t, e, "POST", from+"/noop-1/_update/"+id, `{"doc":{`+doc+`}}`).want(t, 200).body, &r))
				return fmt.Sprint(r.Result, " ", r.Version)
			}
			bulk := func(from, id, doc string) string {
				lines := fmt.Sprintf("{\"update\":{\"_index\":\"noop-1\",\"_id\":%q}}\n{\"doc\":{%s}}\n", id, doc)
				var r struct {
					Items []struct {
						Update struct {
							Result  string
							Version int `json:"_version"`
						}
					}
				}
				if err := json.Unmarshal(call(t, e, "POST", from+"/_bulk", lines).want(t, 200).body, &r); err != nil || len(r.Items) != 1 {
					t.Fatal(err, r)
				}
				return fmt.Sprint(r.Items[0].Update.Result, " ", r.Items[0].Update.Version)
			}
			for _, c := range []struct {
				name, got, want string
			}{
				{"directly, no sketch", alone(e.URL, "directly", text), "noop 1"},
				{"alone, with a sketch", alone(base, "sketched", text), "noop 1"},
				{"in a bulk, with a sketch", bulk(base, "sketched", text), "noop 1"},
				{"no text, with a sketch", alone(base, "sketched", `"n":1`), "noop 1"},
				{"no text, no sketch", alone(base, "alone", `"n":1`), "noop 1"},
				{"alone, no sketch", alone(base, "alone", text), "updated 2"},
				{"alone, again", alone(base, "alone", text), "noop 2"},
				{"in a bulk, no sketch", bulk(base, "bulk", text), "updated 2"},
				{"in a bulk, again", bulk(base, "bulk", text), "noop 2"},
				{"a part of the text", alone(base, "sketched", `"title":"a report of some length"`), "updated 2"},
				{"a part, again", alone(base, "sketched", `"title":"a report of some length"`), "noop 2"},
				{"all of it after that", alone(base, "sketched", text), "updated 3"},
			} {
				if c.got != c.want {
					t.Errorf("%s: %s, want %s", c.name, c.got, c.want)
				}
			}
			source := func(id string) map[string]any {
				var m map[string]any
				check(t, json.Unmarshal(call(t, e, "GET", e.URL+"/noop-1/_source/"+id, "").want(t, 200).body, &m))
				return m
			}
			plain, first := source("directly"), source("sketched")
			for _, id := range []string{"alone", "bulk", "sketched"} {
				got := source(id)
				if got[adapters.SketchField] == nil || got[adapters.SketchField] != first[adapters.SketchField] {
					t.Errorf("%s has the sketch %v", id, got[adapters.SketchField])
				}
				delete(got, adapters.SketchField)
				same(t, plain, got, "%s", id)
			}
		})
	}
	t.Run(engines.Typesense, func(t *testing.T) { // which knows neither versions nor no-ops
		e := engines.Shared(t, engines.Typesense)
		direct, through := api{e, e.URL}, api{e, serveFile(t, config(t, e, setup{match: "noop-*"}))}
		replies := map[bool][]string{}
		for _, ours := range []bool{false, true} {
			a, name := direct, "noop-direct"
			if ours {
				a, name = through, "noop-through"
			}
			a.create(t, name)
			const doc = `{"id":"1","title":"a report of some length","body":"the river rose again last night"}`
			call(t, e, "POST", e.URL+"/collections/"+name+"/documents", doc).want(t, 201)
			for range 2 {
				r := call(t, e, "PATCH", a.base+"/collections/"+name+"/documents/1", `{"title":"a report of some length","body":"the river rose again last night"}`)
				replies[ours] = append(replies[ours], fmt.Sprint(r.status, " ", string(r.body)))
				r = call(t, e, "POST", a.base+"/collections/"+name+"/documents/import?action=update&return_doc=true", doc+"\n")
				replies[ours] = append(replies[ours], fmt.Sprint(r.status, " ", string(r.body)))
			}
			stored := string(call(t, e, "GET", e.URL+"/collections/"+name+"/documents/1", "").want(t, 200).body)
			if strings.Contains(stored, `"neardup_sketch":"`) != ours {
				t.Errorf("stored: %s", stored)
			}
		}
		same(t, replies[false], replies[true], "")
	})
}
