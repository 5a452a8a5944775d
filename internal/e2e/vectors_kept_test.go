package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// vectorField is one form in which an engine stores vectors.
type vectorField struct {
	name, mapping string
	value         func(r *rand.Rand) any
	// search is a search by a vector, which stands for V, for N documents.
	search string
	// cosine says that Elasticsearch keeps the vectors as directions and lengths: where it rebuilds them, each write rounds them anew.
	cosine bool
	// quantized says that scores are approximate, and depend on all that a segment holds.
	quantized bool
}

const (
	elasticNear    = `"knn":{"field":"F","query_vector":V,"k":N,"num_candidates":100}`
	openSearchNear = `"query":{"knn":{"F":{"vector":V,"k":N}}}`
)

// vectorFields are all forms; an engine that does not know one refuses its mapping.
var vectorFields = map[string][]vectorField{
	engines.Elasticsearch: {
		{"hnsw", `"type":"dense_vector","dims":64,"index_options":{"type":"hnsw"}`, floats, elasticNear, true, false},
		{"int8", `"type":"dense_vector","dims":64,"index_options":{"type":"int8_hnsw"}`, floats, elasticNear, true, true},
		{"int4", `"type":"dense_vector","dims":64,"index_options":{"type":"int4_hnsw"}`, floats, elasticNear, true, true},
		{"bbq", `"type":"dense_vector","dims":64,"index_options":{"type":"bbq_hnsw"}`, floats, elasticNear, true, true},
		{"l2", `"type":"dense_vector","dims":64,"similarity":"l2_norm","index_options":{"type":"hnsw"}`, floats, elasticNear, false, false},
		{"dot", `"type":"dense_vector","dims":64,"similarity":"dot_product","index_options":{"type":"hnsw"}`, unit, elasticNear, false, false},
		{"bytes", `"type":"dense_vector","dims":64,"element_type":"byte"`, integers(64), elasticNear, false, false},
		{"bits", `"type":"dense_vector","dims":64,"element_type":"bit"`, integers(8), elasticNear, false, false},
		{"bfloat16", `"type":"dense_vector","dims":64,"element_type":"bfloat16","similarity":"l2_norm","index_options":{"type":"hnsw"}`,
			floats, elasticNear, false, false},
		{"unindexed", `"type":"dense_vector","dims":64,"index":false`, floats,
			`"query":{"script_score":{"query":{"match_all":{}},"script":{"source":"cosineSimilarity(params.v,'F')+1","params":{"v":V}}}}`, false, false},
		{"sparse", `"type":"sparse_vector"`, weights, `"query":{"sparse_vector":{"field":"F","query_vector":V}}`, false, false},
		{"passages", `"type":"nested","properties":{"v":{"type":"dense_vector","dims":64,"index_options":{"type":"hnsw"}}}`, passages,
			strings.Replace(elasticNear, "F", "F.v", 1), true, false},
	},
	engines.OpenSearch: {
		{"l2", `"type":"knn_vector","dimension":64,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}`, floats, openSearchNear, false, false},
		{"cosine", `"type":"knn_vector","dimension":64,"method":{"name":"hnsw","engine":"lucene","space_type":"cosinesimil"}`, floats, openSearchNear, false, false},
		{"sq", `"type":"knn_vector","dimension":64,"method":{"name":"hnsw","engine":"lucene","space_type":"l2","parameters":{"encoder":{"name":"sq"}}}`,
			floats, openSearchNear, false, true},
		{"bytes", `"type":"knn_vector","dimension":64,"data_type":"byte","method":{"name":"hnsw","engine":"lucene","space_type":"l2"}`,
			integers(64), openSearchNear, false, false},
		{"sparse", `"type":"rank_features"`, weights, `"query":{"rank_feature":{"field":"F.one","linear":{}}}`, false, false},
		{"passages", `"type":"nested","properties":{"v":{"type":"knn_vector","dimension":64,"method":{"name":"hnsw","engine":"lucene","space_type":"l2"}}}`,
			passages, `"query":{"nested":{"path":"F","score_mode":"max","query":{"knn":{"F.v":{"vector":V,"k":N}}}}}`, false, false},
	},
}

func floats(r *rand.Rand) any {
	list := make([]float32, 64)
	for i := range list {
		list[i] = float32(10 * r.NormFloat64())
	}
	return list
}

func unit(r *rand.Rand) any {
	list, _ := floats(r).([]float32)
	var sum float64
	for _, x := range list {
		sum += float64(x) * float64(x)
	}
	for i := range list {
		list[i] /= float32(math.Sqrt(sum))
	}
	return list
}

