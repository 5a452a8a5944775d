package main

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/demo/embedded"
	"github.com/neardup/sidecar/proxy"
)

// The kinds of engine.
const (
	kindElasticsearch = "elasticsearch"
	kindOpenSearch    = "opensearch"
	kindTypesense     = "typesense"
	kindEmbedded      = "embedded"
)

func kindNames() []string {
	return []string{kindElasticsearch, kindOpenSearch, kindTypesense, kindEmbedded}
}

// adapter is what one kind of engine is spoken to with.
type adapter struct {
	dialect    adapters.Dialect
	open       func(header adapters.Header, query string) adapters.Store
	errorReply func(r *adapters.Request, status int, reason string) *adapters.Reply
}

// adapter returns the adapter of the engine's kind for the nodes.
func (e *EngineConfig) adapter(transport http.RoundTripper, urls []*url.URL) adapter {
	if e.Kind == kindTypesense {
		return adapter{typesense.Dialect{}, typesense.Open(transport, urls), typesense.Dialect{}.ErrorReply}
	}
	dialect := elastic.Dialect{OpenSearch: e.Kind == kindOpenSearch, RewriteSniffing: e.RewriteSniffing, Advertise: e.Advertise}
	return adapter{dialect, elastic.Open(transport, urls), dialect.ErrorReply}
}

// header returns the credentials as the engine's kind takes them.
func (e *EngineConfig) header() adapters.Header {
	c, h := e.Credentials, http.Header{}
	switch {
	case c.APIKey != "" && e.Kind == kindTypesense:
		h.Set("X-Typesense-Api-Key", c.APIKey)
	case c.APIKey != "":
		h.Set("Authorization", "ApiKey "+c.APIKey)
	case c.Bearer != "":
		h.Set("Authorization", "Bearer "+c.Bearer)
	case c.Username != "":
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.Username+":"+c.Password)))
	}
	return adapters.Header(h)
}

// transport returns what carries requests to the engine.
func (e *EngineConfig) transport() (*http.Transport, error) {
	roots, err := e.TLS.roots()
	if err != nil {
		return nil, fmt.Errorf("tls.ca_file: %w", err)
	}
	t := proxy.NewTransport()
	t.TLSClientConfig = &tls.Config{RootCAs: roots, InsecureSkipVerify: e.TLS.InsecureSkipVerify}
	return t, nil
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
	urls      []*url.URL
	transport http.RoundTripper
}

// assemble puts together what stands in front of the engine. An embedded engine is started.
func (s *servers) assemble(c *Config, e *EngineConfig) (*front, error) {
	transport, err := e.transport()
	if err != nil {
		return nil, err
	}
	urls, err := e.nodes()
	if err != nil {
		return nil, err
	}
	if e.Kind == kindEmbedded {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("start the embedded engine: %w", err)
		}
		engine := embedded.New()
		s.closers = append(s.closers, engine)
		s.last = append(s.last, s.serve(l, engine))
		urls = []*url.URL{{Scheme: "http", Host: l.Addr().String()}}
	}
	rules, err := e.rules(c.Sketch.Scheme())
	if err != nil {
		return nil, err
	}
	a := e.adapter(transport, urls)
	handler, err := proxy.New(proxy.Engine{
		Dialect: a.dialect, Open: a.open, ErrorReply: a.errorReply, Rules: rules, URLs: urls, Transport: transport,
		Limits: proxy.Limits{
			MaxReply: int64(e.Limits.MaxReply), MaxSearchBody: int64(e.Limits.MaxSearchBody), EngineMaxBody: int64(e.Limits.EngineMaxBody),
			MaxWindow: e.Limits.MaxWindow, FallbackShare: e.Limits.FallbackShare,
		},
		FailClosed: e.OnFailure == "error", Log: s.log.With("engine", e.Name),
	})
	if err != nil {
		return nil, err
	}
	return &front{handler: handler, urls: urls, transport: transport}, nil
}

// opened is an engine as jobs and setup see it, under the operator's credentials.
type opened struct {
	config *EngineConfig
	rules  adapters.Rules
	store  adapters.Store
}

// openAll opens the engine with the name, or all of them where it is empty.
func (c *Config) openAll(name string) ([]*opened, error) {
	var engines []*opened
	var names []string
	for i := range c.Engines {
		e := &c.Engines[i]
		names = append(names, e.Name)
		if name != "" && e.Name != name || name == "" && e.Kind == kindEmbedded {
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
	if e.Kind == kindEmbedded {
		return nil, errEmbedded
	}
	transport, err := e.transport()
	if err != nil {
		return nil, err
	}
	urls, err := e.nodes()
	if err != nil {
		return nil, err
	}
	rules, err := e.rules(c.Sketch.Scheme())
	if err != nil {
		return nil, err
	}
	return &opened{config: e, rules: rules, store: e.adapter(transport, urls).open(e.header(), "")}, nil
}
