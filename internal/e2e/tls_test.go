package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// TestTLSBothWays has the official clients come by TLS with a certificate, to an engine that wants one too: they load and page as they do
// without, and who has no certificate gets nowhere.
func TestTLSBothWays(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		p := newPKI(t)
		throughTLS(t, e, securedEngine(t, e, p.asking(t)), p)
	})
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

// TestTLSEngineNotTrusted has engines behind certificates that are no good, or none: the client gets a 502 in the engine's own shape, soon,
// and the log says what to do.
func TestTLSEngineNotTrusted(t *testing.T) {
	for _, kind := range engines.Kinds {
		e := &engines.Engine{Kind: kind}
		p, other := newPKI(t), newPKI(t)
		refuse := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(refuse.Close) // the cases run in parallel, behind this function
		to := refuse.Listener.Addr().String()
		showing := func(authority *engines.Authority, c engines.Certificate) *tls.Config {
			pair, err := tls.X509KeyPair(authority.Issue(t, c))
			if err != nil {
				t.Fatal(err)
			}
			return &tls.Config{Certificates: []tls.Certificate{pair}}
		}
		demanding := other.asking(t)
		demanding.Certificates = []tls.Certificate{p.pair(t)}
		silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody answers
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
		type refused struct{ addr, hint string }
		cases := map[string]refused{
			"expired":           {relayTLS(t, showing(p.authority, engines.Certificate{From: time.Unix(0, 0), Until: time.Unix(1e9, 0)}), to), "renew the engine's certificate"},
			"wrong name":        {relayTLS(t, showing(p.authority, engines.Certificate{Hosts: []string{"es.example"}}), to), "write in urls a name"},
			"unknown authority": {relayTLS(t, showing(other.authority, engines.Certificate{}), to), "tls.ca_file"},
			"strange to it":     {relayTLS(t, demanding, to), "the engine does not take the certificate in tls.cert_file"},
			"no TLS":            {to, "write http:// in urls"},
		}
		if kind == engines.Elasticsearch { // the others would wait as long
			cases["silent"] = refused{silent.Addr().String(), "the handshake did not end within 5s"}
		}
		for name, c := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel() // one of them waits
				e := *e
				e.URL = "https://" + c.addr
				d := daemonOf(t, strings.Replace(tlsConfig(&e, p, ""), "listen_tls:", "#", 1))
				base := d.base(t, "e")
				requests := []string{"GET /", "GET /tls-1/_search", "PUT /tls-1/_doc/1"}
				if kind == engines.Typesense {
					requests = []string{"GET /health", "GET /collections/tls-1/documents/search?q=a&query_by=b", "POST /collections/tls-1/documents"}
				}
				var all sync.WaitGroup
				for _, line := range requests {
					all.Go(func() {
						began := time.Now()
						method, path, _ := strings.Cut(line, " ")
						got := call(t, &e, method, base+path, map[bool]string{true: "", false: `{"title":"a"}`}[method == "GET"])
						var shape struct {
							Message string
							Error   struct{ Reason string }
						}
						if err := json.Unmarshal(got.body, &shape); err != nil || got.status != 502 || shape.Message+shape.Error.Reason == "" {
							t.Errorf("%s: %d %s", line, got.status, got.body)
						}
						if took := time.Since(began); took > 12*time.Second {
							t.Errorf("%s: took %v", line, took)
						}
					})
				}
				all.Wait()
				for _, logged := range d.await(t, "engine unreachable", 1) {
					if text := fmt.Sprint(logged["error"]); !strings.Contains(text, c.hint) {
						t.Errorf("logged %s, want a hint %q", text, c.hint)
					}
				}
			})
		}
	}
}

// TestTLSReload puts other certificates in place while requests come on old and on new connections: none fails, and what is no good is
// not taken.
func TestTLSReload(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	p := newPKI(t)
	secured := securedEngine(t, e, p.asking(t))
	d := daemonOf(t, tlsConfig(secured, p, ""))
	base := d.secure(t)
	var failed atomic.Pointer[string]
	var sent atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i := range 4 {
		transport := p.client(t, true)
		load.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				request, _ := http.NewRequest(http.MethodGet, base+"/", nil)
				request.Close = i%2 == 0
				resp, err := transport.RoundTrip(request)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
					if err == nil && resp.StatusCode != http.StatusOK {
						err = fmt.Errorf("status %d", resp.StatusCode)
					}
				}
				if err != nil {
					text := err.Error()
					failed.Store(&text)
				}
				sent.Add(1)
			}
		})
	}
	own := p.client(t, true).TLSClientConfig
	shown := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(base, "https://"), own)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	await := func(name string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); shown() != name; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("clients are shown %q, want %q", shown(), name)
			}
		}
	}
	await("first")
	p.issue(t, engines.Certificate{Name: "second"})
	await("second")
	stray, _ := p.authority.Issue(t, engines.Certificate{Name: "stray"})
	good, err := os.ReadFile(p.file("tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	p.put(t, "tls.crt", stray)
	for end := time.Now().Add(10 * time.Second); !d.says("is not the key of the certificate in"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is said of a pair that does not match")
		}
	}
	await("second")
	p.put(t, "tls.crt", good)
	p.issue(t, engines.Certificate{Name: "third"})
	await("third")
	close(stop)
	load.Wait()
	if text := failed.Load(); text != nil {
		t.Errorf("of %d requests some failed: %s", sent.Load(), *text)
	}
	t.Logf("%d requests", sent.Load())
}

// says reports whether an error in the log holds the words.
func (d *daemon) says(words string) bool {
	for _, line := range d.with("") {
		if line["level"] == "ERROR" && strings.Contains(fmt.Sprint(line["error"]), words) {
			return true
		}
	}
	return false
}
