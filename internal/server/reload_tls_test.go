package server

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// TestReloadChangesTLS goes from plain connections to TLS, to another pair of files, to a pair changed in place and back to plain, at one
// address: one that is open stays so, and the engine's backend too.
func TestReloadChangesTLS(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer backend.Close()
	authority, at := engines.NewAuthority(t, "of tests"), freePort(t)
	first, second := engines.NewPEMs(t), engines.NewPEMs(t)
	first.Put(authority, engines.Certificate{Name: "first"})
	second.Put(authority, engines.Certificate{Name: "second"})
	text := func(p *engines.PEMs) string {
		s := fmt.Sprintf("admin: \"\"\nengines:\n  - kind: elasticsearch\n    listen: %q\n    urls: [%q]\n    indices: [{match: a, fields: [t]}]\n", at, backend.URL)
		if p != nil {
			s += fmt.Sprintf("    listen_tls: {cert_file: %q, key_file: %q}\n", p.Cert, p.Key)
		}
		return s
	}
	r := started(t, text(nil))
	unit := r.backends["elasticsearch"]
	// One client stays.
	open := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	ask := func(c *http.Client, scheme string) (name string, closes bool) {
		t.Helper()
		response, err := c.Get(scheme + "://" + at + "/")
		if err != nil {
			return err.Error(), false
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.TLS != nil {
			name = response.TLS.PeerCertificates[0].Subject.CommonName
		}
		return name, response.Close
	}
	if name, closes := ask(open, "http"); name != "" || closes {
		t.Errorf("plain at first: %q, closes: %v", name, closes)
	}
	fresh := func() *http.Client {
		return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}}}
	}
	r.become(t, text(first))
	if name, closes := ask(open, "http"); name != "" || !closes {
		t.Errorf("the connection that was open: %q, closes: %v", name, closes)
	}
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"TLS", func() {}, "first"},
		{"other files", func() { r.become(t, text(second)) }, "second"},
		{"changed in place", func() { second.Put(authority, engines.Certificate{Name: "third"}); r.reload("test") }, "third"},
		{"spoiled", func() { second.Write(second.Key, []byte("no key")); r.reload("test") }, "third"},
	} {
		step.do()
		name, _ := ask(fresh(), "https")
		expect.Same(t, step.want, name, "%s: who is shown\n%s", step.what, r.log)
	}
	r.become(t, text(nil))
	name, _ := ask(fresh(), "http")
	expect.Same(t, "", name, "plain again")
	if r.backends["elasticsearch"] != unit || strings.Contains(r.log.String(), "not listening any more") {
		t.Error("the engine forgot what it learned, or the address was given up meanwhile")
	}
	if n := strings.Count(r.log.String(), "level=ERROR"); n < 1 {
		t.Errorf("nothing is said of the pair that is no good\n%s", r.log)
	}
}
