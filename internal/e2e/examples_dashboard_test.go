package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/neardup/sidecar/internal/engines"
)

// grafana is the dashboard of the examples and its data sources, as far as they make requests.
type grafana struct {
	Panels []struct {
		ID          int
		Title, Type string
		GridPos     struct{ X, Y, W, H int }
		Datasource  struct{ UID string }
		Targets     []grafanaTarget
		// Transformations name the columns of tables.
		Transformations []struct {
			ID      string
			Options struct{ Include struct{ Names []string } }
		}
	}
	Templating struct {
		List []struct{ Name, Query string }
	}

	sources map[string]grafanaSource
}

type grafanaTarget struct {
	RefID, Query, TimeField, Expr string
	Datasource                    struct{ Type, UID string }
	Metrics, BucketAggs           []struct {
		ID, Type, Field string
		Settings        map[string]string
	}
}

type grafanaSource struct {
	UID, Type, URL, Access string
	Data                   map[string]string `yaml:"jsonData"`
	Secure                 map[string]string `yaml:"secureJsonData"`
}

// readGrafana reads the files that the README has Grafana read.
func (x *examples) readGrafana(t *testing.T) (g grafana) {
	t.Helper()
	dir := filepath.Join(x.root, "examples", "dashboard")
	text, err := os.ReadFile(filepath.Join(dir, "articles.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(filepath.Join(dir, "provisioning", "datasources", "neardup.yaml")); err != nil {
		t.Fatal(err)
	}
	var file struct{ Datasources []grafanaSource }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	g.sources = map[string]grafanaSource{}
	for _, s := range file.Datasources {
		g.sources[s.UID] = s
	}
	return g
}

// The range of time and the interval that a reader of the dashboard has chosen: five years, in days.
const (
	grafanaTo       = 1798761600000
	grafanaFrom     = grafanaTo - 5*365*24*3600*1000
	grafanaInterval = "86400000ms"
)

// grafanaVariables puts the value * in the place of the variable query: in a query of Lucene's, Grafana takes what is special there
// for text, unless the variable is asked for raw.
var grafanaVariables = strings.NewReplacer("${query:raw}", "*", "${query}", `\*`, "$query", `\*`)

// body returns the search that Grafana's backend makes of a target, by its sources: data_query_processor.go, aggregation_factory.go
// and client/search_request.go below pkg/tsdb/elasticsearch. It is a Go map there too, so the keys of sort come in the order of the
// alphabet.
func (q grafanaTarget) body(t *testing.T) map[string]any {
	t.Helper()
	between := map[string]any{"gte": grafanaFrom, "lte": grafanaTo, "format": "epoch_millis"}
	text := map[string]any{"query": grafanaVariables.Replace(q.Query), "analyze_wildcard": true}
	body := map[string]any{"size": 0, "query": map[string]any{"bool": map[string]any{"filter": []any{
		map[string]any{"range": map[string]any{q.TimeField: between}}, map[string]any{"query_string": text},
	}}}}
	if len(q.Metrics) == 0 || len(q.Metrics) > 1 {
		t.Fatalf("%s: %d metrics, which this test does not know", q.RefID, len(q.Metrics))
	}
	switch metric := q.Metrics[0]; metric.Type {
	case "raw_data":
		body["size"] = setting(t, metric.Settings["size"])
		body["sort"] = map[string]any{
			q.TimeField: map[string]any{"order": "desc", "unmapped_type": "boolean"}, "_doc": map[string]any{"order": "desc"}}
		body["docvalue_fields"], body["script_fields"] = []string{q.TimeField}, map[string]any{}
		body["fields"] = []any{map[string]any{"field": q.TimeField, "format": "strict_date_optional_time_nanos"}}
	case "count":
		at := body
		for _, b := range q.BucketAggs {
			bucket := map[string]any{}
			at["aggs"], at = map[string]any{b.ID: bucket}, bucket
			switch b.Type {
			case "terms":
				bucket["terms"] = map[string]any{
					"field": b.Field, "size": setting(t, b.Settings["size"]), "min_doc_count": setting(t, b.Settings["min_doc_count"]),
					"order": map[string]any{b.Settings["orderBy"]: b.Settings["order"]},
				}
			case "date_histogram":
				if b.Settings["interval"] != "auto" {
					t.Errorf("%s: an interval of %q", q.RefID, b.Settings["interval"])
				}
				bucket["date_histogram"] = map[string]any{
					"field": b.Field, "fixed_interval": grafanaInterval, "min_doc_count": setting(t, b.Settings["min_doc_count"]),
					"format": "epoch_millis", "extended_bounds": map[string]any{"min": grafanaFrom, "max": grafanaTo},
				}
			default:
				t.Fatalf("%s: %s, which this test does not know", q.RefID, b.Type)
			}
		}
	default:
		t.Fatalf("%s: %s, which this test does not know", q.RefID, metric.Type)
	}
	return body
}

func setting(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// grafanaReply is one reply of a multi-search.
type grafanaReply struct {
	Error any
	Hits  struct {
		Hits []struct {
			ID     string                     `json:"_id"`
			Source map[string]json.RawMessage `json:"_source"`
			Fields map[string][]string
		}
	}
	Aggregations json.RawMessage
}

func (r grafanaReply) ids() (list []string) {
	for _, h := range r.Hits.Hits {
		list = append(list, h.ID)
	}
	return list
}

// ask sends a panel's search as Grafana's server does: newer ones with the index as a text, others as a list, and with the header
// of the data source. It returns the header Neardup too.
func (s grafanaSource) ask(t *testing.T, e *engines.Engine, base string, index any, body map[string]any) (grafanaReply, string) {
	t.Helper()
	head := map[string]any{"ignore_unavailable": true, "index": index, "search_type": "query_then_fetch"}
	lines := string(marshal(t, head)) + "\n" + string(marshal(t, body)) + "\n"
	header := []string{"Content-Type", "application/x-ndjson"}
	if name := s.Data["httpHeaderName1"]; name != "" {
		header = append(header, name, s.Secure["httpHeaderValue1"])
	}
	reply := call(t, e, "POST", base+"/_msearch?max_concurrent_shard_requests=5", lines, header...).want(t, 200)
	var all struct{ Responses []grafanaReply }
	if err := json.Unmarshal(reply.body, &all); err != nil || len(all.Responses) != 1 || all.Responses[0].Error != nil {
		t.Fatalf("%v %.1000s", err, reply.body)
	}
	if base != e.URL && bytes.Contains(reply.body, []byte("neardup_sketch")) {
		t.Errorf("the reply shows our field: %.300s", reply.body)
	}
	return all.Responses[0], reply.header.Get("Neardup")
}

// dashboard sends every query of the dashboard as Grafana does, through the sidecar, and holds what comes back to what the engine
// says.
func (x *examples) dashboard(t *testing.T, e *engines.Engine, through *monitored, index string) {
	x.run(t, x.block(t, "articles-example/_mapping"),
		"http://localhost:9201", through.base, "articles-example", index, "curl ", "curl -sSf ")
	g := x.readGrafana(t)
	x.layout(t, g)
	var expressions []string
	for _, p := range g.Panels {
		for _, q := range p.Targets {
			source := g.sources[q.Datasource.UID]
			if source.Type == "prometheus" {
				expressions = append(expressions, q.Expr)
				continue
			}
			t.Run(p.Title, func(t *testing.T) {
				body := q.body(t)
				raw := replaced(body, "size", 250, q.Metrics[0].Type == "raw_data")
				direct, _ := grafanaSource{}.ask(t, e, e.URL, index, raw)
				for _, name := range []any{index, []string{index}} {
					reply, outcome := source.ask(t, e, through.base, name, body)
					x.checkPanel(t, p.Type, source, direct, reply, outcome)
				}
				reply, _ := source.ask(t, e, through.base, index, body)
				for _, tr := range p.Transformations {
					for _, column := range tr.Options.Include.Names {
						if h := reply.Hits.Hits[0]; h.Source[column] == nil && h.Fields[column] == nil {
							t.Errorf("there is no column %s", column)
						}
					}
				}
			})
		}
	}
	// What the data source's own page asks when it is saved, and the query editor to name fields.
	call(t, e, "GET", through.base+"/", "").want(t, 200)
	call(t, e, "GET", through.base+"/_cluster/health?wait_for_status=yellow", "").want(t, 200)
	mapping := call(t, e, "GET", through.base+"/"+index+"/_mapping", "").want(t, 200)
	if bytes.Contains(mapping.body, []byte("neardup")) {
		t.Errorf("the query editor offers our field: %s", mapping.body)
	}
	x.part(t, "Prometheus", func(t *testing.T) { x.folded(t, e, through, index, expressions) })
}

// replaced returns a copy of a map with another value, if that is wanted.
func replaced(m map[string]any, key string, value any, wanted bool) map[string]any {
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	if wanted {
		out[key] = value
	}
	return out
}

// checkPanel holds the reply for a panel to the engine's own for the whole list.
func (x *examples) checkPanel(t *testing.T, kind string, source grafanaSource, direct, reply grafanaReply, outcome string) {
	t.Helper()
	if kind != "table" {
		if diff := cmp.Diff(string(direct.Aggregations), string(reply.Aggregations)); diff != "" || len(reply.Aggregations) < 50 {
			t.Errorf("counts: %s %s", reply.Aggregations, diff)
		}
		total := 0
		for _, m := range regexp.MustCompile(`"doc_count":(\d+)`).FindAllSubmatch(reply.Aggregations, -1) {
			total += setting(t, string(m[1]))
		}
		if total != len(x.list) {
			t.Errorf("%d documents are counted, not %d", total, len(x.list))
		}
		return
	}
	want, did := direct.ids(), "bypassed; reason=off"
	if source.Data["httpHeaderName1"] == "" {
		want, did = x.oracle(t, seed, 0.64).collapsed(want), "collapsed; raw=12; "
	}
	if diff := cmp.Diff(want[:min(10, len(want))], reply.ids()); diff != "" || !strings.HasPrefix(outcome, did) {
		t.Errorf("%q, want %s: %s", outcome, did, diff)
	}
	var times []string
	for _, h := range reply.Hits.Hits {
		times = append(times, h.Fields["@timestamp"]...)
	}
	falling := slices.IsSortedFunc(times, func(a, b string) int { return strings.Compare(b, a) })
	if len(times) != len(reply.Hits.Hits) || len(times) < 6 || !falling {
		t.Errorf("the latest do not come first: %q", times)
	}
}

// layout checks what Grafana goes by: data sources that are there, places that do not overlap, variables that are defined.
func (x *examples) layout(t *testing.T, g grafana) {
	t.Helper()
	taken, ids := map[string]string{}, map[int]bool{}
	for _, p := range g.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("%q: its id %d is taken, or it has no title or no query", p.Title, p.ID)
		}
		ids[p.ID] = true
		for place := range p.GridPos.W * p.GridPos.H {
			at := fmt.Sprint(p.GridPos.X+place%p.GridPos.W, " ", p.GridPos.Y+place/p.GridPos.W)
			if taken[at] != "" || p.GridPos.X+p.GridPos.W > 24 {
				t.Fatalf("%q lies over %q, or beyond the edge", p.Title, taken[at])
			}
			taken[at] = p.Title
		}
		for _, q := range p.Targets {
			if s, found := g.sources[q.Datasource.UID]; !found || s.Type != q.Datasource.Type || q.Datasource.UID != p.Datasource.UID {
				t.Errorf("%q asks %q, which is no data source of the panel's", p.Title, q.Datasource.UID)
			}
			for _, m := range regexp.MustCompile(`\$\{?([a-z]\w*)`).FindAllStringSubmatch(q.Query+q.Expr, -1) {
				if len(g.Templating.List) != 1 || g.Templating.List[0].Name != m[1] || g.Templating.List[0].Query != "*" {
					t.Errorf("%q uses $%s, which is not defined", p.Title, m[1])
				}
			}
		}
	}
	for uid, s := range g.sources {
		if s.Access != "proxy" || s.Type == "elasticsearch" && (s.URL != "http://localhost:9201" ||
			s.Data["index"] != "articles-example" || s.Data["timeField"] != "@timestamp") {
			t.Errorf("the data source %s: %+v", uid, s)
		}
	}
	if len(taken) < 100 || len(g.sources) != 3 {
		t.Errorf("%d places, %d data sources", len(taken), len(g.sources))
	}
}

