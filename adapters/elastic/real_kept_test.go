package elastic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// Vectors of four and of 64 numbers, and searches for what is near to them.
const (
	four, four2     = `{"title":"a vector","v":[0.1,0.25,1e-3,7.5]}`, `{"title":"another vector","v":[0.3,-0.25,33554433.5,-10]}`
	nearFour        = `{"knn":{"field":"v","query_vector":[1,2,3,4],"k":10,"num_candidates":10}}`
	nearFourOfTheOS = `{"query":{"knn":{"v":{"vector":[1,2,3,4],"k":10}}}}`
	luceneVector    = `"v":{"type":"knn_vector","dimension":4,"method":{"name":"hnsw","engine":"lucene"`
)

var wide = "[" + strings.Repeat("0.1,-0.25,7,33554433.5,", 15) + "1,2,3,4]"

// kindsOfIndices are kinds of indices whose documents the engine does not show, or does not keep, as they were sent. A job keeps all of what is stored,
// or refuses the index before its first write.
var kindsOfIndices = []struct {
	name      string
	settings  string // members of settings
	later     string // the same, set when the documents are there
	mapping   string // members of mappings beside properties
	fields    string // members of properties
	documents []string
	routing   string
	search    string // finds all documents, by what _source may not show
	refused   string // a part of the reason why documents are not written; "?" where it depends on the engine's version and license
	scores    bool   // the search also gives each document the same score: that depends on nothing else in the index
}{
	{name: "plain", fields: `"n":{"type":"integer"},"as":{"type":"object","enabled":false}`, documents: []string{`{"n":1,"title":"one  text","price":1.50,"as":{"big":12345678901234567890123,"fine":1.10}}`}},
	{name: "dense vectors", fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":4}`, search: nearFour, documents: []string{four, four2, `{"title":"none"}`}},
	{name: "dense vectors as they are", fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":4,"index_options":{"type":"hnsw"}}`, search: nearFour, scores: true,
		documents: []string{four, four2}},
	{name: "vectors of 8 bits", fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":4,"index_options":{"type":"int8_hnsw"}}`, search: nearFour, documents: []string{four, four2}},
	{name: "vectors of 4 bits", fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":4,"index_options":{"type":"int4_hnsw"}}`, search: nearFour, documents: []string{four, four2}},
	{name: "vectors of 1 bit", fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":64,"index_options":{"type":"bbq_hnsw"}}`, documents: []string{`{"title":"a vector","v":` + wide + `}`},
		search: `{"knn":{"field":"v","query_vector":` + wide + `,"k":10,"num_candidates":10}}`},
	{name: "distances", fields: `"v":{"type":"dense_vector","dims":4,"similarity":"l2_norm","index_options":{"type":"hnsw"}}`, search: nearFour, scores: true, documents: []string{four, four2}},
	{name: "products", fields: `"v":{"type":"dense_vector","dims":2,"similarity":"dot_product","index_options":{"type":"hnsw"}}`, scores: true,
		documents: []string{`{"title":"a vector","v":[0.6,0.8]}`, `{"title":"another","v":[-0.8,0.6]}`}, search: `{"knn":{"field":"v","query_vector":[1,0],"k":10,"num_candidates":10}}`},
	{name: "bytes", fields: `"v":{"type":"dense_vector","dims":4,"element_type":"byte"}`, search: nearFour, scores: true, documents: []string{`{"title":"a vector","v":[-128,0,127,5]}`}},
	{name: "bits", fields: `"v":{"type":"dense_vector","dims":32,"element_type":"bit"}`, search: nearFour, scores: true, documents: []string{`{"title":"a vector","v":[-128,0,127,5]}`}},
	{name: "vectors without an index", fields: `"v":{"type":"dense_vector","dims":4,"index":false}`, documents: []string{four, four2}, scores: true,
		search: `{"query":{"script_score":{"query":{"match_all":{}},"script":{"source":"cosineSimilarity(params.v,'v')+1","params":{"v":[1,2,3,4]}}}}}`},
	{name: "nested vectors", fields: `"p":{"type":"nested","properties":{"v":{"type":"dense_vector","similarity":"cosine","dims":2,"index_options":{"type":"hnsw"}},"t":{"type":"text"}}}`, scores: true,
		documents: []string{`{"title":"passages","p":[{"t":"one","v":[0.1,0.2]},{"t":"two","v":[0.3,0.4]}]}`}, search: `{"knn":{"field":"p.v","query_vector":[1,2],"k":10,"num_candidates":10}}`},
	{name: "vectors shown", settings: `"index.mapping.exclude_source_vectors":false`, fields: `"v":{"type":"dense_vector","dims":4}`, search: nearFour, documents: []string{four, four2}},
	{name: "vectors and a final pipeline", settings: `"index.final_pipeline":"neardup-kept"`, fields: `"v":{"type":"dense_vector","similarity":"cosine","dims":4}`, search: nearFour, documents: []string{four, four2}},
	{name: "sparse vectors", fields: `"v":{"type":"sparse_vector"}`, documents: []string{`{"title":"a vector","v":{"a":0.5,"b":1.25}}`}, scores: true,
		search: `{"query":{"sparse_vector":{"field":"v","query_vector":{"a":1,"b":0.5}}}}`},
	{name: "rank features", fields: `"v":{"type":"rank_features"}`, documents: []string{`{"title":"a vector","v":{"a":0.5,"b":1.25}}`}, scores: true,
		search: `{"query":{"rank_feature":{"field":"v.a","linear":{}}}}`},
	{name: "rank vectors", fields: `"v":{"type":"rank_vectors"}`, documents: []string{`{"title":"vectors","v":[[0.1,0.25],[0.5,0.75]]}`}},
	{name: "k-NN vectors", settings: `"index.knn":true`, fields: luceneVector + `}}`, documents: []string{four, four2}, search: nearFourOfTheOS, scores: true},
	{name: "k-NN directions", settings: `"index.knn":true`, fields: luceneVector + `,"space_type":"cosinesimil"}}`, documents: []string{four, four2}, search: nearFourOfTheOS, scores: true},
	{name: "k-NN vectors of fewer bits", settings: `"index.knn":true`, fields: luceneVector + `,"parameters":{"encoder":{"name":"sq","parameters":{"bits":7}}}}}`, documents: []string{four, four2}, search: nearFourOfTheOS},
	{name: "k-NN bytes", settings: `"index.knn":true`, fields: luceneVector + `},"data_type":"byte"}`, documents: []string{`{"title":"a vector","v":[-128,0,127,5]}`}, search: nearFourOfTheOS, scores: true},
	{name: "k-NN vectors in passages", settings: `"index.knn":true`, fields: `"p":{"type":"nested","properties":{` + luceneVector + `}}}}`, scores: true,
		documents: []string{`{"title":"passages","p":[{"t":"one","v":[0.1,0.2,0.3,0.4]},{"v":[1,2,3,5]}]}`},
		search:    `{"query":{"nested":{"path":"p","score_mode":"max","query":{"knn":{"p.v":{"vector":[1,2,3,4],"k":10}}}}}}`},
	{name: "k-NN vectors in the source", settings: `"index.knn":true,"index.knn.derived_source.enabled":false`, fields: luceneVector + `}}`, documents: []string{four, four2}, search: nearFourOfTheOS, scores: true},
	{name: "k-NN vectors and a final pipeline", settings: `"index.knn":true,"index.final_pipeline":"neardup-kept"`, fields: luceneVector + `}}`, documents: []string{four, four2}, search: nearFourOfTheOS, scores: true},
	{name: "copy_to", fields: `"title":{"type":"text","copy_to":"all"},"all":{"type":"text","store":true}`, documents: []string{`{"title":"copied text"}`},
		search: `{"query":{"match":{"all":"copied"}}}`},
	{name: "join and routing", fields: `"j":{"type":"join","relations":{"q":"a"}}`, routing: "r1",
		documents: []string{`{"title":"a question","j":"q"}`, `{"title":"an answer","j":{"name":"a","parent":"1"}}`},
		search:    `{"query":{"has_parent":{"parent_type":"q","query":{"match_all":{}}}}}`},
	{name: "nested", fields: `"c":{"type":"nested","properties":{"n":{"type":"integer"}}}`, documents: []string{`{"title":"comments","c":[{"n":1},{"n":2}]}`},
		search: `{"query":{"nested":{"path":"c","query":{"term":{"c.n":2}}}}}`},
	{name: "percolator", fields: `"q":{"type":"percolator"},"body":{"type":"text"}`, documents: []string{`{"title":"a query","q":{"match":{"body":"word"}}}`},
		search: `{"query":{"percolate":{"field":"q","document":{"body":"a word"}}}}`},
	{name: "ignored values", fields: `"k":{"type":"keyword","ignore_above":3},"i":{"type":"integer","ignore_malformed":true}`,
		documents: []string{`{"title":"ignored","k":"too long","i":"no number"}`}, search: `{"query":{"exists":{"field":"_ignored"}}}`},
	{name: "stored fields", fields: `"s":{"type":"text","store":true,"index":false},"b":{"type":"binary","store":true}`,
		documents: []string{`{"title":"stored","s":"only stored","b":"AAEC"}`}},
	{name: "geo, ranges, flattened", fields: `"g":{"type":"geo_point"},"r":{"type":"integer_range"},"d":{"type":"date"},"ip":{"type":"ip"},"c":{"type":"completion"}`,
		documents: []string{`{"title":"values","g":{"lat":1.5,"lon":2.5},"r":{"gte":1,"lt":5},"d":"2024-01-01","ip":"::1","c":["one","two"]}`}},
	{name: "a final pipeline", settings: `"index.final_pipeline":"neardup-kept"`, documents: []string{`{"title":"piped","price":1.50}`}},
	{name: "a number that an update would shorten", later: `"index.final_pipeline":"neardup-kept"`, refused: "document",
		documents: []string{`{"title":"piped","price":1.23456789012345678901}`}},
	{name: "synthetic source", settings: `"index.mapping.source.mode":"synthetic"`, documents: []string{`{"title":"rebuilt","k":["b","a"]}`}, refused: "?"},
	{name: "synthetic source of a mapping", mapping: `"_source":{"mode":"synthetic"}`, documents: []string{`{"title":"rebuilt"}`}, refused: "?"},
	{name: "a log index", settings: `"index.mode":"logsdb"`, fields: `"@timestamp":{"type":"date"},"host.name":{"type":"keyword"}`,
		documents: []string{`{"@timestamp":"2024-01-01","host.name":"h","title":"a log line"}`}, refused: "?"},
	{name: "a time series", settings: `"index.mode":"time_series","index.routing_path":["host"],"index.time_series.start_time":"2020-01-01T00:00:00Z","index.time_series.end_time":"2040-01-01T00:00:00Z"`,
		fields: `"@timestamp":{"type":"date"},"host":{"type":"keyword","time_series_dimension":true}`, documents: []string{`{"@timestamp":"2024-01-01T00:00:00Z","host":"h","title":"a sample"}`}, refused: "time_series"},
	{name: "derived source", settings: `"index.derived_source.enabled":true`, fields: `"k":{"type":"keyword"},"title":{"type":"text","store":true}`,
		documents: []string{`{"title":"derived","k":["b","a"]}`}, refused: "derived_source"},
	{name: "vectors of 16 bits", fields: `"v":{"type":"dense_vector","dims":3,"element_type":"bfloat16","similarity":"l2_norm"}`, documents: []string{`{"title":"a vector","v":[0.1,0.25,7]}`}},
	{name: "directions of 16 bits", fields: `"p":{"properties":{"v":{"type":"dense_vector","dims":3,"element_type":"bfloat16"}}}`, documents: []string{`{"title":"a vector","p":{"v":[0.1,0.25,7]}}`}, refused: "vectors of p.v"},
	{name: "parts of the source", mapping: `"_source":{"excludes":["secret"]}`, documents: []string{`{"title":"part","secret":"x"}`}, refused: "excludes"},
	{name: "no source", mapping: `"_source":{"enabled":false}`, documents: []string{`{"title":"part"}`}, refused: "enabled"},
}

// TestRealKept adds our fields to the documents of indices of all kinds, changes them, and takes them out again, as all jobs do by the same requests:
// whatever can be read of a document, and by whatever it is found, stays. An index whose documents can't be written again is refused, and nothing of it changes.
func TestRealKept(t *testing.T) {
	onEach(t, []string{engines.Elasticsearch, engines.OpenSearch, engines.OpenSearchVectors}, func(t *testing.T, l *larder) {
		l.must("PUT", "/_ingest/pipeline/neardup-kept", `{"processors":[{"set":{"field":"piped","value":true}}]}`)
		for n, c := range kindsOfIndices {
			if strings.Contains(l.name, engines.OpenSearchVectors) && !strings.Contains(c.fields, "knn_vector") { // the others ran on OpenSearch
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				k := *l
				k.t = t
				index := fmt.Sprintf("%s%d", l.name, n)
				if !k.makes(index, c.settings, c.mapping, c.fields) {
					t.Skip("this engine knows no such index")
				}
				for i, document := range c.documents {
					path := fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i+1)
					if c.routing != "" {
						path += "&routing=" + c.routing
					}
					if strings.Contains(c.settings, "time_series") {
						k.must("POST", "/"+index+"/_doc?refresh=true", document)
						continue
					}
					k.must("PUT", path, document)
				}
				if c.later != "" {
					k.must("PUT", "/"+index+"/_settings", "{"+c.later+"}")
				}
				s := k.store(http.DefaultTransport)
				if list, err := s.Prepare(t.Context(), index, false); err != nil || len(list) != 1 || !list[0].Ready {
					if err == nil && c.refused != "" && strings.Contains(list[0].Why, "not supported") {
						return
					}
					t.Fatal(list, err)
				}
				before, found := k.views(s, index, c.routing, len(c.documents)), k.found(index, c.search, c.scores)
				sources, rounded := k.sources(index), 0.0
				if strings.Contains(c.fields, `"cosine"`) { // kept as directions and lengths, these are rounded anew with each write
					rounded = 1e-6
				}
				other := func(o rule.Ours) rule.Ours { o.Cluster += "x"; return o }
				for _, ours := range []func(rule.Ours) rule.Ours{nil, other, func(rule.Ours) rule.Ours { return rule.Ours{} }} {
					written, err := k.patchAll(s, index, ours)
					refused := c.refused != "" && (err != nil || written == 0)
					if c.refused == "?" { // as the engine's own setting has it
						refused = err != nil
					}
					if c.refused != "" && c.refused != "?" && (!refused || err != nil && !strings.Contains(err.Error(), c.refused)) {
						t.Fatalf("%d documents written: %v", written, err)
					}
					if !refused && (err != nil || written != len(c.documents)) {
						t.Fatalf("%d of %d documents written: %v", written, len(c.documents), err)
					}
					after := k.views(s, index, c.routing, len(c.documents))
					for i := range before {
						if where, was, is := before[i].difference(after[i]); where != "" {
							t.Errorf("document %d: %s was %s and is %s", i+1, where, was, is)
						}
						if (before[i].seqNo == after[i].seqNo) != refused {
							t.Errorf("document %d: refused: %t, yet its number was %d and is %d", i+1, refused, before[i].seqNo, after[i].seqNo)
						}
					}
					expect.Same(t, found, k.found(index, c.search, c.scores), "%s", c.search)
					near := cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= rounded*math.Abs(x) })
					expect.By{near}.Same(t, sources, k.sources(index), "the sources")
				}
				if k.deletedAndBack(s, index, c.refused) {
					after := k.views(s, index, c.routing, len(c.documents))
					for i := range before {
						if where, was, is := before[i].difference(after[i]); where != "" {
							t.Errorf("document %d, deleted and put back: %s was %s and is %s", i+1, where, was, is)
						}
					}
					expect.Same(t, found, k.found(index, c.search, c.scores), "%s, deleted and put back", c.search)
				}
				s.Release(t.Context(), index)
				if aliases := k.must("GET", "/"+index+"/_alias", ""); strings.Contains(aliases, "neardup-writes") {
					t.Errorf("an alias is left: %s", aliases)
				}
			})
		}
	})
}

