package e2e

import (
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
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
	through.create(t, index)
	through.load(t, index, list)
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
