// Package kind lists the kinds of engine that a configuration can name. It is the only package that imports the adapters. To add an engine, add
// an entry to [All]; its adapter is a type in the engine's own folder.
package kind

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/adapters/typesense"
	"github.com/neardup/sidecar/internal/rule"
)

// Embedded is the kind of the demo's engine, which runs inside the sidecar.
const Embedded = "embedded"

// All are the kinds of engine.
var All = []Kind{
	{
		Name: "elasticsearch", Product: "Elasticsearch", Versions: []string{"9.4", "8.19"}, Port: 9200,
		KeyHeader: "Authorization", KeyScheme: "ApiKey ", Adapter: elastic.Dialect{},
	},
	{
		Name: "opensearch", Product: "OpenSearch", Versions: []string{"3.6", "2.19"}, Port: 9200,
		KeyHeader: "Authorization", KeyScheme: "ApiKey ", Adapter: elastic.Dialect{OpenSearch: true},
	},
	{
		Name: "typesense", Product: "Typesense", Versions: []string{"0.24"}, Port: 8108,
		KeyHeader: "X-Typesense-Api-Key", KeysOnly: true, MaxBody: 10 << 30, Adapter: typesense.Dialect{},
	},
	{Name: Embedded, Adapter: elastic.Dialect{Named: true}},
}

// Kind is one kind of engine. The zero value, without an adapter, is an unknown kind.
type Kind struct {
	Name string
	// Product is the name that the engine reports; empty for the embedded one.
	Product string
	// Versions are the minor versions that the tests run against, the newest first.
	Versions []string
	// Port is the engine's usual port. By default init has the sidecar listen on the next one.
	Port int
	// KeyHeader is the header that takes an API key, and KeyScheme what precedes the key in it.
	KeyHeader, KeyScheme string
	// KeysOnly says that the engine has no users and no bearer tokens.
	KeysOnly bool
	// MaxBody is the largest body, in bytes, that the engine accepts; 0 for the configuration's default.
	MaxBody int64
	Adapter
}

// Adapter is what an engine's folder provides.
type Adapter interface {
	adapters.Dialect
	// Open returns a function that makes a store for one client's credentials.
	Open(transport http.RoundTripper, urls []*url.URL, rules rule.Rules) func(header adapters.Header, query string) adapters.EngineStore
	// DocumentOf returns the request for a stored document, without credentials.
	DocumentOf(index, id string) *adapters.Request
	// Words returns a search of an index for words in some of its text fields, short enough to be typed and without credentials. The word * finds
	// every document.
	Words(index string, fields []string, words string) *adapters.Request
	// ReadQuery returns the query that a line of text holds: words, or a client's own search.
	ReadQuery(line string) (adapters.Query, error)
	// LookFor returns the request for a list that the playground shows, LookedAt reads its reply.
	LookFor(adapters.Look) (*adapters.Request, error)
	LookedAt(adapters.Look, *adapters.Reply) (adapters.Looked, error)
}

// NodesRewriter is implemented by an adapter if some clients of the engine ask for its nodes' addresses.
type NodesRewriter interface {
	// RewritingNodes returns a dialect that answers with the sidecar's address instead: advertise, or the address of the request if that is empty.
	RewritingNodes(advertise string) adapters.Dialect
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

// OfProduct returns the kind with the product name.
func OfProduct(product string) Kind {
	if i := slices.IndexFunc(Engines(), func(k Kind) bool { return k.Product == product }); i >= 0 {
		return Engines()[i]
	}
	return Kind{}
}

// Engines returns all kinds but the embedded one.
func Engines() []Kind {
	return slices.DeleteFunc(slices.Clone(All), func(k Kind) bool { return k.Name == Embedded })
}

// Tested reports whether the tests run against a version.
func (k Kind) Tested(version string) bool {
	return slices.ContainsFunc(k.Versions, func(minor string) bool { return strings.HasPrefix(version, minor+".") })
}

// TestedVersions returns the tested versions for a sentence.
func (k Kind) TestedVersions() string { return strings.Join(k.Versions, " and ") }

// Sniffed reports whether clients of a running engine of the kind ask for its nodes' addresses.
func (k Kind) Sniffed() bool {
	_, asked := k.Adapter.(NodesRewriter)
	return asked && k.Name != Embedded
}
