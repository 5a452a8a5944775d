package kind

import (
	"net/http"
	"net/url"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
)

// elasticAdapter speaks to Elasticsearch, to OpenSearch and to the embedded engine, which is named in its replies.
type elasticAdapter struct{ openSearch, named bool }

func (a elasticAdapter) Dialect(s Sniffing) adapters.Dialect {
	return elastic.Dialect{OpenSearch: a.openSearch, RewriteSniffing: s.Rewrite, Advertise: s.Advertise, Named: a.named}
}

func (elasticAdapter) Open(t http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(adapters.Header, string) adapters.EngineStore {
	return elastic.Open(t, urls, rules)
}

func (elasticAdapter) Anything(index string, fields []string) *adapters.Request {
	return elastic.Anything(index, fields)
}

func (elasticAdapter) Words(index string, fields []string, words string) *adapters.Request {
	return elastic.Words(index, fields, words)
}

func (elasticAdapter) LookFor(l adapters.Look) (*adapters.Request, error) { return elastic.LookFor(l) }

func (a elasticAdapter) LookedAt(l adapters.Look, r *adapters.Reply) (adapters.Looked, error) {
	return elastic.Dialect{OpenSearch: a.openSearch}.LookedAt(l, r)
}

func (elasticAdapter) DocumentOf(index, id string) *adapters.Request {
	return elastic.DocumentOf(index, id)
}
