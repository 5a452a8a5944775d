package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// TestCountsByGroup compares what facets count with a count by hand: over the collapsed list at query time, over clusters in native mode. The clusters are
// random ones, which have nothing to do with the texts.
func TestCountsByGroup(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		random := rand.New(rand.NewPCG(25, 2))
		list := documents(t)
		c := &clustered{oracle: newOracle(t, api{e, e.URL}, list), e: e, index: "counts", list: list, ids: map[string]string{}}
		at := map[string]int{}
		for i, d := range list {
			c.ids[d.ID], at[d.ID] = nativeRule(t).ClusterID(uint64(random.IntN(90))), i%13
		}
		c.direct.drop(t, c.index)
		c.create(t)
		c.write(t, list)
		usual, native := api{e, serve(t, e, setup{match: c.index})}, api{e, serve(t, e, setup{match: c.index, rule: "native: true\ncounts: groups"})}
		estimate := map[bool]string{true: "exact", false: "approximate"}[c.direct.typesense()]
		folded := 0
		for _, q := range queries[:4] {
			raw := c.raw(t, c.index, q)
			shown := c.collapsed(raw)
			c.window = 20
			within := c.collapsed(raw)
			within = within[:len(within)-max(len(raw)-c.window, 0)]
			c.window = 1000
			folded += len(raw) - len(shown)
			for range 2 {
				f := randomFacets(random, c.direct.typesense(), at)
				size := random.IntN(2) * (1 + random.IntN(30))
				ask := func(through api, params string) (counts map[string]int, p page) {
					t.Helper()
					p = through.searchMore(t, c.index, q, 0, size, params+f.params, f.more)
					return countsIn(t, p.reply.body), p
				}
				counted := func(through api, params string, documents []string, label string) {
					t.Helper()
					counts, p := ask(through, params)
					same(t, f.count(c.list, documents, nil), counts, "%q%s %s%s size %d: %s", q, params, f.params, f.more, size, p.outcome)
					if !strings.Contains(p.outcome, "; counts="+label) {
						t.Errorf("%q%s: %s, want counts=%s", q, params, p.outcome, label)
					}
					_, plain := ask(through, "&neardup_counts=engine")
					same(t, plain.ids, p.ids, "the hits of %q%s", q, params)
				}
				counted(usual, "&neardup_counts=groups", shown, "exact")
				if size > 0 && len(raw) > 20 {
					counts, p := ask(usual, "&neardup_counts=groups&neardup_window=20")
					same(t, f.count(c.list, within, nil), counts, "%q in a window of 20 %s: %s", q, f.more, p.outcome)
				}
				counts, p := ask(native, "")
				same(t, f.count(c.list, raw, c.ids), counts, "%q natively %s%s size %d: %s", q, f.params, f.more, size, p.outcome)
				if !strings.Contains(p.outcome, "; counts="+estimate+"; native") {
					t.Errorf("%q natively: %s", q, p.outcome)
				}
				counts, p = ask(native, "&neardup_counts=engine")
				same(t, f.count(c.list, raw, nil), counts, "%q natively %s: %s", q, f.more, p.outcome)
			}
		}
		if folded < 200 {
			t.Errorf("only %d hits fold", folded)
		}
		c.ids = nil
		c.write(t, list[:1]) // without a cluster: from now on searches are collapsed at query time
		f := randomFacets(random, c.direct.typesense(), at)
		p := native.searchMore(t, c.index, "*", 0, 0, f.params, f.more)
		same(t, f.count(c.list, c.collapsed(c.raw(t, c.index, "*")), nil), countsIn(t, p.reply.body), "%s%s: %s", f.params, f.more, p.outcome)
		isntNative(t, p.outcome, "unclustered")
	})
}

// facets are what a search asks for, and the same by hand: the values of each document, those of facets within others with these in front.
type facets struct {
	params, more string
	values       func(d corpus.Document) []string
}

// count counts each value once for each of the documents, or for each of their clusters.
func (f *facets) count(list []corpus.Document, documents []string, clusters map[string]string) map[string]int {
	seen, counts := map[string]bool{}, map[string]int{}
	for _, d := range list {
		if !slices.Contains(documents, d.ID) {
			continue
		}
		for _, value := range f.values(d) {
			key := value + " " + d.ID
			if clusters != nil {
				key = value + " " + clusters[d.ID]
			}
			if !seen[key] {
				seen[key] = true
				counts[value]++
			}
		}
	}
	return counts
}