// folded has a Prometheus scrape the sidecar, searches, and asks the expressions as Grafana does until each has a value above 0.
func (x *examples) folded(t *testing.T, e *engines.Engine, through *monitored, index string, expressions []string) {
	at := x.prometheus(t, strings.TrimPrefix(through.admin, "http://"))
	if len(expressions) != 2 {
		t.Fatalf("the expressions %q", expressions)
	}
	end := time.Now().Add(30 * time.Second)
	for _, expr := range expressions {
		for lastValue(t, at, strings.ReplaceAll(expr, "$__rate_interval", "2s")) <= 0 {
			if time.Now().After(end) {
				t.Fatalf("%s has no value above 0", expr)
			}
			call(t, e, "GET", through.base+"/"+index+"/_search?q=ferry", "").want(t, 200)
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// lastValue returns the last value of an expression for the engine, or -1 while there is none.
func lastValue(t *testing.T, at, expr string) float64 {
	t.Helper()
	now := time.Now().Unix()
	reply, err := http.PostForm(at+"/api/v1/query_range", url.Values{
		"query": {expr}, "start": {fmt.Sprint(now - 60)}, "end": {fmt.Sprint(now)}, "step": {"1"}})
	if err != nil { // it does not listen yet
		return -1
	}
	defer reply.Body.Close()
	var body struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	err = json.NewDecoder(reply.Body).Decode(&body)
	if reply.StatusCode == http.StatusServiceUnavailable {
		return -1
	}
	if err != nil || body.Error != "" {
		t.Fatalf("%s: %v %s", expr, err, body.Error)
	}
	if r := body.Data.Result; len(r) == 1 && r[0].Metric["engine"] == "elasticsearch" {
		text, _ := r[0].Values[len(r[0].Values)-1][1].(string)
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			return value
		}
	}
	return -1
}

// prometheus starts one that scrapes an address four times a second, and returns its own. Where there is none the test is
// skipped; in CI it fails.
func (x *examples) prometheus(t *testing.T, target string) string {
	t.Helper()
	script := filepath.Join(x.root, "deploy", "prometheus", "check.sh") // which fetches it where it is missing
	out, err := exec.CommandContext(t.Context(), "bash", script, "path", "prometheus").Output()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("there is no Prometheus: %v", err)
	}
	dir := t.TempDir()
	text := "global: {scrape_interval: 250ms}\n" +
		"scrape_configs: [{job_name: neardup, static_configs: [{targets: [\"" + target + "\"]}]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	cmd := exec.CommandContext(t.Context(), strings.TrimSpace(string(out)), "--config.file=prometheus.yaml",
		"--storage.tsdb.path=data", "--web.listen-address="+at, "--log.level=error")
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() }) // nothing of it is kept
	return "http://" + at
}