// TestRealRounded writes vectors again that the engine keeps as a direction and a length: it rounds them anew, and that stops no job.
func TestRealRounded(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	l := &larder{t: t, url: e.URL, name: fmt.Sprintf("nde_rounded_%d_", os.Getpid())}
	index, r := l.name+"0", rand.New(rand.NewPCG(1, 2))
	l.makes(index, "", "", `"p":{"type":"nested","properties":{"v":{"type":"dense_vector","dims":64}}}`)
	var passages []string
	for range 80 { // some 8 of them change
		var v []string
		for range 64 {
			v = append(v, fmt.Sprint(10*r.NormFloat64()))
		}
		passages = append(passages, `{"v":[`+strings.Join(v, ",")+`]}`)
	}
	l.must("PUT", "/"+index+"/_doc/1?refresh=true", `{"title":"passages","p":[`+strings.Join(passages, ",")+`]}`)
	s := l.store(http.DefaultTransport)
	if list, err := s.Prepare(t.Context(), index, false); err != nil || !list[0].Ready {
		t.Fatal(list, err)
	}
	if written, err := l.patchAll(s, index, nil); err != nil || written != 1 {
		t.Error(written, err)
	}
	s.Release(t.Context(), index)
}

// TestRealEmbeddings adds our fields to documents whose embeddings the engine computes: none is computed again, and all stay.
func TestRealEmbeddings(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		if l.d.OpenSearch {
			t.Skip("OpenSearch computes embeddings by plugins that these packages lack")
		}
		var asked, length atomic.Int32
		length.Store(1)
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var request struct{ Input []string }
			if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
				t.Error(err)
			}
			var list []string
			for i := range request.Input { // never the same vector twice
				sin, cos := math.Sincos(float64(asked.Add(1)))
				list = append(list, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%v,%v,0,0]}`, i, float32(length.Load())*float32(sin), float32(length.Load())*float32(cos)))
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`, strings.Join(list, ","))
		}))
		defer service.Close()
		l.send(&adapters.Request{Method: "POST", Path: "/_license/start_trial", RawQuery: "acknowledge=true"}) // once; then it runs
		name := strings.Trim(l.name, "_")
		l.must("PUT", "/_inference/text_embedding/"+name, fmt.Sprintf(`{"service":"openai","service_settings":{"api_key":"key","model_id":"m","url":%q,"similarity":"cosine"}}`, service.URL))
		index := l.name + "0"
		if !l.makes(index, "", "", fmt.Sprintf(`"s":{"type":"semantic_text","inference_id":%q}`, name)) {
			t.Fatal("this engine knows no semantic_text")
		}
		l.must("PUT", "/"+index+"/_doc/1?refresh=true", `{"title":"an embedded text","s":"The ferry is late."}`)
		l.must("PUT", "/"+index+"/_doc/2?refresh=true", `{"title":"another","s":["The ferry is early.","And full."]}`)
		s := l.store(http.DefaultTransport)
		if list, err := s.Prepare(t.Context(), index, false); err != nil || !list[0].Ready {
			t.Fatal(list, err)
		}
		before, were := l.views(s, index, "", 2), asked.Load()
		if text, err := json.Marshal(before[0].shown); err != nil || !strings.Contains(string(text), `embeddings[`) || were < 3 { // else nothing is compared
			t.Fatalf("%d embeddings, %s %v", were, text, err)
		}
		for _, ours := range []func(rule.Ours) rule.Ours{nil, func(rule.Ours) rule.Ours { return rule.Ours{} }} {
			if written, err := l.patchAll(s, index, ours); err != nil || written != 2 {
				t.Fatal(written, err)
			}
			for i, after := range l.views(s, index, "", 2) {
				if where, was, is := before[i].difference(after); where != "" {
					t.Errorf("document %d: %s was %s and is %s", i+1, where, was, is)
				}
			}
		}
		expect.Same(t, were, asked.Load(), "embeddings that were computed")
		s.Release(t.Context(), index)
		// Longer ones can't be kept by any write where the engine stores them as 16 bits.
		length.Store(3)
		for i := range 2 {
			l.must("PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i+1), fmt.Sprintf(`{"title":"long","s":"The ferry %d is late."}`, i))
		}
		written, err := l.patchAll(s, index, nil)
		if refused := err != nil && written == 0 && strings.Contains(err.Error(), "not of length 1"); !refused && (err != nil || written != 2) {
			t.Error(written, err)
		}
		s.Release(t.Context(), index)
	})
}

