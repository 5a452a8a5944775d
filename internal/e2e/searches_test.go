package e2e

import (
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestRescoredSearch folds within what the engine rescores, and leaves alone what reaches beyond.
func TestRescoredSearch(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	index := "rescore-1"
	through, direct := api{e, serve(t, e, setup{match: "rescore-*"})}, api{e, e.URL}
	through.create(t, index, documents(t)...)
	search := func(base string, from, size, window int) reply {
		return call(t, e, "POST", base+"/"+index+"/_search", fmt.Sprintf(`{"query":{"match":{"body":"the"}},"from":%d,"size":%d,`+
			`"rescore":{"window_size":%d,"query":{"rescore_query":{"match":{"title":"for to in"}},"rescore_query_weight":-2}}}`, from, size, window)).want(t, 200)
	}
	raw, _ := idsOf(t, search(e.URL, 0, 100, 100))
	want := newOracle(t, direct, documents(t)).collapsed(raw)
	for _, from := range []int{0, 10, 20} {
		r := search(through.base, from, 10, 100)
		got, _ := idsOf(t, r)
		if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; ") {
			t.Fatal(outcome)
		}
		same(t, want[from:from+10], got, "from %d: the definition (-), the page (+)", from)
	}
	for _, c := range []struct{ from, size, window int }{{0, 10, 10}, {0, 20, 10}, {90, 10, 100}} {
		r := search(through.base, c.from, c.size, c.window)
		same(t, "bypassed; reason=rescore", r.header.Get("Neardup"), "%+v", c)
		got, _ := idsOf(t, r)
		own, _ := idsOf(t, search(e.URL, c.from, c.size, c.window))
		same(t, own, got, "%+v: directly (-), through us (+)", c)
	}
}

// TestCompletionSuggester has suggestions whose options are hits, beside a search whose hits fold or that has none.
func TestCompletionSuggester(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	index := "suggest-1"
	through, direct := api{e, serve(t, e, setup{match: "suggest-*"})}, api{e, e.URL}
	direct.drop(t, index)
	call(t, e, "PUT", through.base+"/"+index, `{"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"},"s":{"type":"completion"},"n":{"type":"integer"}}}}`).want(t, 200)
	var lines strings.Builder
	for i := range 6 {
		fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":\"%d\"}}\n{\"n\":%d,\"s\":\"river %d\",\"title\":\"about %d\",\"body\":\"%s\"}\n", index, i, i, i, i/2, strings.Repeat(fmt.Sprintf("word%d ", i/2), 12))
	}
	through.loadLines(t, index, lines.String())
	for _, extra := range []string{``, `,"docvalue_fields":["n"]`, `,"_source":["n"]`, `,"query":{"match_none":{}}`} {
		body := `{"sort":"n","suggest":{"mine":{"prefix":"ri","completion":{"field":"s","size":6}}}` + extra + `}`
		want := jsonedit.Get(members(t, call(t, e, "POST", e.URL+"/"+index+"/_search", body).want(t, 200).body), "suggest")
		r := call(t, e, "POST", through.base+"/"+index+"/_search", body).want(t, 200)
		same(t, string(ourMember.ReplaceAll(want, nil)), string(jsonedit.Get(members(t, r.body), "suggest")), "%s: directly (-), through us (+)", extra)
		if outcome := r.header.Get("Neardup"); !strings.HasPrefix(outcome, "collapsed; ") {
			t.Error(outcome)
		}
	}
}

func members(t *testing.T, object []byte) []jsonedit.Member {
	t.Helper()
	return must(jsonedit.Members(object))(t)
}

var ourMember = regexp.MustCompile(`,"neardup_sketch":"[^"]*"`)

