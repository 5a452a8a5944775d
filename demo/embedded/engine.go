// Package embedded is a small search engine in memory that speaks enough of Elasticsearch 8's API for a walk-through
// that needs nothing installed. Scores are BM25 as Elasticsearch computes it.
//
// It is made for demonstrations: one node, one shard, no disk, no security, every write visible to the next search.
// Whatever it does not do is refused with an error in Elasticsearch's shape that says so; nothing is silently ignored
// that would change a reply.
package embedded

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	version   = "8.19.13" // the Elasticsearch whose replies these are modelled on
	cluster   = "embedded-demo"
	node      = "embedded"
	maxBody   = 100 << 20 // Elasticsearch's http.max_content_length
	maxWindow = 10_000    // index.max_result_window
)

// Engine is the search engine, an http.Handler. Make one with New; it is safe for concurrent use.
type Engine struct {
	mux     *http.ServeMux
	mu      sync.Mutex // one request at a time: a demonstration gains nothing from more
	indices map[string]*index
	scrolls map[string]*scroll
	orders  int64 // documents created so far, which is their order among ties
}

// request is a request with its body read and its parameters checked.
type request struct {
	*http.Request
	params url.Values
	body   []byte
	start  time.Time
	header http.Header // of the reply
}

// handler answers a request with a status and a body: bytes as they are, anything else as JSON.
type handler func(*request) (int, any, error)

var _ http.Handler = (*Engine)(nil)

// New returns an engine without indices.
func New() *Engine {
	e := &Engine{mux: http.NewServeMux(), indices: map[string]*index{}, scrolls: map[string]*scroll{}}
	e.routes()
	return e
}

// ServeHTTP answers one request.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) { e.mux.ServeHTTP(w, r) }

const (
	anyIndex     = " allow_no_indices ignore_unavailable expand_wildcards"
	oneWrite     = "refresh timeout wait_for_active_shards if_seq_no if_primary_term"
	sourceParams = " _source _source_includes _source_excludes"
	searchParams = "q df default_operator from size sort docvalue_fields track_total_hits track_scores version seq_no_primary_term scroll" +
		" preference timeout search_type request_cache batched_reduce_size max_concurrent_shard_requests pre_filter_shard_size" +
		" ccs_minimize_roundtrips allow_partial_search_results" + sourceParams + anyIndex
)

// routes lists every endpoint with the URL parameters that it takes.
func (e *Engine) routes() {
	for _, route := range []struct {
		paths, params string
		handle        handler
	}{
		{"GET /{$}", "", e.info},
		{"GET /_cluster/health", "wait_for_status timeout master_timeout level", e.health},
		{"GET /_cluster/settings", "include_defaults flat_settings filter_path", e.clusterSettings},
		{"GET /_index_template", "", e.templates},
		{"GET /_template", "flat_settings", e.legacyTemplates},
		{"GET /{index}/_settings", "flat_settings" + anyIndex, e.indexSettings},
		{"GET /_cat/indices", "format h v s", e.catIndices},
		{"PUT /{index}", "timeout master_timeout wait_for_active_shards", e.createIndex},
		{"GET /{index}", "local master_timeout flat_settings include_defaults" + anyIndex, e.getIndex},
		{"DELETE /{index}", "timeout master_timeout" + anyIndex, e.deleteIndex},
		{"GET /_mapping,GET /{index}/_mapping", "local master_timeout" + anyIndex, e.getMapping},
		{"PUT /{index}/_mapping,POST /{index}/_mapping", "timeout master_timeout write_index_only" + anyIndex, e.putMapping},
		{"GET /_mapping/field/{field},GET /{index}/_mapping/field/{field}", "local" + anyIndex, e.getFieldMapping},
		{"POST /_bulk,PUT /_bulk,POST /{index}/_bulk,PUT /{index}/_bulk", "refresh timeout wait_for_active_shards", e.bulk},
		{"POST /{index}/_doc,POST /{index}/_doc/{id},PUT /{index}/_doc/{id}", "op_type " + oneWrite, e.indexDocument},
		{"POST /{index}/_create/{id},PUT /{index}/_create/{id}", oneWrite, e.createDocument},
		{"POST /{index}/_update/{id}", "retry_on_conflict " + oneWrite, e.updateDocument},
		{"DELETE /{index}/_doc/{id}", oneWrite, e.deleteDocument},
		{"GET /{index}/_doc/{id}", "realtime refresh preference" + sourceParams, e.getDocument},
		{"GET /{index}/_source/{id}", "realtime refresh preference" + sourceParams, e.getSource},
		{"GET /_refresh,POST /_refresh,GET /{index}/_refresh,POST /{index}/_refresh", anyIndex, e.refresh},
		{"GET /_count,POST /_count,GET /{index}/_count,POST /{index}/_count", "q df default_operator preference" + anyIndex, e.count},
		{"GET /_search,POST /_search,GET /{index}/_search,POST /{index}/_search", searchParams, e.search},
		{"GET /_msearch,POST /_msearch,GET /{index}/_msearch,POST /{index}/_msearch",
			"search_type max_concurrent_searches max_concurrent_shard_requests ccs_minimize_roundtrips" + anyIndex, e.multiSearch},
		{"GET /_search/scroll,POST /_search/scroll,GET /_search/scroll/{id},POST /_search/scroll/{id}", "scroll scroll_id", e.nextScroll},
		{"DELETE /_search/scroll,DELETE /_search/scroll/{id}", "scroll_id", e.clearScroll},
	} {
		for path := range strings.SplitSeq(route.paths, ",") {
			e.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, route.params, route.handle) })
		}
	}
	e.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e.serve(w, r, "*", func(r *request) (int, any, error) { return 0, nil, unsupported(r.Method + " " + r.URL.Path) })
	})
}