// makes creates an index, and reports whether the engine knows such a kind.
func (l *larder) makes(index, settings, mapping, fields string) bool {
	l.t.Helper()
	l.drop(index)
	if !strings.Contains(fields, `"title"`) {
		fields = strings.TrimSuffix(`"title":{"type":"text"},`+fields, ",")
	}
	if mapping != "" {
		mapping += ","
	}
	body := fmt.Sprintf(`{"settings":{%s},"mappings":{%s"properties":{%s}}}`, settings, mapping, fields)
	reply := l.send(&adapters.Request{Method: "PUT", Path: "/" + index, Header: adapters.Header{"Content-Type": {"application/json"}}, Body: []byte(body)})
	unknown := []string{"No handler for type", "unknown setting", "No mapper found for type", "unknown parameter", "unsupported parameters", "No enum constant", "unknown index mode", "is a no-op", "non-compliant for", "It might have been created within a future version", "invalid element_type"}
	for _, words := range unknown {
		if reply.Status == http.StatusBadRequest && strings.Contains(string(reply.Body), words) {
			l.t.Logf("%s", reply.Body)
			return false
		}
	}
	if reply.Status != http.StatusOK {
		l.t.Fatalf("%s", reply.Body)
	}
	return true
}

// views reads all documents in all ways, in the order of their ids.
func (l *larder) views(s *Store, index, routing string, n int) (list []view) {
	l.t.Helper()
	traits := expect.Value(s.traitsOf(l.t.Context(), index))(l.t)
	ids := map[string]bool{}
	for _, hit := range l.hits(index, "", `{"size":100,"sort":"_doc"}`) {
		ids[hit.ID] = true
	}
	if len(ids) != n {
		l.t.Fatalf("%d documents, not %d", len(ids), n)
	}
	for i := 1; i <= n; i++ {
		id := fmt.Sprint(i)
		if !ids[id] { // it has an id of the engine's
			for id = range ids {
			}
		}
		v := expect.Value(s.view(l.t.Context(), index, id, routing, traits.vectors))(l.t)
		list = append(list, v)
	}
	return list
}

