// Package kind knows the kinds of engine that a configuration can name: what is peculiar to each, and the adapter that speaks to it. It is the only
// package that imports the adapters. A new engine is an entry in [All] and an implementation of [Adapter].
package kind

import (
	"context"
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

// Adapter is what a kind of engine provides. The stores that its methods take are those that it opened.
type Adapter interface {
	Speaker
	Inspector
	Jobber
	Surveyor
	Looker
}

// Sniffing is what clients that ask for the nodes' addresses are told.
type Sniffing struct {
	// Rewrite puts an address of the sidecar in the place of the nodes': Advertise, or where it is empty the one that was asked.
	Rewrite   bool
	Advertise string
}

// Dialect is a dialect with the shape of the engine's errors.
type Dialect interface {
	adapters.Dialect
	// ErrorReply returns an error of the sidecar's own to a request, in the engine's shape.
	ErrorReply(r *adapters.Request, status int, reason string) *adapters.Reply
}

// Speaker carries live traffic.
type Speaker interface {
	Dialect(Sniffing) Dialect
	// Open returns what makes a store for one client's credentials.
	Open(transport http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(header adapters.Header, query string) adapters.Store
	// DocumentOf returns the request for a stored document, without credentials.
	DocumentOf(index, id string) *adapters.Request
}

// Inspector answers what doctor asks.
type Inspector interface {
	ProductOf(context.Context, adapters.Store) (adapters.Product, error)
	Condition(context.Context, adapters.Store, adapters.Index, *adapters.Rule) (adapters.Condition, error)
	// Anything returns a search of an index, in these of its text fields.
	Anything(index string, fields []string) *adapters.Request
}

// Jobber is what jobs need beyond the store.
type Jobber interface {
	// Split returns the names of n parts of a concrete index, for [adapters.Selection]: together all its documents, each once. Parts
	// of one name hold the same at any time and on any machine; the last takes in documents that come later. There may be fewer than n.
	Split(ctx context.Context, store adapters.Store, index string, n int) ([]string, error)
	// Identity tells a concrete index from another that was made under its name.
	Identity(ctx context.Context, store adapters.Store, index string) (string, error)
	// Journal returns the journal of jobs that the store's engine keeps, in the index that JournalIndex names.
	Journal(adapters.Store) adapters.Journal
	JournalIndex() string
	// Remove takes the declarations of our fields out of a concrete index, as far as the engine can. note says, for an operator, what
	// stays and how to be rid of it; it is empty where nothing does.
	Remove(ctx context.Context, store adapters.Store, index string) (note string, err error)
}

// Surveyor answers what init asks.
type Surveyor interface {
	// Recognize asks what the store's address is. ours is false if it is no engine of this adapter.
	Recognize(context.Context, adapters.Store) (r adapters.Recognition, ours bool, err error)
	Holdings(context.Context, adapters.Store) ([]adapters.Holding, error)
	Count(ctx context.Context, store adapters.Store, names []string) (int, error)
	Fields(ctx context.Context, store adapters.Store, names []string) ([]adapters.Field, error)
	Documents(ctx context.Context, store adapters.Store, name string, fields []string, n int) ([][]byte, error)
	// Words returns a search for words in these fields of an index.
	Words(index string, fields []string, words string) *adapters.Request
}

// Looker reads lists for the playground.
type Looker interface {
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
	Listed(context.Context, adapters.Store) ([]adapters.Listed, error)
}

// Provisioner is implemented by adapters of engines with index templates, ingest pipelines and mappings that fill fields.
type Provisioner interface {
	// Templates declares our fields in the templates that the rules match, unless nothing is to be written.
	Templates(ctx context.Context, store adapters.Store, rules adapters.Rules, dryRun bool) ([]Template, error)
	// Pipelines returns, by index, the pipelines that change documents after they were sketched.
	Pipelines(ctx context.Context, store adapters.Store, rules adapters.Rules) (map[string][]string, error)
	// Filled says, for an operator, how the mapping of an index fills fields of ours: a line each.
	Filled(ctx context.Context, store adapters.Store, index string) ([]string, error)
}
