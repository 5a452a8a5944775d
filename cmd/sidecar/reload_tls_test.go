package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestReloadChangesTLS goes from plain connections to TLS, to another pair of files, to a pair changed in place and back to plain, at one
// address: no connection to it is refused meanwhile, one that is open stays so, and the engine's unit too.
func TestReloadChangesTLS(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer backend.Close()
	authority, at := engines.NewAuthority(t, "of tests"), freePort(t)
	first, second := newPEMs(t), newPEMs(t)
	first.put(authority, engines.Certificate{Name: "first"})
	second.put(authority, engines.Certificate{Name: "second"})
	text := func(p *pems) string {
		s := fmt.Sprintf("admin: \"\"\nengines:\n  - kind: elasticsearch\n    listen: %q\n    urls: [%q]\n    indices: [{match: a, fields: [t]}]\n", at, backend.URL)
		if p != nil {
			s += fmt.Sprintf("    listen_tls: {cert_file: %q, key_file: %q}\n", p.cert, p.key)
		}
		return s
	}
	r := started(t, text(nil))
	unit := r.units["elasticsearch"]

	// Somebody tries to connect all the time.
	var refused atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			conn, err := net.Dial("tcp", at)
			if errors.Is(err, syscall.ECONNREFUSED) {
				refused.Add(1)
			}
			if err == nil {
				_ = conn.Close()
			}
			time.Sleep(200 * time.Microsecond)
		}
	})
	// And one client stays.
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
		{"changed in place", func() { second.put(authority, engines.Certificate{Name: "third"}); r.reload("test") }, "third"},
		{"spoiled", func() { second.write(second.key, []byte("no key")); r.reload("test") }, "third"},
	} {
		step.do()
		if name, _ := ask(fresh(), "https"); name != step.want {
			t.Errorf("%s: %q is shown, want %q\n%s", step.what, name, step.want, r.log)
		}
	}
	r.become(t, text(nil))
	if name, _ := ask(fresh(), "http"); name != "" {
		t.Errorf("plain again: %q", name)
	}
	close(stop)
	wg.Wait()
	if n := refused.Load(); n > 0 {
		t.Errorf("%d connections were refused", n)
	}
	if r.units["elasticsearch"] != unit {
		t.Error("the engine forgot what it learned")
	}
	if n := strings.Count(r.log.String(), "level=ERROR"); n < 1 {
		t.Errorf("nothing is said of the pair that is no good\n%s", r.log)
	}
}

// TestReloadChangesTimeouts shortens how long a connection may be idle: one that is open goes on by the old time, a new one by the new.
func TestReloadChangesTimeouts(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer backend.Close()
	at := freePort(t)
	text := func(limits string) string {
		return fmt.Sprintf("admin: \"\"\nengines:\n  - {kind: elasticsearch, listen: %q, urls: [%q], indices: [{match: a, fields: [t]}], limits: {%s}}\n", at, backend.URL, limits)
	}
	r := started(t, text(""))
	unit := r.units["elasticsearch"]
	r.become(t, text("idle_timeout: 100ms, header_timeout: 100ms"))
	conn, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(60 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if reply, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(reply), "HTTP/1.1 200") {
		t.Errorf("an idle connection stays open: %v %s", err, reply)
	}
	if r.units["elasticsearch"] != unit {
		t.Error("the engine forgot what it learned")
	}
}
