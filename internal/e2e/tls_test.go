package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// TestTLSBothWays has the official clients come by TLS with a certificate, to an engine that wants one too: they load and page as they do
// without, and who has no certificate gets nowhere.
func TestTLSBothWays(t *testing.T) {
	e, p := engines.Shared(t, engines.OpenSearch), newPKI(t)
	throughTLS(t, e, securedEngine(t, e, p.asking(t)), p)
}

// TestTLSTypesense does so with the TLS of Typesense itself.
func TestTLSTypesense(t *testing.T) { ownTLS(t, engines.Typesense) }

// TestTLSElasticsearch does so with the TLS of Elasticsearch itself, which asks for a certificate and a password.
func TestTLSElasticsearch(t *testing.T) {
	if os.Getenv("NEARDUP_SOAK") == "" {
		t.Skip("starting it takes a minute: set NEARDUP_SOAK=1")
	}
	ownTLS(t, engines.Elasticsearch)
}

func ownTLS(t *testing.T, kind string) {
	p := newPKI(t)
	if err := os.Chmod(p.dir, 0o755); err != nil { // an engine may run as another user
		t.Fatal(err)
	}
	t.Setenv("NEARDUP_ENGINE_TLS", p.dir)
	e := engines.Own(t, kind)
	if !strings.HasPrefix(e.URL, "https://") {
		t.Fatalf("it is at %s", e.URL)
	}
	throughTLS(t, e, e, p)
}

