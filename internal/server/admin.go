package server

import (
	"context"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/terminal"

	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/playground"
)

const (
	// ProbeTimeout is how long an engine may take to answer a probe.
	ProbeTimeout = 2 * time.Second
	// probeTTL is how long the result of a probe is cached, so that frequent readiness checks do not load the engines.
	probeTTL = time.Second
)

// status answers on the admin listener. Set the fields that are not atomic before handler.
type status struct {
	draining   atomic.Bool
	pprof      bool // serve profiles
	meters     *meters
	playground *playground.Handler // nil for none
	now        atomic.Pointer[state]
}

// config returns the configuration that is served.
func (s *status) config() *config.Config {
	if now := s.now.Load(); now != nil {
		return now.config
	}
	return &config.Config{}
}

// playgroundOn reports whether the playground is served.
func (s *status) playgroundOn() bool { return s.playground != nil && s.config().Playground }

// handler serves the pages of the admin listener. They are read-only. They show no secrets, since there is no log-in.
func (s *status) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { writePage(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /version", s.checkHost(http.HandlerFunc(showVersion)))
	mux.Handle("GET /{$}", s.checkHost(http.HandlerFunc(s.index)))
	mux.Handle(playground.Prefix, s.checkHost(http.HandlerFunc(s.servePlayground)))
	mux.Handle("GET /metrics", s.checkHost(s.meters.handler()))
	if s.pprof {
		mux.Handle("GET /debug/pprof/", s.checkHost(styled(pprof.Index)))
		mux.Handle("GET /debug/pprof/cmdline", s.checkHost(http.NotFoundHandler())) // the command line may contain secrets
		mux.Handle("GET /debug/pprof/profile", s.checkHost(http.HandlerFunc(pprof.Profile)))
		mux.Handle("GET /debug/pprof/symbol", s.checkHost(http.HandlerFunc(pprof.Symbol)))
		mux.Handle("GET /debug/pprof/trace", s.checkHost(http.HandlerFunc(pprof.Trace)))
	}
	return withHeaders(mux)
}

// withHeaders adds adminHeaders to every reply.
func withHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for key, value := range adminHeaders {
			w.Header().Set(key, value)
		}
		h.ServeHTTP(w, r)
	})
}

// adminHeaders allow browsers to show a page, and nothing else.
var adminHeaders = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// styled serves a page with inline styles.
func styled(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		h(w, r)
	})
}

// checkHost refuses requests for an unknown host. It protects against DNS rebinding: a stranger's page whose name resolves to this address
// could read our replies in the user's browser.
func (s *status) checkHost(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ownHost(r.Host) {
			writePage(w, http.StatusMisdirectedRequest, "this host is not known here: ask by address, or set admin to this name and its port")
			return
		}
		h.ServeHTTP(w, r)
	})
}

// private are suffixes of names that are not in public DNS.
var private = []string{".localhost", ".local", ".internal", ".home.arpa", ".svc"}

// ownHost reports whether a Host header is safe from DNS rebinding: an address, a name without a dot or in a private domain (as
// machines, containers and services have), this machine's name, or the host in the key admin.
func (s *status) ownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true // an empty one too: browsers always send it
	}
	own, _ := os.Hostname()
	if named, _, _ := net.SplitHostPort(s.config().Admin); strings.EqualFold(host, own) || strings.EqualFold(host, named) {
		return true
	}
	return slices.ContainsFunc(private, func(end string) bool { return strings.HasSuffix(host, end) })
}

// warnOpen logs a warning if other machines can reach the admin listener.
func (s *status) warnOpen(log *slog.Logger, addr net.Addr) {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok || tcp.IP.IsLoopback() {
		return
	}
	shows := "health, version, engines' addresses, metrics"
	if s.config().Playground {
		shows += ", a page that searches the engines with the credentials that a user types, or with none"
	}
	if s.pprof {
		shows += ", profiles of memory and processor"
	}
	log.Warn("others can reach the admin listener, which asks for no credentials", "addr", addr.String(), "shows", shows)
}

//go:embed admin.html
var indexText string

var indexPage = template.Must(template.New("").Parse(indexText))

// links are the pages other than the playground.
func (s *status) links() []playground.Link {
	list := []playground.Link{
		{Path: "/livez", Says: "the process runs"}, {Path: "/readyz?verbose", Says: "the engines can be reached"},
		{Path: "/metrics", Says: "counters and times for Prometheus"}, {Path: "/version", Says: "what is running"},
	}
	if s.pprof {
		list = append(list, playground.Link{Path: "/debug/pprof/", Says: "profiles"})
	}
	return list
}