func integers(n int) func(r *rand.Rand) any {
	return func(r *rand.Rand) any {
		list := make([]int, n)
		for i := range list {
			list[i] = r.IntN(256) - 128
		}
		return list
	}
}

func weights(r *rand.Rand) any {
	return map[string]any{"one": r.Float32() + 0.1, "two": r.Float32() + 0.1}
}

func passages(r *rand.Rand) any {
	return []any{map[string]any{"v": floats(r), "text": "one"}, map[string]any{"v": floats(r)}}
}

// vectorSettings are settings by which indices differ in how they keep vectors, and by which jobs write them in different ways. An engine
// that does not know some refuses them.
var vectorSettings = map[string][]string{
	engines.Elasticsearch: {``, `"index.mapping.exclude_source_vectors":false`, `"index.final_pipeline":"vkept"`},
	engines.OpenSearch:    {`"index.knn":true`, `"index.knn":true,"index.knn.derived_source.enabled":false`, `"index.knn":true,"index.final_pipeline":"vkept"`},
}

// TestVectorsKept runs all jobs that write over indices with vectors of all forms. After each, every vector is stored as before, and searches
// by vectors find the same with the same scores. Only what Elasticsearch itself rounds with each write may differ, in the last bits.
func TestVectorsKept(t *testing.T) {
	onEach(t, true, []string{engines.Elasticsearch, engines.OpenSearch35}, vectorsKept)
}

func vectorsKept(t *testing.T, e *engines.Engine) {
	const n = 24
	direct := api{e, e.URL}
	call(t, e, "PUT", e.URL+"/_ingest/pipeline/vkept", `{"processors":[{"set":{"field":"piped","value":true}}]}`).want(t, 200)
	r := rand.New(rand.NewPCG(1, 2))
	var list []*shelfOfVectors
	name := fmt.Sprintf("vkept-%d-x", os.Getpid())
	for i, settings := range vectorSettings[e.Kind] {
		s := &shelfOfVectors{e: e, index: fmt.Sprint(name, i)}
		direct.drop(t, s.index)
		if s.make(t, settings, r, n) {
			list = append(list, s)
		}
	}
	if len(list) == 0 { // an OpenSearch without k-NN has sparse vectors alone
		list = []*shelfOfVectors{{e: e, index: name}}
		direct.drop(t, name)
		list[0].make(t, "", r, n)
	}
	file := config(t, e, setup{match: name + "*", threshold: 0.64, rule: "bands: auto\nnative: true"})
	all := n * len(list)
	// change changes documents past the sidecar, as any client may.
	change := func(ids []int, members func(i int, source []byte) string) {
		for _, s := range list {
			var lines strings.Builder
			sources := stored(t, direct, s.index)
			for _, i := range ids {
				id := documents(t)[i].ID
				fmt.Fprintf(&lines, `{"update":{"_index":%q,"_id":%q}}`+"\n"+`{"doc":{%s}}`+"\n", s.index, id, members(i, sources[id].source))
			}
			direct.loadLines(t, s.index, lines.String())
		}
	}
	lookAll := func() (all []vectorsSeen) {
		for _, s := range list {
			all = append(all, s.look(t, n))
		}
		return all
	}
	var seen []vectorsSeen
	for _, step := range []struct {
		name    string
		prepare func()
		run     func() (written int) // documents, or mappings
		want    int                  // or -1 for any but none
	}{
		{name: "setup", run: func() (ready int) {
			out, code := sidecar(t, "setup", "--config", file)
			if code != 0 {
				t.Errorf("setup ended with %d: %s", code, out)
			}
			return strings.Count(out, ": ready\n")
		}, want: len(list)},
		{name: "reindex", run: func() int { return reindexAll(t, file) }, want: all},
		{name: "a second reindex", prepare: func() {
			change([]int{0, 5, 10, 15}, func(i int, _ []byte) string { return fmt.Sprintf(`"body":"another text, the number %d of four"`, i) })
		}, run: func() int { return reindexAll(t, file) }, want: 4 * len(list)},
		{name: "verify --repair", prepare: func() {
			change([]int{1, 6, 11}, func(i int, _ []byte) string { return `"` + rule.SketchField + `":null` })
		}, run: func() (mended int) {
			var report struct{ Indices []repairs }
			jobReport(t, &report, "verify", "--config", file, "--repair")
			for _, one := range report.Indices {
				if one.Repair != nil {
					mended += one.Repair.Mended
				}
			}
			return mended
		}, want: 3 * len(list)},
		{name: "cluster --write", run: func() (written int) {
			for _, s := range list {
				out, code := sidecar(t, "cluster", "--config", file, "--index", s.index, "--output", t.TempDir()+"/clusters.jsonl", "--write", "--untested")
				if code != 0 {
					t.Errorf("cluster ended with %d: %s", code, out)
				}
				written += number(t, out, "written")
			}
			return written
		}, want: -1},
		{name: "remove", run: func() (cleaned int) {
			for _, s := range list {
				out, code := sidecar(t, "remove", "--config", file, "--index", s.index, "--yes", "--untested")
				if code != 0 {
					t.Errorf("remove ended with %d: %s", code, out)
				}
				cleaned += number(t, out, "cleaned")
			}
			return cleaned
		}, want: all},
	} {
		if step.prepare != nil {
			step.prepare()
			seen = nil
		}
		if seen == nil {
			seen = lookAll()
		}
		written := step.run()
		if written != step.want && (step.want >= 0 || written == 0) {
			t.Errorf("%s wrote %d, want %d", step.name, written, step.want)
		}
		var was, is, rounded int
		after := lookAll()
		for i, s := range list {
			was, is, rounded = was+len(seen[i].scores), is+len(after[i].scores), rounded+s.compare(t, step.name, seen[i], after[i])
		}
		seen = after
		t.Logf("%s: %d written; found %d before, %d after; %d vectors rounded", step.name, written, was, is, rounded)
	}
}

