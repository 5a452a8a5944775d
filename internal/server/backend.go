package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/proxy"
)

// backend is the proxy of one engine, and its parts. A reload replaces it if the engine's section changed. Otherwise it keeps it with its
// caches.
type backend struct {
	section   config.Engine // its [servedSection]
	handler   http.Handler
	rules     rule.Rules
	urls      []*url.URL
	transport http.RoundTripper
	decided   func() *decided.Set // nil where searches obey no decided pairs
	begun     sync.WaitGroup      // the first reading of the decided pairs
	// certificates are those of the section tls; nil if it names no file.
	certificates *certs.Certificates

	stop    context.CancelFunc // ends what it does beside requests
	busy    atomic.Int64       // requests in progress
	retired atomic.Bool        // no new ones come: the last of them closes the connections
}

// newBackend makes the proxy of an engine. engine is not nil for an embedded one. old is the backend that this one replaces, or nil.
func (s *process) newBackend(e *config.Engine, engine *http.Server, old *backend) (*backend, error) {
	u := &backend{section: servedSection(e), stop: func() {}}
	var err error
	if u.transport, u.certificates, err = upstream.Transport(e, s.log); err != nil {
		return nil, err
	}
	if u.urls, err = e.Nodes(); err != nil {
		return nil, err
	}
	if engine != nil {
		u.urls = []*url.URL{{Scheme: "http", Host: engine.Addr}}
	}
	if u.rules, err = e.Rules(); err != nil {
		return nil, err
	}
	if e.Decided.Refresh > 0 {
		s.readDecided(u, e, old)
	}
	if u.handler, err = u.proxy(e, u.rules, s.meters.engine(e.Name), s.tracing.of(e), s.log.With("engine", e.Name)); err != nil {
		u.stop()
	}
	return u, err
}

// Handler returns what serve answers an engine's clients with, without listener, metrics and traces. It obeys the pairs that are decided now.
func Handler(ctx context.Context, e *upstream.Engine, log *slog.Logger) (http.Handler, error) {
	urls, err := e.Config.Nodes()
	if err != nil {
		return nil, err
	}
	u := &backend{rules: e.Rules, urls: urls, transport: e.Transport}
	if e.Config.Decided.Refresh > 0 {
		live := decided.NewLive(e.Store.Journal(), nil)
		if err := live.Read(ctx); err != nil {
			return nil, fmt.Errorf("the decided pairs can't be read: %w", e.Explain(err))
		}
		u.decided = live.Set
	}
	return u.proxy(e.Config, u.rules, proxy.NewMetrics(nil), nil, log)
}

// proxy returns a handler of requests to the engine with these rules.
func (u *backend) proxy(e *config.Engine, rules rule.Rules, metrics *proxy.Metrics, traces *proxy.Traces, log *slog.Logger) (http.Handler, error) {
	k := kind.Of(e.Kind)
	var dialect adapters.Dialect = k
	if rewriter, can := k.Adapter.(kind.NodesRewriter); can && e.RewriteSniffing {
		dialect = rewriter.RewritingNodes(e.Advertise)
	}
	open := k.Open(metrics.Transport(u.transport, traces), u.urls, rules)
	return proxy.New(proxy.Engine{
		Dialect: dialect, Rules: rules, Presets: e.PresetRules(),
		Open: func(h adapters.Header, query string) adapters.Store { return open(h, query) },
		URLs: u.urls, Transport: u.transport, Decided: u.decided, Document: k.DocumentOf, Metrics: metrics, Traces: traces, Limits: e.Limits.Proxy(),
		FailClosed: e.OnFailure == "error", Log: log,
	})
}

// ServeHTTP implements http.Handler.
func (u *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.busy.Add(1)
	defer func() {
		if u.busy.Add(-1) == 0 && u.retired.Load() {
			u.release()
		}
	}()
	u.handler.ServeHTTP(w, r)
}

// release closes the idle connections to the engine.
func (u *backend) release() {
	u.stop()
	if pool, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
		pool.CloseIdleConnections()
	}
}

// servedSection returns an engine's section without what a backend does not use: the listener, cases, and the credentials. It keeps the credentials if
// decided pairs are read with them.
func servedSection(e *config.Engine) config.Engine {
	section := *e
	section.Listen, section.ListenTLS = "", config.ListenTLS{}
	if section.Decided.Refresh == 0 {
		section.Credentials = config.Credentials{}
	}
	section.Limits.HeaderTimeout, section.Limits.IdleTimeout = 0, 0
	section.Indices = slices.Clone(e.Indices)
	for i := range section.Indices {
		section.Indices[i].Cases = nil
	}
	return section
}
