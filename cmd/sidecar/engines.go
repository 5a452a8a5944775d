package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/proxy"
)

// The kinds of engine.
const (
	kindElasticsearch = "elasticsearch"
	kindOpenSearch    = "opensearch"
	kindTypesense     = "typesense"
	kindEmbedded      = "embedded"
)

// kind is all that belongs to one kind of engine.
type kind struct {
	name string
	// product is what it calls itself; empty for one that nobody asks.
	product string
	// versions are the minor versions that the tests run against, the newest first.
	versions []string
	// keyHeader is the header in which it takes an API key, and keyScheme what stands before the key there.
	keyHeader, keyScheme string
	// keysOnly says that it knows no users and no bearer tokens.
	keysOnly bool
	// maxBody is the largest body that it takes where that is another than the configuration's default.
	maxBody Size
	// sniffed says that there are clients of it that ask for the nodes' addresses.
	sniffed bool
	speak   func(e *EngineConfig) (adapters.Dialect, errorReply)
	open    func(transport http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(header adapters.Header, query string) adapters.Store
	inspector
	looker func(e *EngineConfig) looker
}

// errorReply returns an error of the sidecar's own to a request, in the engine's shape.
type errorReply func(r *adapters.Request, status int, reason string) *adapters.Reply

// kinds are what the configuration's kind can name. A new engine is an entry here.
var kinds = []kind{
	{
		name: kindElasticsearch, product: "Elasticsearch", versions: []string{"9.4", "8.19"}, keyHeader: "Authorization", keyScheme: "ApiKey ",
		sniffed: true, speak: elastically, open: elastic.Open, inspector: ofElastic, looker: elasticLooker,
	},
	{
		name: kindOpenSearch, product: "OpenSearch", versions: []string{"3.6", "2.19"}, keyHeader: "Authorization", keyScheme: "ApiKey ",
		sniffed: true, speak: elastically, open: elastic.Open, inspector: ofElastic, looker: elasticLooker,
	},
	{
		name: kindTypesense, product: "Typesense", versions: []string{"0.24"}, keyHeader: "X-Typesense-Api-Key", keysOnly: true,
		maxBody: 10 << 30, // built into it
		speak: func(*EngineConfig) (adapters.Dialect, errorReply) {
			return typesense.Dialect{}, typesense.Dialect{}.ErrorReply
		},
		open: typesense.Open, inspector: ofTypesense, looker: typesenseLooker,
	},
	{name: kindEmbedded, speak: elastically, open: elastic.Open, inspector: ofElastic, looker: elasticLooker},
}

var ofElastic = inspector{
	product: elastic.Product, condition: elastic.ConditionOf, anything: elastic.Anything,
	document: elastic.DocumentOf, split: elastic.Split, identity: elastic.IdentityOf, journal: elastic.JournalOf, remove: elastic.Remove,
}

var ofTypesense = inspector{
	product: typesense.Product, condition: typesense.ConditionOf, anything: typesense.Anything,
	document: typesense.DocumentOf, split: typesense.Split, identity: typesense.IdentityOf, journal: typesense.JournalOf, remove: typesense.Remove,
}

func elastically(e *EngineConfig) (adapters.Dialect, errorReply) {
	d := elastic.Dialect{
		OpenSearch: e.Kind == kindOpenSearch, RewriteSniffing: e.RewriteSniffing, Advertise: e.Advertise, Named: e.Kind == kindEmbedded,
	}
	return d, d.ErrorReply
}

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// kindOf returns the kind with the name, or one of which nothing is known.
func kindOf(name string) kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name }); i >= 0 {
		return kinds[i]
	}
	return kind{}
}

// tested reports whether the tests run against a version.
func (k kind) tested(version string) bool {
	return slices.ContainsFunc(k.versions, func(minor string) bool { return strings.HasPrefix(version, minor+".") })
}

// testedVersions names them in a sentence.
func (k kind) testedVersions() string { return strings.Join(k.versions, " and ") }

// kindOfProduct returns the kind that calls itself so, or one of which nothing is known.
func kindOfProduct(product string) kind {
	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.product == product }); i >= 0 && product != "" {
		return kinds[i]
	}
	return kind{}
}

// header returns the credentials as the engine's kind takes them.
func (e *EngineConfig) header() adapters.Header {
	c, h := e.Credentials, http.Header{}
	switch {
	case c.APIKey.set():
		k := kindOf(e.Kind)
		h.Set(k.keyHeader, k.keyScheme+c.APIKey.reveal())
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
	k := kindOf(e.Kind)
	dialect, inShape := k.speak(e)
	return proxy.New(proxy.Engine{
		Dialect: dialect, Open: k.open(metrics.Transport(f.transport, traces), f.urls, rules), ErrorReply: inShape, Rules: rules,
		URLs: f.urls, Transport: f.transport, Document: k.document, Metrics: metrics, Traces: traces, Limits: e.Limits.proxied(),
		FailClosed: e.OnFailure == "error", Log: log,
	})
}

// opened is an engine as jobs and setup see it, under the operator's credentials.
type opened struct {
	config *EngineConfig
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
	return &opened{config: e, rules: rules, store: kindOf(e.Kind).open(e.discreet(transport), urls, rules)(e.header(), "")}, nil
}