// reindexAll reindexes all indices of a configuration and returns how many documents were written.
func reindexAll(t *testing.T, file string) (written int) {
	t.Helper()
	var report struct{ Indices []reindexed }
	jobReport(t, &report, "reindex", "--config", file)
	for _, one := range report.Indices {
		written += one.Written
	}
	return written
}

// jobReport runs a job to its end and reads its report. OpenSearch 3.5 is no version that jobs write to unasked.
func jobReport(t *testing.T, report any, args ...string) {
	t.Helper()
	cmd := command(t, t.Context(), append(args, "--output", "json", "--untested")...)
	out, err := cmd.Output()
	if code := exitCode(t, err); code != 0 {
		t.Errorf("%s ended with %d: %s %v", args[0], code, out, err)
	}
	if err := json.Unmarshal(out, report); err != nil {
		t.Errorf("%s printed %s: %v", args[0], out, err)
	}
}

// shelfOfVectors is an index with vectors in all forms that its engine knows.
type shelfOfVectors struct {
	e        *engines.Engine
	index    string
	fields   []vectorField
	searches string // by each field, as the body of a multi-search
	// params is how its documents are read with their vectors.
	params string
	// rebuilt says that the engine rebuilds the vectors when it shows them.
	rebuilt bool
}

// make creates the index and fills it, and reports whether the engine knows the settings.
func (s *shelfOfVectors) make(t *testing.T, settings string, r *rand.Rand, n int) bool {
	t.Helper()
	url := s.e.URL + "/" + s.index
	if made := call(t, s.e, "PUT", url, `{"settings":{`+settings+`},"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"}}}}`); made.status != http.StatusOK {
		made.want(t, http.StatusBadRequest)
		return false
	}
	for _, f := range vectorFields[s.e.Kind] {
		if call(t, s.e, "PUT", url+"/_mapping", fmt.Sprintf(`{"properties":{%q:{%s}}}`, f.name, f.mapping)).status != http.StatusOK {
			t.Logf("%s takes no field %s", s.index, f.name)
			continue
		}
		s.fields = append(s.fields, f)
		value := f.value(r)
		if list, nested := value.([]any); nested {
			value = list[0].(map[string]any)["v"]
		}
		vector := must(json.Marshal(value))(t)
		search := strings.NewReplacer("F", f.name, "V", string(vector), "N", fmt.Sprint(2*n)).Replace(f.search)
		s.searches += fmt.Sprintf("{}\n"+`{%s,"size":%d,"_source":false}`+"\n", search, n)
	}
	var lines strings.Builder
	for _, d := range documents(t)[:n] {
		document := map[string]any{"title": d.Title, "body": d.Body}
		for _, f := range s.fields {
			document[f.name] = f.value(r)
		}
		line := must(json.Marshal(document))(t)
		fmt.Fprintf(&lines, `{"index":{"_index":%q,"_id":%q}}`+"\n%s\n", s.index, d.ID, line)
	}
	api{s.e, s.e.URL}.loadLines(t, s.index, lines.String())
	hides := call(t, s.e, "GET", url+"/_settings/index.mapping.exclude_source_vectors?include_defaults=true&flat_settings=true", "").want(t, 200)
	if s.rebuilt = strings.Contains(string(hides.body), `:"true"`); s.rebuilt {
		s.params = "?_source_exclude_vectors=false"
	}
	return true
}

