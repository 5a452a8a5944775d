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
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/proxy"
)

// front is the proxy of one engine, and what it is made of.
type front struct {
	handler   http.Handler
	rules     adapters.Rules
	urls      []*url.URL
	transport http.RoundTripper
	// certificates are what the engine is shown and trusted by; nil where no file is named.
	certificates *certs.Certificates
}

// assemble makes the proxy of an engine. engine is not nil for an embedded one.
func (s *process) assemble(c *config.Config, e *config.Engine, engine *embeddedEngine) (*front, error) {
	transport, trust, err := upstream.Transport(e, s.log)
	if err != nil {
		return nil, err
	}
	urls, err := e.Nodes()
	if err != nil {
		return nil, err
	}
	if engine != nil {
		urls = []*url.URL{{Scheme: "http", Host: engine.addr.String()}}
	}
	rules, err := e.Rules()
	if err != nil {
		return nil, err
	}
	f := &front{rules: rules, urls: urls, transport: transport, certificates: trust}
	f.handler, err = f.proxy(e, rules, s.meters.engine(e.Name), s.tracing.of(e), s.log.With("engine", e.Name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// proxy returns a handler of requests to the engine by some rules.
func (f *front) proxy(e *config.Engine, rules adapters.Rules, metrics *proxy.Metrics, traces *proxy.Traces, log *slog.Logger) (http.Handler, error) {
	k := kind.Of(e.Kind)
	open := k.Open(metrics.Transport(f.transport, traces), f.urls, rules)
	return proxy.New(proxy.Engine{
		Dialect: k.Dialect(kind.Sniffing{Rewrite: e.RewriteSniffing, Advertise: e.Advertise}), Rules: rules,
		Open: func(h adapters.Header, query string) adapters.Store { return open(h, query) },
		URLs: f.urls, Transport: f.transport, Document: k.DocumentOf, Metrics: metrics, Traces: traces, Limits: e.Limits.Proxy(),
		FailClosed: e.OnFailure == "error", Log: log,
	})
}

// backend serves one engine. A reload replaces it as a whole if the engine's section changed, and keeps it otherwise, with its caches.
type backend struct {
	made  config.Engine // as essence gives it
	front *front
	busy  atomic.Int64 // requests under way
	gone  atomic.Bool  // no new ones come
}

// ServeHTTP implements http.Handler.
func (u *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.busy.Add(1)
	defer func() {
		if u.busy.Add(-1) == 0 && u.gone.Load() {
			u.release()
		}
	}()
	u.front.handler.ServeHTTP(w, r)
}

// retire closes the backend after the last of its requests.
func (u *backend) retire() {
	u.gone.Store(true)
	u.release()
}

// release closes the connections to the engine that no request is using.
func (u *backend) release() {
	if pool, ok := u.front.transport.(interface{ CloseIdleConnections() }); ok {
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