// randomFacets returns facets of each kind that both engines of a dialect know, one within the other where there can be.
func randomFacets(random *rand.Rand, typesense bool, at map[string]int) *facets {
	if typesense {
		return &facets{"&facet_by=host,url&max_facet_values=1000", "", func(d corpus.Document) []string { return []string{"host:" + d.Host, "url:" + d.URL} }}
	}
	kinds := []struct {
		json  string
		value func(d corpus.Document) string
	}{
		{`"terms":{"field":"host","size":1000}`, func(d corpus.Document) string { return d.Host }},
		{`"terms":{"field":"host","size":1000,"order":{"_key":"desc"}}`, func(d corpus.Document) string { return d.Host }},
		{`"histogram":{"field":"at","interval":5}`, func(d corpus.Document) string { return strconv.Itoa(at[d.ID]/5*5) + ".0" }},
		{`"date_histogram":{"field":"published_at","calendar_interval":"month","format":"yyyy-MM"}`, func(d corpus.Document) string { return d.PublishedAt[:7] }},
		{`"range":{"field":"at","keyed":true,"ranges":[{"key":"low","to":6},{"key":"high","from":6}]}`, func(d corpus.Document) string {
			return map[bool]string{true: "low", false: "high"}[at[d.ID] < 6]
		}},
		{`"filters":{"filters":{"three":{"term":{"at":3}}},"other_bucket_key":"rest"}`, func(d corpus.Document) string {
			return map[bool]string{true: "three", false: "rest"}[at[d.ID] == 3]
		}},
		{`"filter":{"range":{"at":{"gte":0}}}`, func(corpus.Document) string { return "" }},
	}
	outer, inner := kinds[random.IntN(len(kinds))], kinds[random.IntN(len(kinds))]
	return &facets{[]string{"", "&typed_keys=true"}[random.IntN(2)], fmt.Sprintf(`,"aggs":{"out":{%s,"aggs":{"in":{%s}}}}`, outer.json, inner.json), func(d corpus.Document) []string {
		return []string{"out:" + outer.value(d), "out:" + outer.value(d) + ":in:" + inner.value(d)}
	}}
}

// countsIn returns what the facets of a reply count.
func countsIn(t *testing.T, body []byte) map[string]int {
	t.Helper()
	counts := map[string]int{}
	var reply struct {
		Aggregations map[string]any
		FacetCounts  []struct {
			FieldName string `json:"field_name"`
			Counts    []struct {
				Count int
				Value string
			}
		} `json:"facet_counts"`
	}
	decode(t, body, &reply)
	for _, f := range reply.FacetCounts {
		for _, c := range f.Counts {
			counts[f.FieldName+":"+c.Value] = c.Count
		}
	}
	readBuckets(counts, "", reply.Aggregations)
	maps.DeleteFunc(counts, func(_ string, n int) bool { return n == 0 })
	if strings.Contains(string(body), "neardup_cluster") {
		t.Errorf("ours shows: %s", body)
	}
	return counts
}

// readBuckets adds the counts of aggregations to what is counted, with what they are within in front of their names.
func readBuckets(counts map[string]int, within string, aggregations map[string]any) {
	bucket := func(name, key string, one map[string]any) {
		counts[within+name+":"+key] = int(one["doc_count"].(float64))
		inner := map[string]any{}
		for name, value := range one {
			if object, is := value.(map[string]any); is {
				inner[name] = object
			}
		}
		readBuckets(counts, within+name+":"+key+":", inner)
	}
	for name, value := range aggregations {
		name = name[strings.LastIndex(name, "#")+1:]
		one := value.(map[string]any)
		switch list := one["buckets"].(type) {
		case []any:
			for _, b := range list {
				b := b.(map[string]any)
				key, formatted := b["key_as_string"].(string)
				if text, is := b["key"].(string); is {
					key = text
				} else if !formatted {
					key = strconv.FormatFloat(b["key"].(float64), 'f', 1, 64)
				}
				bucket(name, key, b)
			}
		case map[string]any:
			for key, b := range list {
				bucket(name, key, b.(map[string]any))
			}
		default:
			bucket(name, "", one)
		}
	}
}

// TestCountsFirstTerms: of more terms than are asked for those come back that the most clusters have, in that order.
func TestCountsFirstTerms(t *testing.T) {
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		c := newClustered(t, e, "counts-first", documents(t))
		p := c.through.searchMore(t, c.index, "*", 0, 0, "&neardup_counts=groups", `,"aggs":{"h":{"terms":{"field":"host","size":3}}}`)
		all := (&facets{values: func(d corpus.Document) []string { return []string{d.Host} }}).count(c.list, c.raw(t, c.index, "*"), c.ids)
		want := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return all[b]*1000 - all[a]*1000 + strings.Compare(a, b) })
		buckets, err := jsonedit.Elements(lookup(p.reply.body, "aggregations", "h", "buckets"))
		check(t, err)
		var got []string
		for _, b := range buckets {
			var one struct{ Key string }
			check(t, json.Unmarshal(b, &one))
			got = append(got, one.Key)
		}
		same(t, want[:3], got, "%v: %s", all, p.reply.body)
	})
}

// lookup returns what keys lead to in an object.
func lookup(object []byte, keys ...string) []byte {
	for _, key := range keys {
		object = jsonedit.Lookup(object, key)
	}
	return object
}