// vectorsSeen is what an index shows of its vectors.
type vectorsSeen struct {
	sources map[string]map[string]any
	scores  map[string]float64 // of each field and document
}

// look reads all documents, and what searches by vectors find. The index is merged into one segment, so that what was deleted plays no part.
func (s *shelfOfVectors) look(t *testing.T, n int) vectorsSeen {
	t.Helper()
	url := s.e.URL + "/" + s.index
	call(t, s.e, "POST", url+"/_refresh", "").want(t, 200)
	call(t, s.e, "POST", url+"/_forcemerge?max_num_segments=1", "").want(t, 200)
	call(t, s.e, "POST", url+"/_refresh", "").want(t, 200)
	seen := vectorsSeen{sources: map[string]map[string]any{}, scores: map[string]float64{}}
	type found struct {
		Hits struct {
			Hits []struct {
				ID     string         `json:"_id"`
				Score  float64        `json:"_score"`
				Source map[string]any `json:"_source"`
			}
		}
	}
	var all found
	if err := json.Unmarshal(call(t, s.e, "POST", url+"/_search"+s.params, `{"size":1000}`).want(t, 200).body, &all); err != nil || len(all.Hits.Hits) != n {
		t.Fatalf("%d documents: %v", len(all.Hits.Hits), err)
	}
	for _, h := range all.Hits.Hits {
		for _, field := range []string{rule.SketchField, rule.BandsField, rule.ClusterField} {
			delete(h.Source, field)
		}
		seen.sources[h.ID] = h.Source
		for _, f := range s.fields {
			if h.Source[f.name] == nil {
				t.Fatalf("%s shows no vectors in %s", h.ID, f.name)
			}
		}
	}
	var lists struct{ Responses []found }
	reply := call(t, s.e, "POST", url+"/_msearch", s.searches).want(t, 200).body
	if err := json.Unmarshal(reply, &lists); err != nil || len(lists.Responses) != len(s.fields) {
		t.Fatalf("%.500s %v", reply, err)
	}
	for i, list := range lists.Responses {
		if len(list.Hits.Hits) == 0 {
			t.Fatalf("nothing is found by %s: %.500s", s.fields[i].name, reply)
		}
		for _, h := range list.Hits.Hits {
			seen.scores[s.fields[i].name+"/"+h.ID] = h.Score
		}
	}
	return seen
}

// roundedBy is the greatest relative difference that counts as rounding. Even of equal vectors an engine can add up a score in another order.
const roundedBy = 1e-6

// compare holds what is shown after a step to what was shown before it, and returns how many vectors were rounded.
func (s *shelfOfVectors) compare(t *testing.T, step string, before, after vectorsSeen) (rounded int) {
	t.Helper()
	for _, f := range s.fields {
		near := 0.0
		if f.cosine && s.rebuilt {
			near = roundedBy
		}
		for id := range before.sources {
			was, is := before.sources[id][f.name], after.sources[id][f.name]
			if cmp.Equal(was, is) {
				continue
			}
			if diff := cmp.Diff(was, is, cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) <= near*math.Abs(x) })); diff != "" {
				t.Errorf("after %s, %s of %s in %s: %s", step, f.name, id, s.index, diff)
			}
			rounded++
		}
		for key, was := range before.scores {
			if !strings.HasPrefix(key, f.name+"/") {
				continue
			}
			is, found := after.scores[key]
			if !found {
				t.Errorf("after %s, %s is not found in %s", step, key, s.index)
			} else if !f.quantized && math.Abs(is-was) > roundedBy*was {
				t.Errorf("after %s, %s in %s has the score %v and had %v", step, key, s.index, is, was)
			}
		}
	}
	for id, was := range before.sources {
		was, is := maps.Clone(was), maps.Clone(after.sources[id])
		for _, f := range s.fields {
			delete(was, f.name)
			delete(is, f.name)
		}
		same(t, was, is, "after %s, %s in %s", step, id, s.index)
	}
	return rounded
}