// serve reads and checks the request, runs its handler, and writes the reply in the media type that was asked for.
func (e *Engine) serve(w http.ResponseWriter, hr *http.Request, allowed string, handle handler) {
	r := &request{Request: hr, params: hr.URL.Query(), start: time.Now(), header: w.Header()}
	status, body, err := 0, any(nil), r.prepare(w, allowed)
	if err == nil {
		status, body, err = e.locked(r, handle)
	}
	if err != nil {
		f := asFailure(err)
		status, body = f.status, f
	}
	raw, isRaw := body.([]byte)
	if !isRaw {
		raw = appendJSON(nil, body)
	}
	if r.flag("pretty") {
		var b bytes.Buffer
		if json.Indent(&b, raw, "", "  ") == nil {
			raw = append(b.Bytes(), '\n')
		}
	}
	media := "application/json"
	if accept, m := hr.Header.Get("Accept"), "application/vnd.elasticsearch+json"; strings.Contains(accept, m) {
		media = m + ";compatible-with=8"
		if strings.Contains(accept, "compatible-with=9") { // what is here is the same in 9
			media = m + ";compatible-with=9"
		}
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("X-Elastic-Product", "Elasticsearch")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that went away needs no answer
}

func (e *Engine) locked(r *request, handle handler) (int, any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return handle(r)
}

// prepare reads the body and refuses parameters and media types that the endpoint does not take.
func (r *request) prepare(w http.ResponseWriter, allowed string) error {
	var unknown []string
	for name := range r.params {
		switch {
		case slices.Contains(strings.Fields("pretty human error_trace "+allowed), name) || allowed == "*":
		case slices.Contains(refusedParams, name):
			return unsupported("the URL parameter " + name)
		default:
			unknown = append(unknown, "["+name+"]")
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		plural := ""
		if len(unknown) > 1 {
			plural = "s"
		}
		return illegal("request [%s] contains unrecognized parameter%s: %s", r.URL.Path, plural, strings.Join(unknown, ", "))
	}
	if accept := r.Header.Get("Accept"); slices.ContainsFunc([]string{"yaml", "cbor", "smile"},
		func(s string) bool { return strings.Contains(accept, s) }) {
		return unsupported("the media type " + accept)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil && strings.EqualFold(r.Header.Get("Content-Encoding"), "gzip") {
		body, err = gunzip(body)
	}
	if err != nil {
		return illegal("read body: %v", err)
	}
	if ct := r.Header.Get("Content-Type"); len(body) > 0 && !strings.Contains(ct, "json") {
		return &failure{status: http.StatusNotAcceptable, plain: "Content-Type header [" + ct + "] is not supported"}
	}
	r.body = body
	return nil
}

// refusedParams are parameters that Elasticsearch takes and that would change a reply.
var refusedParams = []string{"filter_path", "routing", "pipeline", "version_type", "terminate_after", "stored_fields", "explain", "lenient",
	"rest_total_hits_as_int", "typed_keys", "analyzer", "analyze_wildcard", "suggest_field", "suggest_text", "require_alias", "min_score",
	"version", "force_synthetic_source", "include_named_queries_score"}

func gunzip(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(z, maxBody+1))
	if len(out) > maxBody {
		return nil, fmt.Errorf("body over %d bytes", maxBody)
	}
	return out, err
}

// flag says whether a boolean parameter is given as true or without a value.
func (r *request) flag(name string) bool {
	return r.params.Has(name) && r.params.Get(name) != "false"
}

// number reads an integer parameter, leaving to alone when it is absent.
func (r *request) number(name string, to *int) error {
	if !r.params.Has(name) {
		return nil
	}
	n, err := strconv.Atoi(r.params.Get(name))
	if err != nil {
		return illegal("Failed to parse int parameter [%s] with value [%s]", name, r.params.Get(name))
	}
	*to = n
	return nil
}

func (e *Engine) info(*request) (int, any, error) {
	return http.StatusOK, []byte(`{"name":"` + node + `","cluster_name":"` + cluster + `","cluster_uuid":"_na_","version":{"number":"` + version +
		`","build_flavor":"default","build_type":"embedded","build_hash":"unknown","build_date":"1970-01-01T00:00:00.000Z",` +
		`"build_snapshot":false,"lucene_version":"9.12.2","minimum_wire_compatibility_version":"7.17.0",` +
		`"minimum_index_compatibility_version":"7.0.0"},"tagline":"You Know, for Search"}`), nil
}

func (e *Engine) health(*request) (int, any, error) {
	n := strconv.Itoa(len(e.indices))
	return http.StatusOK, []byte(`{"cluster_name":"` + cluster + `","status":"green","timed_out":false,"number_of_nodes":1,"number_of_data_nodes":1,` +
		`"active_primary_shards":` + n + `,"active_shards":` + n + `,"relocating_shards":0,"initializing_shards":0,"unassigned_shards":0,` +
		`"unassigned_primary_shards":0,"delayed_unassigned_shards":0,"number_of_pending_tasks":0,"number_of_in_flight_fetch":0,` +
		`"task_max_waiting_in_queue_millis":0,"active_shards_percent_as_number":100.0}`), nil
}
