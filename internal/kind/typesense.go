package kind

import (
	"net/http"
	"net/url"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/typesense"
)

type typesenseAdapter struct{}

func (typesenseAdapter) Dialect(Sniffing) adapters.Dialect { return typesense.Dialect{} }

func (typesenseAdapter) Open(t http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(adapters.Header, string) adapters.EngineStore {
	return typesense.Open(t, urls, rules)
}

func (typesenseAdapter) Anything(index string, fields []string) *adapters.Request {
	return typesense.Anything(index, fields)
}

func (typesenseAdapter) Words(index string, fields []string, words string) *adapters.Request {
	return typesense.Words(index, fields, words)
}

func (typesenseAdapter) LookFor(l adapters.Look) (*adapters.Request, error) {
	return typesense.LookFor(l)
}

func (typesenseAdapter) LookedAt(l adapters.Look, r *adapters.Reply) (adapters.Looked, error) {
	return typesense.LookedAt(l, r)
}

func (typesenseAdapter) DocumentOf(index, id string) *adapters.Request {
	return typesense.DocumentOf(index, id)
}