func (s *status) servePlayground(w http.ResponseWriter, r *http.Request) {
	if !s.playgroundOn() {
		writePage(w, http.StatusNotFound, "the playground is off: playground: true in the configuration turns it on")
		return
	}
	s.playground.ServeHTTP(w, r)
}

func (s *status) index(w http.ResponseWriter, r *http.Request) {
	if s.playgroundOn() {
		s.playground.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = indexPage.Execute(w, s.links()) // the client has disconnected, here and below
}

func showVersion(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("output") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/json")
		_ = terminal.WriteJSON(w, buildinfo.Of())
		return
	}
	writePage(w, http.StatusOK, buildinfo.Of().String())
}

func writePage(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}

// ready answers whether every engine can be reached and the sidecar is not shutting down. With verbose it lists the nodes.
func (s *status) ready(w http.ResponseWriter, r *http.Request) {
	verbose := r.URL.Query().Has("verbose") && s.ownHost(r.Host)
	code, lines := http.StatusOK, []string{}
	say := func(good bool, text string) {
		if !good {
			code = http.StatusServiceUnavailable
		}
		if verbose {
			text = map[bool]string{true: "[+] ", false: "[-] "}[good] + text
		}
		lines = append(lines, text)
	}
	if s.draining.Load() {
		say(false, "draining")
	}
	for _, found := range s.now.Load().reach(verbose) {
		state := "ok"
		if found.err != nil {
			state = "can't be reached: " + strings.ReplaceAll(found.err.Error(), "\n", "; ")
		}
		if say(found.err == nil, "engine "+found.name+": "+state); verbose {
			lines = append(lines, found.nodes...)
		}
	}
	if verbose {
		if s.meters.stale.Load() {
			lines = append(lines, "[!] config: the last reload failed, the log says why: the previous configuration is in use")
		} else {
			lines = append(lines, "[+] config: the last one read is in use")
		}
		lines = append(lines, map[bool]string{true: "ready", false: "not ready"}[code == http.StatusOK])
	}
	writePage(w, code, strings.Join(lines, "\n"))
}

// probeResult is the result of probing an engine.
type probeResult struct {
	name  string
	err   error    // why no node answers
	nodes []string // a line for each
}

// probeCache caches the last probe of all engines. Concurrent requests wait for one probe.
type probeCache struct {
	mu    sync.Mutex
	at    time.Time
	found []probeResult
}

// reach probes all engines concurrently: all of their nodes, or only until one answers.
func (s *state) reach(all bool) []probeResult {
	p := s.probes[all]
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil && time.Since(p.at) <= probeTTL {
		return p.found
	}
	p.found = make([]probeResult, len(s.config.Engines))
	var wg sync.WaitGroup
	for i, e := range s.config.Engines {
		wg.Go(func() { p.found[i] = s.backends[e.Name].reach(context.Background(), e.Name, all) })
	}
	wg.Wait()
	p.at = time.Now()
	return p.found
}

// reach probes the nodes concurrently, and waits for the first answer or for all of them. An engine can be reached if any node
// sends any answer: without credentials most of them refuse.
func (u *backend) reach(ctx context.Context, name string, all bool) probeResult {
	ctx, cancel := context.WithTimeout(ctx, ProbeTimeout)
	defer cancel()
	type answer struct {
		node int
		line string
		err  error
	}
	answers := make(chan answer, len(u.urls))
	for i, at := range u.urls {
		go func() {
			began := time.Now()
			status, err := u.ask(ctx, at)
			line := fmt.Sprintf("    %s://%s: answers %d in %v", at.Scheme, at.Host, status, time.Since(began).Round(100*time.Microsecond))
			if err != nil {
				line = fmt.Sprintf("    %s://%s: %v", at.Scheme, at.Host, err)
			}
			answers <- answer{i, line, err}
		}()
	}
	found, good := probeResult{name: name, nodes: make([]string, len(u.urls))}, false
	var errs []error
	for range u.urls {
		a := <-answers
		found.nodes[a.node] = a.line
		if good = good || a.err == nil; good && !all {
			break
		}
		errs = append(errs, a.err)
	}
	if !good {
		found.err = errors.Join(errs...)
	}
	return found
}

func (u *backend) ask(ctx context.Context, at *url.URL) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, err
	}
	response, err := u.transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}