// TestSearchPipelines has OpenSearch send searches through pipelines that cut, sort and change what is found: by a setting of the
// index, or by the request. Pages are the engine's own, and the reply says why.
func TestSearchPipelines(t *testing.T) {
	e, index := engines.Shared(t, engines.OpenSearch), "spipe-1"
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "spipe-*"})}
	through.create(t, index, documents(t)...)
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	pipelines := map[string]string{
		"rename": `{"response_processors":[{"rename_field":{"field":"title","target_field":"headline"}}]}`,
		"filter": `{"request_processors":[{"filter_query":{"query":{"match":{"body":"ferry"}}}}]}`,
		"cut":    `{"response_processors":[{"truncate_hits":{"target_size":3}}]}`,
		"one each": `{"request_processors":[{"oversample":{"sample_factor":2}}],` +
			`"response_processors":[{"collapse":{"field":"host"}},{"truncate_hits":{}}]}`,
		"script": `{"request_processors":[{"script":{"source":"ctx._source['size'] = 4"}}]}`,
		"sort": `{"response_processors":[{"split":{"field":"title","separator":" ","target_field":"words"}},` +
			`{"sort":{"field":"words","order":"desc"}}]}`,
	}
	bodies := []string{
		`{"size":10,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]}`,
		`{"from":3,"size":3,"query":{"match":{"body":"the"}},"sort":["_score",{"id":"asc"}]}`,
	}
	same := func(name, path, body, header string) {
		t.Helper()
		own, got := call(t, e, "POST", direct.base+path, body), call(t, e, "POST", through.base+path, body)
		same(t, header, got.header.Get("Neardup"), "%s", name)
		ids, _ := idsOf(t, got.want(t, own.status))
		want, _ := idsOf(t, own)
		if diff := cmp.Diff(want, ids); diff != "" || len(want) == 0 || strings.Contains(string(got.body), "neardup_sketch") {
			t.Errorf("%s, %s: -directly +through %s", name, body, diff)
		}
	}
	for name, pipeline := range pipelines {
		id := "spipe-" + strings.ReplaceAll(name, " ", "-")
		call(t, e, "PUT", e.URL+"/_search/pipeline/"+id, pipeline).want(t, 200)
		for _, body := range bodies {
			same(name+" in the body", "/"+index+"/_search", `{"search_pipeline":`+pipeline+`,`+body[1:], "bypassed; reason=search_pipeline")
			same(name+" by the request", "/"+index+"/_search?search_pipeline="+id, body, "bypassed; reason=search_pipeline")
		}
		call(t, e, "PUT", e.URL+"/"+index+"/_settings", fmt.Sprintf(`{"index.search.default_pipeline":%q}`, id)).want(t, 200)
		anew := api{e, serve(t, e, setup{match: "spipe-*"})} // which has not looked at the index yet
		through = anew
		for _, body := range bodies {
			same(name+" by the index", "/"+index+"/_search", body, "bypassed; reason=search_pipeline")
			same(name+" by one of two", "/"+index+",nothing*/_search", body, "bypassed; reason=search_pipeline")
			inPIT := `{"pit":{"id":"` + openPIT(t, e, e.URL, index) + `"},` + body[1:]
			same(name+" by the index of a point in time", "/_search", inPIT, "bypassed; reason=search_pipeline")
		}
		call(t, e, "PUT", e.URL+"/"+index+"/_settings", `{"index.search.default_pipeline":null}`).want(t, 200)
		call(t, e, "DELETE", e.URL+"/_search/pipeline/"+id, "").want(t, 200)
	}
	through = api{e, serve(t, e, setup{match: "spipe-*"})}
	if got := call(t, e, "POST", through.base+"/"+index+"/_search", bodies[0]).want(t, 200).header.Get("Neardup"); !strings.HasPrefix(got, "collapsed;") {
		t.Error("without a pipeline:", got)
	}
}