// throughTLS drives a sidecar by TLS on both sides in front of an engine, which is also reached directly.
func throughTLS(t *testing.T, direct, secured *engines.Engine, p *pki) {
	list := documents(t)[:120]
	everyClient(t, p.client(t, true))
	d := daemonOf(t, tlsConfig(secured, p, ""))
	direct, secured = named(direct), named(secured)
	base := d.secure(t)
	if secured.Kind == engines.Elasticsearch {
		base = strings.Replace(base, "://", user, 1)
	}
	through, plain := api{secured, base}, api{direct, direct.URL}
	index := "tls-" + strings.ToLower(t.Name()[strings.LastIndexByte(t.Name(), '/')+1:])
	plain.drop(t, index)
	plain.drop(t, index+"-py")
	through.create(t, index)
	goLoad(t, through, index, list)
	pages := goWalk(t, through, index, "*", 10)
	if shown := len(strings.Fields(strings.Join(flatten(pages), " "))); shown < 20 || shown >= len(list) {
		t.Errorf("%d of %d documents are shown: nothing was collapsed, or all", shown, len(list))
	}
	t.Run("as without TLS", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := strings.Replace(tlsConfig(direct, p, ""), "listen_tls: {", "#", 1)
		if strings.HasPrefix(direct.URL, "http:") {
			text = strings.Replace(text, "    tls: {", "#", 1)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		plainly := named(&engines.Engine{Kind: direct.Kind, URL: serveFile(t, file), Key: direct.Key})
		if diff := cmp.Diff(goWalk(t, api{direct, plainly.URL}, index, "*", 10), pages); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("Python", func(t *testing.T) { pythonTLS(t, through, index+"-py", p) })
	t.Run("long head", func(t *testing.T) { // goes on a connection that is used once
		long := strings.Repeat("x", 4<<10)
		for range 3 {
			a := call(t, secured, "GET", plain.base+"/nothing-tls", "", "X-Long", long)
			b := call(t, secured, "GET", base+"/nothing-tls", "", "X-Long", long)
			if a.status != b.status || string(a.body) != string(b.body) {
				t.Errorf("%d %s, directly %d %s", b.status, b.body, a.status, a.body)
			}
		}
	})
	t.Run("commands", func(t *testing.T) {
		for _, command := range []string{"setup", "verify", "config check"} {
			out, code := sidecar(t, append(strings.Fields(command), "--config", d.file)...)
			if code != 0 {
				t.Errorf("%s: code %d: %s", command, code, out)
			}
		}
	})
	t.Run("strangers", func(t *testing.T) { strangersTLS(t, d, secured, p) })
}

func flatten(pages [][]string) (ids []string) {
	for _, page := range pages {
		ids = append(ids, page...)
	}
	return ids
}

// user is who Elasticsearch asks for where it asks for somebody.
const user = "://neardup:neardup-test@"

// named returns the engine with that user in its URL, which all clients send.
func named(e *engines.Engine) *engines.Engine {
	if e.Kind != engines.Elasticsearch {
		return e
	}
	with := *e
	with.URL = strings.Replace(e.URL, "://", user, 1)
	return &with
}

// strangersTLS comes without a certificate, with one of another authority, and without TLS.
func strangersTLS(t *testing.T, d *daemon, e *engines.Engine, p *pki) {
	base := d.secure(t)
	other := newPKI(t)
	strange := p.client(t, false)
	strange.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair := other.pair(t)
		return &pair, nil
	}
	for name, transport := range map[string]*http.Transport{"without a certificate": p.client(t, false), "with a strange one": strange} {
		if status, body, err := once(transport, base+"/"); err == nil {
			t.Errorf("%s: %d %.100s", name, status, body)
		}
	}
	if status, body, err := once(&http.Transport{}, strings.Replace(base, "https:", "http:", 1)+"/"); err != nil || status != http.StatusBadRequest {
		t.Errorf("without TLS: %d %.100s %v", status, body, err)
	}
	lines := d.await(t, "client not let in", 1) // the first of them alone has a line for itself
	if text := fmt.Sprint(lines[0]["error"]); !strings.Contains(text, "listen_tls.client_ca_file") && !strings.Contains(text, "https://") {
		t.Errorf("logged %v", lines[0])
	}
	if status, _, err := once(p.client(t, true), base+"/health", "X-Typesense-Api-Key", e.Key); err != nil || status >= 500 {
		t.Errorf("after them: %d %v", status, err)
	}
}

// pythonTLS loads and reads with the engine's official Python client, with a certificate.
func pythonTLS(t *testing.T, a api, index string, p *pki) {
	python := clients.Python(t)
	file := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(file, []byte(pythonPrograms[a.e.Kind]), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, file, a.base, index, p.file("ca.crt"), p.file("tls.crt"), p.file("tls.key"), a.e.Key)
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got struct{ Stored, Shown int }
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil || got.Stored != 3 || got.Shown != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

const pythonDocuments = `
import json, sys
base, index, ca, cert, key, word = sys.argv[1:]
report = "the council of the town met on monday and spoke for two hours about the bridge over the river and its price"
documents = [{"id": "1", "title": "a bridge", "body": report}, {"id": "2", "title": "a bridge", "body": report + " today"},
             {"id": "3", "title": "a match", "body": "two teams of the same league played in the rain until late at night without a goal"}]
`

var pythonPrograms = map[string]string{
	engines.Elasticsearch: pythonDocuments + `
from elasticsearch import Elasticsearch, helpers
client = Elasticsearch(base, ca_certs=ca, client_cert=cert, client_key=key)
stored, _ = helpers.bulk(client, [{"_index": index, "_id": d["id"], "_source": d} for d in documents], refresh=True)
print(json.dumps({"stored": stored, "shown": len(client.search(index=index)["hits"]["hits"])}))
`,
	engines.OpenSearch: pythonDocuments + `
from opensearchpy import OpenSearch, helpers
client = OpenSearch(base, ca_certs=ca, client_cert=cert, client_key=key)
stored, _ = helpers.bulk(client, [{"_index": index, "_id": d["id"], "_source": d} for d in documents], refresh=True)
print(json.dumps({"stored": stored, "shown": len(client.search(index=index)["hits"]["hits"])}))
`,
	// Its client knows no certificates of its own: the library below it does.
	engines.Typesense: pythonDocuments + `
import httpx, ssl, typesense, urllib.parse
trust = ssl.create_default_context(cafile=ca)
trust.load_cert_chain(cert, key)
make = httpx.HTTPTransport.__init__
httpx.HTTPTransport.__init__ = lambda self, *args, **named: make(self, *args, **{**named, "verify": trust})
url = urllib.parse.urlsplit(base)
client = typesense.Client({"nodes": [{"host": url.hostname, "port": str(url.port), "protocol": "https"}], "api_key": word, "connection_timeout_seconds": 60})
client.collections.create({"name": index, "fields": [{"name": "title", "type": "string"}, {"name": "body", "type": "string"}]})
stored = sum(reply["success"] for reply in client.collections[index].documents.import_(documents, {"action": "create"}))
print(json.dumps({"stored": stored, "shown": len(client.collections[index].documents.search({"q": "*", "query_by": "title"})["hits"])}))
`,
}