// hits are those of a search.
func (l *larder) hits(index, params, search string) (list []hitOfTest) {
	l.t.Helper()
	l.must("POST", "/"+index+"/_refresh", "")
	reply := l.send(requestFor("POST", "/"+index+"/_search", params, search))
	if params != "" && reply.Status == http.StatusBadRequest { // an engine that does not know them
		return l.hits(index, "", search)
	}
	var found struct{ Hits struct{ Hits []hitOfTest } }
	expect.OK(l.t, json.Unmarshal(reply.Body, &found))
	if len(found.Hits.Hits) == 0 {
		l.t.Errorf("%s finds nothing: %s", search, reply.Body)
	}
	return found.Hits.Hits
}

type hitOfTest struct {
	ID     string         `json:"_id"`
	Score  float64        `json:"_score"`
	Source map[string]any `json:"_source"`
}

// found returns the ids of what a search finds. Most scores change with every write: documents that were replaced count for a while.
func (l *larder) found(index, search string, scores bool) string {
	l.t.Helper()
	if search == "" {
		return ""
	}
	var list []string
	for _, hit := range l.hits(index, "", search) {
		if list = append(list, hit.ID); scores {
			list[len(list)-1] += fmt.Sprintf(" (%.5g)", hit.Score)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// sources returns the documents, with their vectors, less our fields.
func (l *larder) sources(index string) map[string]map[string]any {
	l.t.Helper()
	all := map[string]map[string]any{}
	for _, hit := range l.hits(index, "_source_exclude_vectors=false", `{"size":100}`) {
		maps.DeleteFunc(hit.Source, func(key string, _ any) bool { return strings.HasPrefix(key, "neardup_") })
		all[hit.ID] = hit.Source
	}
	return all
}

// patchAll gives all documents of an index the fields that they should have, or what change makes of these, and returns how many were written.
func (l *larder) patchAll(s *Store, index string, change func(rule.Ours) rule.Ours) (written int, err error) {
	rule := s.rules[0]
	var patches []adapters.Stored
	err = s.Scan(l.t.Context(), index, rule, adapters.Selection{}, func(p adapters.Page) error {
		for _, d := range p.Documents {
			wanted, _ := rule.OursFor(d.Source, "1")
			if change != nil {
				wanted = change(wanted)
			}
			patches = append(patches, d.With(wanted))
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	results, err := s.Patch(l.t.Context(), index, rule, patches)
	for _, result := range results {
		if result == adapters.Patched {
			written++
		}
	}
	return written, err
}

// TestRealRecreated deletes an index and creates it again, with documents of the same ids and sequence numbers, between a document's reading
// and its writing: at each of the requests that a patch makes. The new index is left alone, and none is created.
func TestRealRecreated(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, tried := l.name+"0", 0
		load := func(text string) {
			l.drop(index)
			l.create(index, `"title":{"type":"text"}`, 1)
			for i := range 3 {
				l.must("PUT", fmt.Sprintf("/%s/_doc/%d?refresh=true", index, i), fmt.Sprintf(`{"title":"%s %d"}`, text, i))
			}
		}
		for _, reload := range []bool{true, false} {
			for at, reached := 0, true; reached; at++ {
				load("old")
				hook := &hooked{at: at}
				u := expect.Value(url.Parse(l.url))(t)
				s, _ := Dialect{}.Open(hook, []*url.URL{u}, rule.Rules{jobsRule(t, l.name+"*")})(nil, "").(*Store)
				if list, err := l.store(http.DefaultTransport).Prepare(t.Context(), index, false); err != nil || !list[0].Ready {
					t.Fatal(list, err)
				}
				var patches []adapters.Stored
				err := s.Scan(t.Context(), index, nil, adapters.Selection{}, func(p adapters.Page) error {
					for _, d := range p.Documents {
						patches = append(patches, d.With(rule.Ours{Sketch: "1old"}))
					}
					return nil
				})
				if err != nil || len(patches) != 3 {
					t.Fatal(len(patches), err)
				}
				hook.do = func() {
					if l.drop(index); reload {
						load("new")
					}
				}
				_, err = s.Patch(t.Context(), index, nil, patches)
				reached = hook.do == nil
				if !reached {
					expect.OK(t, err)
					break
				}
				if reload {
					all := l.must("GET", "/"+index+"/_search", "")
					if strings.Contains(all, "old") || strings.Count(all, "new") != 3 {
						t.Fatalf("before request %d: %s (%v)", at, all, err)
					}
				} else if reply := l.send(&adapters.Request{Method: "HEAD", Path: "/" + index}); reply.Status != http.StatusNotFound {
					t.Fatalf("before request %d: the index is there again: %v", at, err)
				}
				if err != nil && !errors.Is(err, adapters.ErrRecreated) {
					t.Errorf("before request %d: %v", at, err)
				}
				s.Release(t.Context(), index)
				tried++
			}
		}
		t.Logf("the index was deleted before each request of a patch, %d times in all", tried)
	})
}

// TestRealAskedOnly deletes an index before each request by which doctor looks at it: none creates it again, nor writes to it while it is there.
func TestRealAskedOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index := l.name + "0"
		u := expect.Value(url.Parse(l.url))(t)
		for at, reached := 0, true; reached; at++ {
			l.drop(index)
			l.create(index, `"title":{"type":"text"}`, 1)
			hook := &hooked{at: at, do: func() { l.drop(index) }}
			r := jobsRule(t, l.name+"*")
			store := Dialect{}.Open(hook, []*url.URL{u}, rule.Rules{r})(nil, "")
			c, err := store.Condition(t.Context(), adapters.Index{Name: index}, r)
			if reached = hook.do == nil; reached {
				if reply := l.send(&adapters.Request{Method: "HEAD", Path: "/" + index}); reply.Status != http.StatusNotFound {
					t.Errorf("before request %d: the index is there again: %v", at, err)
				}
				continue
			}
			if hook.do = nil; err != nil || c.Refused != nil {
				t.Error(err, c.Refused)
			}
			l.must("POST", "/"+index+"/_refresh", "")
			if all := l.must("GET", "/"+index+"/_stats/indexing,docs", ""); !strings.Contains(all, `"index_total":0,`) || !strings.Contains(all, `"delete_total":0,`) {
				t.Errorf("doctor wrote: %s", all)
			}
			for _, block := range []string{"write", "read_only", "read_only_allow_delete"} {
				l.must("PUT", "/"+index+"/_settings", `{"index.blocks.`+block+`":true}`)
				if c, err = store.Condition(t.Context(), adapters.Index{Name: index, Ready: true}, r); err != nil || c.Refused == nil ||
					!strings.Contains(c.Refused.Error(), "write its documents: the engine answered 4") {
					t.Errorf("%s: %v %v", block, err, c.Refused)
				}
				l.must("PUT", "/"+index+"/_settings", `{"index.blocks.`+block+`":null}`)
			}
		}
	})
}

// hooked is a transport that does something before one request, counted from when do is set.
type hooked struct {
	at int
	do func()
}

func (h *hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	if h.do != nil {
		if h.at--; h.at < 0 {
			do := h.do
			h.do = nil
			do()
		}
	}
	return http.DefaultTransport.RoundTrip(r)
}