// TestJobsPastSearchPipelines has jobs and look-ups read an index whose searches OpenSearch sends through a pipeline that leaves documents
// out, renames a field and cuts lists: they go by all that is stored, as in an index without.
func TestJobsPastSearchPipelines(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	direct, list := api{e, e.URL}, documents(t)
	defer call(t, e, "DELETE", e.URL+"/_search/pipeline/past", "")
	call(t, e, "PUT", e.URL+"/_search/pipeline/past", `{"request_processors":[{"filter_query":{"query":{"match":{"body":"ferry"}}}}],"response_processors":[`+
		`{"rename_field":{"ignore_failure":true,"field":"title","target_field":"headline"}},{"truncate_hits":{"target_size":3}}]}`).want(t, 200)
	var seen [2][]string
	for i, index := range []string{"past-plain", "past-piped"} {
		direct.create(t, index, list...)
		if i == 1 {
			call(t, e, "PUT", e.URL+"/"+index+"/_settings", `{"index.search.default_pipeline":"past"}`).want(t, 200)
		}
		file := config(t, e, setup{match: index, rule: "bands: auto\nmin_shingles: 8\non_duplicate: skip"})
		for _, args := range [][]string{{"setup"}, {"reindex"}, {"verify"}, {"verify", "--sample", "20"}, {"similar", "--index", index, list[0].ID}} {
			out, code := sidecar(t, append(args[:1:1], append([]string{"--config", file}, args[1:]...)...)...)
			out, _, _ = strings.Cut(out, ", in ") // what it took
			seen[i] = append(seen[i], fmt.Sprint(args[0], code, out))
		}
		base := serveFile(t, file)
		for _, d := range list[:20] {
			_, alike, _ := strings.Cut(string(call(t, e, "GET", base+"/_neardup/"+index+"/similar/"+d.ID, "").body), `"total"`)
			written := call(t, e, "PUT", base+"/"+index+"/_doc/new-"+d.ID, fmt.Sprintf(`{"title":%q,"body":%q}`, d.Title, d.Body))
			seen[i] = append(seen[i], d.ID+": "+alike, fmt.Sprint(written.status, strings.Contains(string(written.body), "noop")))
		}
	}
	for i := range seen[1] {
		seen[1][i] = strings.ReplaceAll(seen[1][i], "past-piped", "past-plain")
	}
	if diff := cmp.Diff(seen[0], seen[1]); diff != "" || !strings.Contains(strings.Join(seen[0], " "), "200 true") {
		t.Errorf("-without a pipeline +with one %s", diff)
	}
}

// tally is what pages of ten hits are like, of several searches together, as far as the engine's own lists go.
type tally struct {
	first   int // hits on first pages
	copies  int // of them near-duplicates of another one on the page
	missing int // groups that first pages do not show, though only fewer than ten come before
	short   int // pages with fewer hits than asked for, though a later one has some
	again   int // groups that a later page shows again
	lost    int // groups that no page shows
	total   int // what the replies say how many hits there are
	shown   int // hits on all pages
}

