// Package kind knows the kinds of engine that a configuration can name: what is peculiar to each, and the adapter that speaks to it. It is the only
// package that imports the adapters. A new engine is an entry in [All] and an implementation of [Adapter].
package kind

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// The names of the kinds, as the configuration has them.
const (
	Elasticsearch = "elasticsearch"
	OpenSearch    = "opensearch"
	Typesense     = "typesense"
	Embedded      = "embedded"
)

// Kind is one kind of engine. Of an unknown one the zero value stands, without an adapter.
type Kind struct {
	Name string
	// Product is what the engine calls itself; empty for the embedded one, which nobody asks.
	Product string
	// Versions are the minor versions that the tests run against, the newest first.
	Versions []string
	// KeyHeader is the header that takes an API key, and KeyScheme what stands before the key there.
	KeyHeader, KeyScheme string
	// KeysOnly says that the engine knows no users and no bearer tokens.
	KeysOnly bool
	// MaxBody is the largest body, in bytes, that the engine takes; 0 for the configuration's default.
	MaxBody int64
	// Sniffed says that some of its clients ask for the nodes' addresses.
	Sniffed bool
	Adapter
}

// All are the kinds of engine.
var All = []Kind{
	{
		Name: Elasticsearch, Product: "Elasticsearch", Versions: []string{"9.4", "8.19"}, KeyHeader: "Authorization", KeyScheme: "ApiKey ",
		Sniffed: true, Adapter: elasticAdapter{},
	},
	{
		Name: OpenSearch, Product: "OpenSearch", Versions: []string{"3.6", "2.19"}, KeyHeader: "Authorization", KeyScheme: "ApiKey ",
		Sniffed: true, Adapter: elasticAdapter{openSearch: true},
	},
	{
		Name: Typesense, Product: "Typesense", Versions: []string{"0.24"}, KeyHeader: "X-Typesense-Api-Key", KeysOnly: true,
		MaxBody: 10 << 30, // built into it
		Adapter: typesenseAdapter{},
	},
	{Name: Embedded, Adapter: elasticAdapter{named: true}},
}

// Names returns the names of all kinds.
func Names() (names []string) {
	for _, k := range All {
		names = append(names, k.Name)
	}
	return names
}

// Of returns the kind with the name.
func Of(name string) Kind {
	if i := slices.IndexFunc(All, func(k Kind) bool { return k.Name == name }); i >= 0 {
		return All[i]
	}
	return Kind{}
}

// OfProduct returns the kind that calls itself so.
func OfProduct(product string) Kind {
	if i := slices.IndexFunc(All, func(k Kind) bool { return k.Product == product }); i >= 0 && product != "" {
		return All[i]
	}
	return Kind{}
}

// Tested reports whether the tests run against a version.
func (k Kind) Tested(version string) bool {
	return slices.ContainsFunc(k.Versions, func(minor string) bool { return strings.HasPrefix(version, minor+".") })
}

// TestedVersions names the tested versions in a sentence.
func (k Kind) TestedVersions() string { return strings.Join(k.Versions, " and ") }

// Adapter is what a kind of engine provides.
type Adapter interface {
	Dialect(Sniffing) adapters.Dialect
	// Open returns what makes a store for one client's credentials.
	Open(transport http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(header adapters.Header, query string) adapters.EngineStore
	// DocumentOf returns the request for a stored document; Anything and Words return a search of an index in these of its text fields, for
	// all documents and for some words. They are without credentials.
	DocumentOf(index, id string) *adapters.Request
	Anything(index string, fields []string) *adapters.Request
	Words(index string, fields []string, words string) *adapters.Request
	// LookFor returns the request for a list that the playground shows, LookedAt what its reply holds.
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
}

// Sniffing is what clients that ask for the nodes' addresses are told.
type Sniffing struct {
	// Rewrite puts an address of the sidecar in the place of the nodes': Advertise, or where it is empty the one that was asked.
	Rewrite   bool
	Advertise string
}
