package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// TestTLSBothWays has the official clients come by TLS with a certificate, to an engine that wants one too: they load and page as they do
// without, and who has no certificate gets nowhere.
func TestTLSBothWays(t *testing.T) {
	e, p := engines.Shared(t, engines.OpenSearch), newPKI(t)
	throughTLS(t, e, securedEngine(t, e, p.asking(t)), p)
}

// TestTLSTypesense does so with the TLS of Typesense itself.
func TestTLSTypesense(t *testing.T) {
	p := newPKI(t)
	if err := os.Chmod(p.dir, 0o755); err != nil { // an engine may run as another user
		t.Fatal(err)
	}
	t.Setenv("NEARDUP_ENGINE_TLS", p.dir)
	e := engines.Own(t, engines.Typesense)
	if !strings.HasPrefix(e.URL, "https://") {
		t.Fatalf("it is at %s", e.URL)
	}
	throughTLS(t, e, e, p)
}

// throughTLS drives a sidecar by TLS on both sides in front of an engine, which is also reached directly.
func throughTLS(t *testing.T, direct, secured *engines.Engine, p *pki) {
	list := documents(t)[:120]
	everyClient(t, p.client(t, true))
	d := daemonOf(t, tlsConfig(secured, p))
	through := api{secured, d.secure(t)}
	index := "tls-" + strings.ToLower(t.Name())
	through.create(t, index, list...)
	pages := through.whole(t, index, "*", 10, "")
	if shown := len(slices.Concat(pages...)); shown < 20 || shown >= len(list) {
		t.Errorf("%d of %d documents are shown: nothing was collapsed, or all", shown, len(list))
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := strings.Replace(tlsConfig(direct, p), "listen_tls: {", "#", 1)
	if strings.HasPrefix(direct.URL, "http:") {
		text = strings.Replace(text, "    tls: {", "#", 1)
	}
	check(t, os.WriteFile(file, []byte(text), 0o600))
	same(t, api{direct, serveFile(t, file)}.whole(t, index, "*", 10, ""), pages, "without TLS (-), with it (+)")
	for _, command := range []string{"setup", "verify", "config check"} {
		if out, code := sidecar(t, append(strings.Fields(command), "--config", d.file)...); code != 0 {
			t.Errorf("%s: code %d: %s", command, code, out)
		}
	}
	strangersTLS(t, d, secured, p)
}

// strangersTLS comes without a certificate, with one of another authority, and without TLS.
func strangersTLS(t *testing.T, d *daemon, e *engines.Engine, p *pki) {
	t.Helper()
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
	d.await(t, "client not let in", 1)
	if status, _, err := once(p.client(t, true), base+"/health", "X-Typesense-Api-Key", e.Key); err != nil || status >= 500 {
		t.Errorf("after them: %d %v", status, err)
	}
}

// pki is all that two sides who show each other certificates need, as files in one folder: ca.crt, tls.crt and tls.key. One pair, for
// 127.0.0.1 and localhost, serves both of them.
type pki struct {
	authority *engines.Authority
	dir       string
}

func newPKI(t *testing.T) *pki {
	t.Helper()
	p := &pki{engines.NewAuthority(t, "an authority of the tests"), t.TempDir()}
	p.put(t, "ca.crt", p.authority.PEM)
	p.issue(t, engines.Certificate{Name: "first"})
	return p
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

// put writes a file whole, as one that is renamed.
func (p *pki) put(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(p.file(name+".new"), text, 0o644); err != nil { // an engine that runs as another user reads it too
		t.Fatal(err)
	}
	check(t, os.Rename(p.file(name+".new"), p.file(name)))
}

// issue puts another pair in place.
func (p *pki) issue(t *testing.T, c engines.Certificate) {
	t.Helper()
	cert, key := p.authority.Issue(t, c)
	p.put(t, "tls.key", key)
	p.put(t, "tls.crt", cert)
}

// pair returns what the files hold.
func (p *pki) pair(t *testing.T) tls.Certificate {
	t.Helper()
	return must(tls.LoadX509KeyPair(p.file("tls.crt"), p.file("tls.key")))(t)
}

// client returns a transport for who trusts the authority and, if known, shows a certificate of it.
func (p *pki) client(t *testing.T, known bool) *http.Transport {
	t.Helper()
	config := &tls.Config{RootCAs: p.authority.Pool()}
	if known {
		config.Certificates = []tls.Certificate{p.pair(t)}
	}
	return &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
}

// everyClient has all Go clients of the test come in this way.
func everyClient(t *testing.T, transport http.RoundTripper) {
	before := http.DefaultTransport
	http.DefaultTransport = transport
	t.Cleanup(func() { http.DefaultTransport = before })
}

// securedEngine returns an engine that takes no client without a certificate of the authority: the one given, behind a relay.
func securedEngine(t *testing.T, e *engines.Engine, config *tls.Config) *engines.Engine {
	t.Helper()
	u := must(url.Parse(e.URL))(t)
	behind := *e
	behind.URL = "https://" + inject.Listen(t, config, func(conn net.Conn, _ int) { pass(conn.(*tls.Conn), u.Host) })
	return &behind
}

// asking is the configuration of who shows the pair and asks for a certificate.
func (p *pki) asking(t *testing.T) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{p.pair(t)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: p.authority.Pool()}
}

// pass passes what comes by TLS on to an address without.
func pass(in *tls.Conn, to string) {
	if in.Handshake() != nil {
		return
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer out.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(in, out)
	_ = in.CloseWrite()
	<-ended // what the client still sends meets no reset
}

// tlsConfig is a configuration by TLS on both sides.
func tlsConfig(e *engines.Engine, p *pki) string {
	credentials := "{}"
	if e.Key != "" {
		credentials = "{api_key: " + e.Key + "}"
	}
	return fmt.Sprintf(`log: {format: json}
admin: 127.0.0.1:0
sketch: {seed: %q}
engines:
  - name: e
    listen: 127.0.0.1:0
    kind: %s
    urls: [%q]
    credentials: %s
    limits: %s
    listen_tls: {cert_file: %q, key_file: %q, client_ca_file: %q}
    tls: {cert_file: %q, key_file: %q, ca_file: %q}
    indices: [{match: "tls-*", fields: [title, body], threshold: 0.7}]
`, seed, e.Kind, e.URL, credentials, patient(""), p.file("tls.crt"), p.file("tls.key"), p.file("ca.crt"), p.file("tls.crt"), p.file("tls.key"), p.file("ca.crt"))
}

// secure returns the URL at which clients come by TLS.
func (d *daemon) secure(t *testing.T) string {
	t.Helper()
	return strings.Replace(d.base(t, "e"), "http:", "https:", 1)
}

// once asks for a page with a transport's next connection.
func once(transport *http.Transport, url string, header ...string) (status int, body string, err error) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	request.Close = true
	got, err := exchange(&http.Client{Transport: transport}, request)
	return got.status, string(got.body), err
}
