package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// marked is what a hit says of the group that it is of, nil for nothing.
type marked struct {
	id    string
	label *struct {
		Group     string
		Size      int
		Exact     *bool
		Agreement *float64
	}
}

// markedHits returns the hits of a reply.
func markedHits(t *testing.T, reply []byte) (list []marked) {
	t.Helper()
	var result struct{ Hits json.RawMessage }
	decode(t, reply, &result)
	if strings.HasPrefix(string(result.Hits), "{") {
		decode(t, result.Hits, &result)
	}
	var hits []struct {
		ID       string `json:"_id"`
		Document struct{ ID string }
		Neardup  json.RawMessage
	}
	decode(t, result.Hits, &hits)
	for _, h := range hits {
		m := marked{id: h.ID + h.Document.ID}
		if h.Neardup != nil {
			decode(t, h.Neardup, &m.label)
		}
		list = append(list, m)
	}
	return list
}

// leaders returns the leader of each hit of a list.
func (o *oracle) leaders(raw []string) map[string]string {
	of := map[string]string{}
	var leaders []string
	for _, id := range raw {
		at := slices.IndexFunc(leaders, func(l string) bool { return o.near(o.sketches[id], o.sketches[l]) })
		if at < 0 {
			leaders, at = append(leaders, id), len(leaders)
		}
		of[id] = leaders[at]
	}
	return of
}

// TestMarkedGroups: the id of a group is that of the leader's cluster as the job stored it, on each page of each query, however the search is made; sizes
// add up to the list; similar and cluster show the same ids.
func TestMarkedGroups(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "marked", documents(t)
		file := config(t, e, setup{match: index, rule: "native: true\nbands: auto"})
		direct, through := api{e, e.URL}, api{e, serveFile(t, file)}
		through.create(t, index, list...)
		table := t.TempDir() + "/clusters.csv"
		succeed(t, "cluster", "--config", file, "--index", index, "--write", "--output", table)
		direct.refresh(t, index)
		o, ids := newOracle(t, direct, list), map[string]string{}
		for id, number := range clustersOf(t).least {
			ids[id] = nativeRule(t).ClusterID(number)
		}
		printed := string(must(os.ReadFile(table))(t))
		for _, d := range list {
			if line := "\n" + d.ID + "," + ids[d.ID] + ","; !strings.Contains(printed, line) {
				t.Fatalf("cluster does not print %q", line)
			}
		}
		for _, q := range queries[1:4] {
			raw := o.raw(t, index, q)
			leader := o.leaders(raw)
			p := through.search(t, index, q, 0, 10, "&neardup_group=true")
			isNative(t, p.outcome)
			for _, h := range markedHits(t, p.reply.body) {
				if h.label == nil || h.label.Group != ids[h.id] || h.label.Size != 0 {
					t.Errorf("%q, natively: %s says %+v, not %s", q, h.id, h.label, ids[h.id])
				}
			}
			for _, params := range []string{"", "&neardup_keep=2", "&neardup_totals=collapsed"} {
				sum, seen := 0, map[string]bool{}
				for from := 0; ; from += 10 {
					page := markedHits(t, through.search(t, index, q, from, 10, "&neardup_group=true"+atQueryTime+params).reply.body)
					for _, h := range page {
						if h.label == nil || h.label.Group != ids[leader[h.id]] || h.label.Exact == nil && params != "&neardup_keep=2" {
							t.Fatalf("%q%s from %d: %s says %+v, and its leader %s is of %s", q, params, from, h.id, h.label, leader[h.id], ids[leader[h.id]])
						}
						if !seen[leader[h.id]] {
							sum += h.label.Size
						}
						seen[leader[h.id]] = true
					}
					if len(page) == 0 {
						break
					}
				}
				if params == "&neardup_totals=collapsed" && sum != len(raw) {
					t.Errorf("%q: the groups of %d hits have %d members", q, len(raw), sum)
				}
			}
		}
		for _, d := range sparse(list, 40) {
			var got likes
			decode(t, call(t, e, "GET", through.base+"/_neardup/"+index+"/similar/"+d.ID, "").want(t, 200).body, &got)
			if got.Group != ids[d.ID] {
				t.Errorf("similar says that %s is of %q", d.ID, got.Group)
			}
			for _, a := range got.Alike {
				if a.Group != ids[a.ID] {
					t.Errorf("similar says that %s is of %q", a.ID, a.Group)
				}
			}
		}
		if out := string(succeed(t, "similar", "--config", file, "--index", index, "a001-original")); !strings.Contains(out, "  GROUP") || strings.Count(out, ids["a001-original"]) < 3 {
			t.Errorf("similar prints no groups: %s", out)
		}
		checkMarkedForms(t, through, index, ids)
	})
}

