package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestRightsOfTheJobs runs all commands that use the operator's credentials with those of docs/security.md: with the page's role on an
// Elasticsearch with users, and with its key on Typesense. A job without the right to write fails.
func TestRightsOfTheJobs(t *testing.T) {
	t.Run("elasticsearch", rightsOnElasticsearch)
	t.Run("typesense", rightsOnTypesense)
}

func rightsOnElasticsearch(t *testing.T) {
	p := newPKI(t)
	check(t, os.Chmod(p.dir, 0o755)) // the engine may run as another user
	t.Setenv("NEARDUP_ENGINE_TLS", p.dir)
	e := engines.Own(t, engines.Elasticsearch)
	everyClient(t, p.client(t, true))
	admin := basic("neardup", "neardup-test")
	put := func(path, body string) {
		t.Helper()
		call(t, e, "PUT", e.URL+path, body, "Authorization", admin).want(t, 200)
	}
	role := rightsIn(t, "role.json")
	put("/_security/role/neardup-jobs", role)
	put("/_security/role/readers", strings.Replace(role, `"index", `, "", 1))
	put("/_security/user/jobs", `{"password":"jobs-password","roles":["neardup-jobs"]}`)
	put("/_security/user/reader", `{"password":"jobs-password","roles":["readers"]}`)
	put("/_index_template/news", `{"index_patterns":["news-*"],"template":{"mappings":{"properties":{"body":{"type":"text"}}}}}`)
	var lines strings.Builder
	for _, d := range documents(t)[:40] {
		lines.WriteString(`{"index":{"_id":"` + d.ID + `"}}` + "\n" + string(must(json.Marshal(d))(t)) + "\n")
	}
	call(t, e, "POST", e.URL+"/news-1/_bulk?refresh=true", lines.String(), "Authorization", admin).want(t, 200)

	tls := "\ntls: {cert_file: " + p.file("tls.crt") + ", key_file: " + p.file("tls.key") + ", ca_file: " + p.file("ca.crt") + "}"
	file := func(user string) string {
		return config(t, e, setup{match: "news-*", rule: "native: true\nbands: auto",
			engine: "credentials: {username: " + user + ", password: jobs-password}" + tls})
	}
	t.Setenv("ENGINE_USERNAME", "jobs")
	t.Setenv("ENGINE_PASSWORD", "jobs-password")
	everyJob(t, e, file("jobs"), "--ca-file", p.file("ca.crt"), "--cert-file", p.file("tls.crt"), "--key-file", p.file("tls.key"))
	if out, code := sidecar(t, "reindex", "--config", file("reader")); code != 3 {
		t.Errorf("without the right to write: code %d: %s", code, out)
	}
	var key struct{ Encoded string }
	decode(t, call(t, e, "POST", e.URL+"/_security/api_key", `{"name":"neardup","role_descriptors":{"neardup-jobs":`+role+`}}`,
		"Authorization", admin).want(t, 200).body, &key)
	byKey := config(t, e, setup{match: "news-*", engine: "credentials: {api_key: " + key.Encoded + "}" + tls})
	succeed(t, "setup", "--config", byKey)
	succeed(t, "reindex", "--config", byKey)
}

func rightsOnTypesense(t *testing.T) {
	e := engines.Own(t, engines.Typesense)
	direct := api{e, e.URL}
	direct.create(t, "news-1", documents(t)[:40]...)
	key := func(rights string) string {
		var made struct{ Value string }
		decode(t, call(t, e, "POST", e.URL+"/keys", rights).want(t, 201).body, &made)
		return made.Value
	}
	rights := rightsIn(t, "key.json")
	jobs, reader := key(rights), key(strings.Replace(rights, `"documents:import", `, "", 1))
	t.Setenv("ENGINE_API_KEY", jobs)
	everyJob(t, e, config(t, e, setup{match: "news-*", rule: "native: true\nbands: auto", key: jobs}))
	if out, code := sidecar(t, "reindex", "--config", config(t, e, setup{match: "news-*", rule: "native: true\nbands: auto", key: reader})); code != 1 {
		t.Errorf("without the right to write: code %d: %s", code, out)
	}
}

// everyJob runs the commands, in the order in which an operator needs them. Further arguments are those of init.
func everyJob(t *testing.T, e *engines.Engine, file string, more ...string) {
	t.Helper()
	succeed(t, append([]string{"init", "--index", "news-1", "--output", filepath.Join(t.TempDir(), "made.yaml"), e.URL}, more...)...)
	id := documents(t)[0].ID
	for _, command := range []string{
		"setup", "reindex", "reindex --resume", "doctor", "verify", "verify --repair", "calibrate --index news-1", "cluster --index news-1 --write",
		"similar --index news-1 " + id, "remove --index news-1 --yes --jobs",
	} {
		out := succeed(t, append(strings.Fields(command), "--config", file)...)
		if strings.Contains(string(out), "others can't join in") {
			t.Errorf("%s keeps no progress: %s", command, out)
		}
	}
}

// rightsIn returns the JSON block of docs/security.md that the page has one save as a file of this name.
func rightsIn(t *testing.T, name string) string {
	t.Helper()
	text := string(must(os.ReadFile(filepath.Join("..", "..", "docs", "security.md")))(t))
	_, rest, found := strings.Cut(text, "<!-- file: "+name+" -->\n```json\n")
	block, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed || !json.Valid([]byte(block)) {
		t.Fatalf("docs/security.md has no JSON for %s", name)
	}
	return block
}
