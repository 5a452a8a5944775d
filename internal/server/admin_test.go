package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/expect"
)

// statusBefore returns a status with one engine of the nodes, which are asked by a transport.
func statusBefore(t *testing.T, transport http.RoundTripper, nodes ...string) *status {
	t.Helper()
	s, p := &status{meters: newMeters(&status{})}, &backend{transport: transport}
	for _, node := range nodes {
		p.urls = append(p.urls, expect.Value(url.Parse(node))(t))
	}
	now := newState(&config.Config{Engines: []config.Engine{{Name: "e"}}})
	now.backends["e"] = p
	s.now.Store(&now)
	return s
}

// TestReadyAsksSeldom: whoever asks often whether the sidecar is ready costs the engine nothing, and nobody waits long for one that is silent.
func TestReadyAsksSeldom(t *testing.T) {
	var asked atomic.Int64
	engine := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer engine.Close()
	h := statusBefore(t, &http.Transport{}, engine.URL).handler()
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", []string{"/readyz", "/readyz?verbose"}[i%2], nil))
			expect.Same(t, http.StatusOK, w.Code, "%s", w.Body)
		})
	}
	if all.Wait(); asked.Load() > 4 {
		t.Errorf("the engine was asked %d times", asked.Load())
	}
}

// talking is a transport to nodes of which those named silent say nothing.
type talking struct{}

// RoundTrip implements http.RoundTripper.
func (talking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Hostname() == "silent" {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Request: r}, nil
}

// TestReadyWithASilentNode: a node that takes connections and says nothing holds up no answer where another speaks, and else no longer than
// the bound. What is shown of a node is its address alone.
func TestReadyWithASilentNode(t *testing.T) {
	const silent, speaks = "http://user:hunter2@silent:9200/?key=hunter2", "http://speaks:9200"
	for _, c := range []struct {
		nodes []string
		path  string
		code  int
		takes time.Duration
	}{
		{[]string{silent, speaks}, "/readyz", 200, 0},
		{[]string{silent, speaks}, "/readyz?verbose", 200, ProbeTimeout},
		{[]string{silent}, "/readyz?verbose", 503, ProbeTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, began := httptest.NewRecorder(), time.Now()
			statusBefore(t, talking{}, c.nodes...).handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+c.path, nil))
			if took := time.Since(began); w.Code != c.code || took != c.takes || strings.Contains(w.Body.String(), "hunter2") {
				t.Errorf("%s of %d nodes: %d after %v: %s", c.path, len(c.nodes), w.Code, took, w.Body)
			}
			synctest.Wait()
		})
	}
}

// TestPlaygroundByAddress: without a word in the file the playground is on where none but this machine can reach it, and what the file says
// holds everywhere.
func TestPlaygroundByAddress(t *testing.T) {
	for admin, on := range map[string]bool{
		"127.0.0.1:7610": true, "127.9.9.9:7610": true, "[::1]:7610": true, "localhost:7610": true, "LocalHost:7610": true,
		"0.0.0.0:7610": false, ":7610": false, "[::]:7610": false, "10.1.2.3:7610": false, "search.example:7610": false, "localhost.example:7610": false,
	} {
		for line, want := range map[string]bool{"": on, "playground: true": true, "playground: false": false} {
			text := fmt.Sprintf("admin: %q\n%s\nengines: [{listen: \"127.0.0.1:0\", kind: embedded, indices: [{match: a, fields: [b]}]}]\n", admin, line)
			expect.Same(t, want, expect.Value(config.Parse([]byte(text), func(string) (string, bool) { return "", false }))(t).Playground, "%s", text)
		}
	}
}

// TestPlaygroundWithoutACertificate: where an engine's clients have to show a certificate, no page that asks for none is on by itself.
func TestPlaygroundWithoutACertificate(t *testing.T) {
	p := engines.NewPEMs(t)
	authority := engines.NewAuthority(t, "an authority")
	p.Put(authority, engines.Certificate{Name: "first"})
	p.Write(p.CA, authority.PEM)
	for line, want := range map[string]bool{"": false, "playground: true": true} {
		text := fmt.Sprintf("%s\nengines: [{listen: \"127.0.0.1:0\", kind: embedded, indices: [{match: a, fields: [b]}], "+
			"listen_tls: {cert_file: %q, key_file: %q, client_ca_file: %q}}]\n", line, p.Cert, p.Key, p.CA)
		expect.Same(t, want, expect.Value(config.Parse([]byte(text), func(string) (string, bool) { return "", false }))(t).Playground, "%s", text)
	}
}

// TestOthersAreWarnedOf: where others than this machine can reach the admin listener, a line says so and what they are shown.
func TestOthersAreWarnedOf(t *testing.T) {
	const search = "searches the engines"
	for _, c := range []struct {
		address        string
		playing, warns bool
	}{{"127.0.0.1", true, false}, {"::1", true, false}, {"0.0.0.0", true, true}, {"::", false, true}, {"10.1.2.3", false, true}} {
		var s status
		s.now.Store(&state{config: &config.Config{Playground: c.playing}})
		var log strings.Builder
		s.warnOpen(slog.New(slog.NewTextHandler(&log, nil)), &net.TCPAddr{IP: net.ParseIP(c.address), Port: 7610})
		if line := log.String(); (line != "") != c.warns || strings.Contains(line, search) != (c.warns && c.playing) {
			t.Errorf("%+v: %s", c, line)
		}
	}
	text := strings.Replace(embeddedConfig(""), "admin: 127.0.0.1:0", "admin: 0.0.0.0:0", 1)
	if log := started(t, text).log.String(); !strings.Contains(log, "others can reach the admin listener") {
		t.Errorf("a server that others can reach says %s", log)
	}
}