// checkMarkedForms asks for marks in the ways that searches can be made.
func checkMarkedForms(t *testing.T, through api, index string, ids map[string]string) {
	t.Helper()
	check := func(form string, reply []byte, marks bool) {
		t.Helper()
		hits := markedHits(t, reply)
		if len(hits) < 5 || strings.Contains(string(reply), "neardup_cluster") {
			t.Errorf("%s: %d hits: %s", form, len(hits), reply)
		}
		for _, h := range hits {
			if (h.label != nil) != marks || marks && h.label.Group != ids[h.id] {
				t.Errorf("%s: %s says %+v", form, h.id, h.label)
			}
		}
	}
	first := func(reply []byte, key string) []byte {
		var several map[string]json.RawMessage
		decode(t, reply, &several)
		var list []json.RawMessage
		decode(t, several[key], &list)
		return list[0]
	}
	check("unasked", through.search(t, index, "the", 0, 10, "").reply.body, false)
	check("dry", through.search(t, index, "the", 0, 10, "&neardup_group=true&neardup=dry_run").reply.body, false)
	if through.typesense() {
		for _, more := range []string{"&include_fields=id,title", "&include_fields=id&page=3&per_page=7", "&exclude_fields=body"} {
			check(more, through.search(t, index, "the", 0, 10, "&neardup_group=true"+atQueryTime+more).reply.body, true)
		}
		body := fmt.Sprintf(`{"searches":[{"collection":%q,"q":"the","query_by":"title,body","neardup_group":true,"neardup_window":1000}]}`, index)
		check("multi_search", first(call(t, through.e, "POST", through.base+"/multi_search", body).want(t, 200).body, "results"), true)
		return
	}
	const query = `{"query":{"match":{"body":"the"}}`
	post := func(path, body string) []byte {
		return call(t, through.e, "POST", through.base+path, body).want(t, 200).body
	}
	for _, more := range []string{`,"_source":false`, `,"fields":["title"]`, `,"docvalue_fields":["id"],"from":30`, `,"from":90,"neardup_window":10`, `,"sort":["id"],"from":10`, `,"stored_fields":[]`,
		`,"aggs":{"a":{"terms":{"field":"id"},"aggs":{"t":{"top_hits":{}}}}}`, `,"explain":true`} {
		check(more, post("/"+index+"/_search?neardup_group=true"+atQueryTime, query+more+"}"), true)
	}
	check("msearch", first(post("/_msearch", `{"index":"`+index+`"}`+"\n"+query+`,"neardup_group":true,"neardup_window":1000}`+"\n"), "responses"), true)
	check("filter_path", post("/"+index+"/_search?filter_path=hits.hits._id,hits.hits.neardup&neardup_group=true"+atQueryTime, query+"}"), true)
	check("filter_path without", post("/"+index+"/_search?filter_path=hits.hits._id&neardup_group=true"+atQueryTime, query+"}"), false)
	if through.e.Kind == engines.OpenSearch {
		check("template", post("/"+index+"/_search/template?neardup_group=true"+atQueryTime, `{"source":`+query+`}}`), true)
	}
	checkMarkedCursors(t, through, index, ids)
}

// checkMarkedCursors goes through a list by cursors, in a point in time: further members of a group have its id on later pages too.
func checkMarkedCursors(t *testing.T, through api, index string, ids map[string]string) {
	t.Helper()
	o := newOracle(t, api{through.e, through.e.URL}, documents(t))
	pit, after, raw := openPIT(t, through.e, through.e.URL, index), "", []string{}
	body := func(size int) string {
		return fmt.Sprintf(`{"size":%d,"pit":{"id":%q},"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]%s}`, size, pit, after)
	}
	for _, h := range markedHits(t, call(t, through.e, "POST", through.e.URL+"/_search", body(1000)).want(t, 200).body) {
		raw = append(raw, h.id)
	}
	leader, later := o.leaders(raw), 0
	for {
		reply := call(t, through.e, "POST", through.base+"/_search?neardup_group=true&neardup_keep=3", body(5)).want(t, 200).body
		page := markedHits(t, reply)
		for _, h := range page {
			if h.label == nil || h.label.Group != ids[leader[h.id]] {
				t.Fatalf("after %s: %s says %+v, and its leader %s is of %s", after, h.id, h.label, leader[h.id], ids[leader[h.id]])
			}
			if h.label.Size == 0 {
				later++
			}
		}
		if len(page) == 0 {
			break
		}
		var result struct {
			Hits struct {
				Hits []struct{ Sort json.RawMessage }
			}
		}
		decode(t, reply, &result)
		after = `,"search_after":` + string(result.Hits.Hits[len(page)-1].Sort)
	}
	if later == 0 {
		t.Error("no member came on a later page than its leader")
	}
}
