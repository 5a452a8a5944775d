package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/proxy"
)

// header returns the credentials as the engine's kind takes them.
func (e *EngineConfig) header() adapters.Header {
	c, h := e.Credentials, http.Header{}
	switch {
	case c.APIKey.set():
		k := kind.Of(e.Kind)
		h.Set(k.KeyHeader, k.KeyScheme+c.APIKey.reveal())
	case c.Bearer.set():
		h.Set("Authorization", "Bearer "+c.Bearer.reveal())
	case c.Username.set():
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.Username.reveal()+":"+c.Password.reveal())))
	}
	return adapters.Header(h)
}

// nodes returns the engine's URLs, which are validated.
func (e *EngineConfig) nodes() ([]*url.URL, error) {
	var urls []*url.URL
	for _, text := range e.URLs {
		u, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		urls = append(urls, u)
	}
	return urls, nil
}

// front is what stands in front of one engine.
type front struct {
	handler   http.Handler
	rules     adapters.Rules
	urls      []*url.URL
	transport http.RoundTripper
	// certificates are what the engine is shown and trusted by; nil where no file is named.
	certificates *certificates
}

// assemble puts together what stands in front of the engine, which is given if it is an embedded one.
func (s *servers) assemble(c *Config, e *EngineConfig, engine *inside) (*front, error) {
	transport, trust, err := e.transport(s.log)
	if err != nil {
		return nil, err
	}
	urls, err := e.nodes()
	if err != nil {
		return nil, err
	}
	if engine != nil {
		urls = []*url.URL{{Scheme: "http", Host: engine.addr.String()}}
	}
	rules, err := e.rules()
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
func (f *front) proxy(e *EngineConfig, rules adapters.Rules, metrics *proxy.Metrics, traces *proxy.Traces, log *slog.Logger) (http.Handler, error) {
	k := kind.Of(e.Kind)
	dialect := k.Dialect(kind.Sniffing{Rewrite: e.RewriteSniffing, Advertise: e.Advertise})
	return proxy.New(proxy.Engine{
		Dialect: dialect, Open: k.Open(metrics.Transport(f.transport, traces), f.urls, rules), ErrorReply: dialect.ErrorReply, Rules: rules,
		URLs: f.urls, Transport: f.transport, Document: k.DocumentOf, Metrics: metrics, Traces: traces, Limits: e.Limits.proxied(),
		FailClosed: e.OnFailure == "error", Log: log,
	})
}

// opened is an engine as jobs and setup see it, under the operator's credentials.
type opened struct {
	config *EngineConfig
	kind   kind.Kind
	rules  adapters.Rules
	store  adapters.Store
}

// openFor opens for a command the engine with the name, or all that the configuration has where it is empty.
func openFor(cmd *cobra.Command, name string) ([]*opened, error) {
	c, err := configOf(cmd)
	if err != nil {
		return nil, err
	}
	return c.openAll(name)
}

// openAll opens the engine with the name, or all of them where it is empty.
func (c *Config) openAll(name string) ([]*opened, error) {
	var engines []*opened
	var names []string
	for i := range c.Engines {
		e := &c.Engines[i]
		names = append(names, e.Name)
		if name != "" && e.Name != name || name == "" && e.Kind == kind.Embedded {
			continue
		}
		o, err := c.open(e)
		if err != nil {
			return nil, fmt.Errorf("engine %s: %w", e.Name, err)
		}
		engines = append(engines, o)
	}
	switch {
	case len(engines) > 0:
		return engines, nil
	case name != "":
		return nil, fmt.Errorf("--engine: there is no engine %s: the names are %s", name, strings.Join(names, ", "))
	}
	return nil, errEmbedded
}

// errEmbedded is what a job gets that has nothing but an embedded engine to work on.
var errEmbedded = errors.New("an embedded engine lives inside serve alone: there is nothing to work on from outside")

func (c *Config) open(e *EngineConfig) (*opened, error) {
	if e.Kind == kind.Embedded {
		return nil, errEmbedded
	}
	transport, _, err := e.transport(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	urls, err := e.nodes()
	if err != nil {
		return nil, err
	}
	rules, err := e.rules()
	if err != nil {
		return nil, err
	}
	k := kind.Of(e.Kind)
	return &opened{config: e, kind: k, rules: rules, store: k.Open(e.discreet(transport), urls, rules)(e.header(), "")}, nil
}