// TestSearchProcessors compares OpenSearch's own way to rid pages of duplicates (oversample, collapse and truncate_hits in a search
// pipeline) with its collapse and with ours, over a key that people can make (a hash of the text), one that some documents lack, and one
// without a mistake. It holds what docs/comparison.md says of them; go test -v prints the figures.
func TestSearchProcessors(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	if e.Name == engines.OpenSearch2 {
		t.Skip("its packages have none of these processors")
	}
	const index, size = "sproc-1", 10
	list := documents(t)
	direct, through := api{e, e.URL}, api{e, serve(t, e, setup{match: "sproc-*", threshold: 0.64})}
	through.create(t, index)
	call(t, e, "PUT", e.URL+"/"+index+"/_mapping", `{"properties":{"hash":{"type":"keyword"},"some":{"type":"keyword"},"group":{"type":"keyword"}}}`).want(t, 200)
	through.load(t, index, list)
	groups := map[string]string{}
	lines := ""
	for i, d := range list {
		groups[d.ID] = d.Group
		keys := fmt.Sprintf(`"hash":"%x","group":%q`, hashed(d), d.Group)
		if i%20 != 0 {
			keys += fmt.Sprintf(`,"some":%q`, d.Group)
		}
		lines += fmt.Sprintf("{\"update\":{\"_index\":%q,\"_id\":%q}}\n{\"doc\":{%s}}\n", index, d.ID, keys)
	}
	direct.loadLines(t, index, lines)

	walk := func(name string, a api, params, more string) (sum tally) {
		t.Helper()
		for _, q := range queries {
			raw := direct.search(t, index, q, 0, 1000, "").ids
			var all []string
			for _, id := range raw {
				if !slices.Contains(all, groups[id]) {
					all = append(all, groups[id])
				}
			}
			seen := map[string]bool{}
			var lengths []int // of the pages
			for from := 0; from < len(raw); from += size {
				p := a.searchMore(t, index, q, from, size, params, more)
				page := map[string]bool{}
				for _, id := range p.ids {
					g := groups[id]
					if from == 0 && page[g] {
						sum.copies++
					}
					if from > 0 && seen[g] && !page[g] {
						sum.again++
					}
					page[g] = true
				}
				maps.Copy(seen, page)
				sum.shown += len(p.ids)
				if from == 0 {
					sum.first += len(p.ids)
					sum.total += p.total
					for _, g := range all[:min(size, len(all))] {
						if !page[g] {
							sum.missing++
						}
					}
				}
				lengths = append(lengths, len(p.ids))
			}
			for i, n := range lengths {
				if n < size && slices.Max(append(slices.Clone(lengths[i+1:]), 0)) > 0 {
					sum.short++
				}
			}
			sum.lost += len(all) - len(seen)
		}
		t.Logf("%-32s %+v", name, sum)
		return sum
	}
	plain := walk("plain", direct, "", "")
	for _, ours := range []tally{walk("ours", through, "", ""), walk("ours, collapsed totals", through, "neardup_totals=collapsed", "")} {
		if ours.copies+ours.missing+ours.short+ours.lost > 0 || ours.total != plain.total && ours.total != ours.shown {
			t.Errorf("ours: %+v", ours)
		}
	}
	for _, key := range []string{"hash", "some", "group"} {
		walk("collapse by "+key, direct, "", `,"collapse":{"field":"`+key+`"}`)
		for _, factor := range []int{2, 5} {
			p := walk(fmt.Sprintf("processors by %s, factor %d", key, factor), direct, "", fmt.Sprintf(`,"search_pipeline":{"request_processors":[`+
				`{"oversample":{"sample_factor":%d}}],"response_processors":[{"collapse":{"field":%q}},{"truncate_hits":{}}]}`, factor, key))
			if p.short == 0 && key != "hash" || p.copies == 0 && key == "hash" || p.again < 100 || p.total != plain.total {
				t.Errorf("by %s, factor %d: %+v: docs/comparison.md says otherwise", key, factor, p)
			}
		}
	}
}

// hashed is a hash of a document's text, as copies share it.
func hashed(d corpus.Document) uint64 {
	h := fnv.New64()
	h.Write([]byte(d.Body))
	return h.Sum64()
}

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
	decode(t, call(t, e, "GET", e.URL+"/_nodes/transport", "").want(t, 200).body, &nodes)
	address := ""
	for _, node := range nodes.Nodes {
		address = node.Transport.Address
	}
	call(t, e, "PUT", e.URL+"/_cluster/settings", fmt.Sprintf(`{"persistent":{"cluster.remote.elsewhere.seeds":[%q]}}`, address)).want(t, 200)
	defer call(t, e, "PUT", e.URL+"/_cluster/settings", `{"persistent":{"cluster.remote.elsewhere.seeds":null}}`)

	local, index := "remote-1", "elsewhere:remote-1"
	near, direct := api{e, serve(t, e, setup{match: "remote-*"})}, api{e, e.URL}
	far := api{e, serve(t, e, setup{match: "elsewhere:remote-*"})}
	near.create(t, local, documents(t)...)
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
		same(t, o.collapsed(raw)[:20], got, "%s", r.header.Get("Neardup"))
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
	decode(t, r.body, &result)
	for _, h := range result.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids, result.Hits.Total.Value
}
