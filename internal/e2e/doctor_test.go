package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// finding is one check of doctor.
type finding struct{ State, Engine, Check, Text, Hint string }

// doctor runs the command and returns its checks. Its exit code has to be that of what it found.
func doctor(t *testing.T, file string) []finding {
	t.Helper()
	out, code := sidecar(t, "doctor", "--config", file, "--output", "json")
	var report struct {
		Checks         []finding
		OK, Warn, Fail int
	}
	decode(t, []byte(out), &report)
	if report.OK+report.Warn+report.Fail != len(report.Checks) || code != min(report.Fail, 1) {
		t.Fatalf("doctor ended with %d: %s", code, out)
	}
	return report.Checks
}

// holds fails the test unless there is a check in the state whose text and hint hold what the pattern says.
func holds(t *testing.T, checks []finding, state, check, pattern string) {
	t.Helper()
	p := regexp.MustCompile(pattern)
	found := func(c finding) bool { return c.State == state && c.Check == check && p.MatchString(c.Text+": "+c.Hint) }
	if !slices.ContainsFunc(checks, found) {
		t.Errorf("no %s of %s says %q:\n%s", state, check, pattern, said(checks))
	}
}

func said(checks []finding) string {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%s %s: %s: %s\n", c.State, c.Check, c.Text, c.Hint)
	}
	return b.String()
}

var products = map[string]string{
	engines.Elasticsearch: `Elasticsearch 9\.4\.`, engines.OpenSearch: `OpenSearch 3\.6\.`, engines.Typesense: `Typesense 0\.24\.`,
	engines.Elasticsearch8: `Elasticsearch 8\.19\.`, engines.OpenSearch2: `OpenSearch 2\.19\.`,
}

// TestDoctor follows an index from before it is there to where all is well, and breaks it again.
func TestDoctor(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		direct, list := api{e, e.URL}, documents(t)[:40]
		file := config(t, e, setup{match: "doctor-*", listen: port(t)})

		checks := doctor(t, file)
		holds(t, checks, "ok", "configuration", "1 engine, 1 rule")
		holds(t, checks, "ok", "node", products[e.Name])
		holds(t, checks, "warn", "rule", `doctor-\* matches no index yet`)
		holds(t, checks, "warn", "listener", "no sidecar runs at .* sidecar serve")

		direct.create(t, "doctor-1")
		direct.load(t, "doctor-1", list)
		checks = doctor(t, file)
		holds(t, checks, "fail", "index", "doctor-1 is not ready: .*setup")
		holds(t, checks, "warn", "sketches", "doctor-1: 40 documents.* 0 % have a sketch: run: sidecar reindex")

		succeed(t, "reindex", "--config", file)
		before := stored(t, direct, "doctor-1")
		serveFile(t, file)
		checks = doctor(t, file)
		holds(t, checks, "ok", "index", "doctor-1 is ready: 40 documents.* 100 % have a sketch")
		holds(t, checks, "ok", "listener", "a search of doctor-1 through the sidecar at .*: collapsed; raw=40; folded=")
		if e.Kind != engines.Typesense {
			holds(t, checks, "warn", "sniffing", "bypass the sidecar: set .*rewrite_sniffing: true")
		}
		faulty := func(c finding) bool { return c.State != "ok" && c.Check != "sniffing" }
		if slices.ContainsFunc(checks, faulty) {
			t.Errorf("where all is well: %s", said(checks))
		}
		expect.By{cmp.AllowUnexported(hit{})}.Same(t, before, stored(t, direct, "doctor-1"), "documents after doctor")

		const changed = `{"title":"of which the sidecar knows nothing"}`
		id := list[3].ID
		if direct.typesense() {
			call(t, e, "PATCH", e.URL+"/collections/doctor-1/documents/"+id, changed).want(t, 201)
		} else {
			call(t, e, "POST", e.URL+"/doctor-1/_update/"+id, `{"doc":`+changed+`}`).want(t, 200)
		}
		checks = doctor(t, file)
		holds(t, checks, "fail", "sketches", "1 of 40 documents looked at have the sketch of another text than theirs, such as "+id)

		other := config(t, e, setup{match: "doctor-*", fields: "title, text"})
		checks = doctor(t, other)
		holds(t, checks, "warn", "sketches", "40 of 40 documents looked at have a sketch of an older format, another scheme or other fields")
		holds(t, checks, "warn", "fields", "the field text is not declared, and has a text in none of 40 documents")
	})
}

// TestDoctorOnCredentials asks with a wrong key, and with one that may do nothing but search.
func TestDoctorOnCredentials(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct := api{e, e.URL}
	direct.create(t, "doctor-2")
	checks := doctor(t, config(t, e, setup{match: "doctor-2", key: "wrong"}))
	holds(t, checks, "warn", "node", "does not tell these credentials what it is")
	holds(t, checks, "fail", "rule", "doctor-2: .*401")

	key := newKey(t, e, `"collections:get","documents:search","documents:export"`, `"doctor-2"`)
	checks = doctor(t, config(t, e, setup{match: "doctor-2", key: key}))
	holds(t, checks, "fail", "index", "doctor-2 is not ready")
	holds(t, checks, "fail", "rights", `change its schema: .*401.*\n?.*write its documents: .*401`)
}

// TestDoctorOnIndices looks at indices that can't be written to, and that have room for few fields.
func TestDoctorOnIndices(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	direct := api{e, e.URL}
	direct.drop(t, "doctor-3")
	call(t, e, "PUT", e.URL+"/doctor-3", `{"settings":{"index.mapping.total_fields.limit":4},"mappings":{"properties":{`+
		`"title":{"type":"text","fields":{"raw":{"type":"keyword"}}},"body":{"type":"text"},`+
		`"neardup_sketch":{"type":"keyword","index":false}}}}`).want(t, 200)
	file := config(t, e, setup{match: "doctor-3"})
	checks := doctor(t, file)
	holds(t, checks, "warn", "fields", "doctor-3 has 4 of the 4 fields")
	call(t, e, "PUT", e.URL+"/doctor-3/_settings", `{"index.blocks.write":true}`).want(t, 200)
	holds(t, doctor(t, file), "fail", "rights", "write its documents: the engine answered 403: cluster_block_exception")
}

// TestDoctorOnWaysBeside looks at an OpenSearch that also takes bulks and searches by gRPC.
func TestDoctorOnWaysBeside(t *testing.T) {
	for _, value := range []string{"transport-grpc", "[transport-grpc]"} {
		t.Setenv("NEARDUP_ENGINE_SETTINGS", "aux.transport.types: "+value+"\naux.transport.transport-grpc.port: 0")
		e := engines.Own(t, engines.OpenSearch)
		checks := doctor(t, config(t, e, setup{match: "doctor-*"}))
		holds(t, checks, "warn", "node", `bypass the sidecar: aux\.transport\.types: transport-grpc: keep clients from using it`)
		holds(t, checks, "warn", "sniffing", "bypass the sidecar")
		if testing.Short() {
			return
		}
	}
}

// TestDoctorOnEngines looks at an engine of another kind, and at one that is not there.
func TestDoctorOnEngines(t *testing.T) {
	e := *engines.Shared(t, engines.OpenSearch)
	checks := doctor(t, config(t, &e, setup{match: "doctor-*", urls: []string{"http://127.0.0.1:1", e.URL}}))
	holds(t, checks, "warn", "node", "http://127.0.0.1:1: .*refused: start it")
	e.Kind = engines.Elasticsearch
	holds(t, doctor(t, config(t, &e, setup{match: "doctor-*"})), "fail", "node", "is "+products[e.Name]+".*set .*kind: opensearch")
}
