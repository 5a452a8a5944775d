package server

import (
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/certs"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/proxy"
)

// backend is the proxy of one engine, and what it is made of. A reload replaces it as a whole if the engine's section changed, and keeps it
// otherwise, with its caches.
type backend struct {
	made      config.Engine // as essence gives it
	handler   http.Handler
	rules     rule.Rules
	urls      []*url.URL
	transport http.RoundTripper
	// certificates are what the engine is shown and trusted by; nil where no file is named.
	certificates *certs.Certificates

	busy atomic.Int64 // requests under way
	gone atomic.Bool  // no new ones come: the last of them closes the connections
}

// newBackend makes the proxy of an engine. engine is not nil for an embedded one.
func (s *process) newBackend(e *config.Engine, engine *http.Server) (*backend, error) {
	u := &backend{made: essence(e)}
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
	u.handler, err = u.proxy(e, u.rules, s.meters.engine(e.Name), s.tracing.of(e), s.log.With("engine", e.Name))
	return u, err
}

// proxy returns a handler of requests to the engine by some rules.
func (u *backend) proxy(e *config.Engine, rules rule.Rules, metrics *proxy.Metrics, traces *proxy.Traces, log *slog.Logger) (http.Handler, error) {
	k := kind.Of(e.Kind)
	var dialect adapters.Dialect = k
	if rewriter, can := k.Adapter.(kind.NodesRewriter); can && e.RewriteSniffing {
		dialect = rewriter.RewritingNodes(e.Advertise)
	}
	open := k.Open(metrics.Transport(u.transport, traces), u.urls, rules)
	return proxy.New(proxy.Engine{
		Dialect: dialect, Rules: rules,
		Open: func(h adapters.Header, query string) adapters.Store { return open(h, query) },
		URLs: u.urls, Transport: u.transport, Document: k.DocumentOf, Metrics: metrics, Traces: traces, Limits: e.Limits.Proxy(),
		FailClosed: e.OnFailure == "error", Log: log,
	})
}

// ServeHTTP implements http.Handler.
func (u *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.busy.Add(1)
	defer func() {
		if u.busy.Add(-1) == 0 && u.gone.Load() {
			u.release()
		}
	}()
	u.handler.ServeHTTP(w, r)
}

// release closes the connections to the engine that no request is using.
func (u *backend) release() {
	if pool, ok := u.transport.(interface{ CloseIdleConnections() }); ok {
		pool.CloseIdleConnections()
	}
}

// essence returns the part of an engine's section that a backend is made of: without the listener and the credentials of jobs.
func essence(e *config.Engine) config.Engine {
	made := *e
	made.Listen, made.ListenTLS, made.Credentials = "", config.ListenTLS{}, config.Credentials{}
	made.Limits.HeaderTimeout, made.Limits.IdleTimeout = 0, 0
	return made
}
