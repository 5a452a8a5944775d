package kind

import (
	"context"
	"net/http"
	"net/url"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
)

// elasticAdapter speaks to Elasticsearch, to OpenSearch and to the embedded engine, which is named in its replies.
type elasticAdapter struct{ openSearch, named bool }

// Template is what became of an index template.
type Template = elastic.Template

func (a elasticAdapter) Dialect(s Sniffing) Dialect {
	return elastic.Dialect{OpenSearch: a.openSearch, RewriteSniffing: s.Rewrite, Advertise: s.Advertise, Named: a.named}
}

func (elasticAdapter) Templates(ctx context.Context, s adapters.Store, rules adapters.Rules, dryRun bool) ([]Template, error) {
	return s.(*elastic.Store).Templates(ctx, rules, dryRun)
}

func (elasticAdapter) Pipelines(ctx context.Context, s adapters.Store, rules adapters.Rules) (map[string][]string, error) {
	return s.(*elastic.Store).Pipelines(ctx, rules)
}

func (elasticAdapter) Filled(ctx context.Context, s adapters.Store, index string) ([]string, error) {
	return s.(*elastic.Store).Filled(ctx, index)
}

func (elasticAdapter) Open(t http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(adapters.Header, string) adapters.Store {
	return elastic.Open(t, urls, rules)
}

func (elasticAdapter) ProductOf(ctx context.Context, s adapters.Store) (adapters.Product, error) {
	return elastic.Product(ctx, s)
}

func (elasticAdapter) Condition(ctx context.Context, s adapters.Store, index adapters.Index, r *adapters.Rule) (adapters.Condition, error) {
	return elastic.ConditionOf(ctx, s, index, r)
}

func (elasticAdapter) Anything(index string, fields []string) *adapters.Request {
	return elastic.Anything(index, fields)
}

func (elasticAdapter) Split(ctx context.Context, s adapters.Store, index string, n int) ([]string, error) {
	return elastic.Split(ctx, s, index, n)
}

func (elasticAdapter) Identity(ctx context.Context, s adapters.Store, index string) (string, error) {
	return elastic.IdentityOf(ctx, s, index)
}

func (elasticAdapter) Journal(s adapters.Store) adapters.Journal { return elastic.JournalOf(s) }

func (elasticAdapter) JournalIndex() string { return elastic.JournalIndex }

func (elasticAdapter) Remove(ctx context.Context, s adapters.Store, index string) (string, error) {
	return elastic.Remove(ctx, s, index)
}

func (elasticAdapter) Recognize(ctx context.Context, s adapters.Store) (adapters.Recognition, bool, error) {
	return elastic.Recognize(ctx, s)
}

func (elasticAdapter) Holdings(ctx context.Context, s adapters.Store) ([]adapters.Holding, error) {
	return elastic.Holdings(ctx, s)
}

func (elasticAdapter) Count(ctx context.Context, s adapters.Store, names []string) (int, error) {
	return elastic.DocumentsIn(ctx, s, names)
}

func (elasticAdapter) Fields(ctx context.Context, s adapters.Store, names []string) ([]adapters.Field, error) {
	return elastic.Fields(ctx, s, names)
}

func (elasticAdapter) Documents(ctx context.Context, s adapters.Store, name string, fields []string, n int) ([][]byte, error) {
	return elastic.Documents(ctx, s, name, fields, n)
}

func (elasticAdapter) Words(index string, fields []string, words string) *adapters.Request {
	return elastic.Words(index, fields, words)
}

func (elasticAdapter) LookFor(l adapters.Look) (*adapters.Request, error) { return elastic.LookFor(l) }

func (a elasticAdapter) LookedAt(l adapters.Look, r *adapters.Reply) (adapters.Looked, error) {
	return elastic.Dialect{OpenSearch: a.openSearch}.LookedAt(l, r)
}

func (elasticAdapter) Listed(ctx context.Context, s adapters.Store) ([]adapters.Listed, error) {
	return elastic.Listed(ctx, s)
}

func (elasticAdapter) DocumentOf(index, id string) *adapters.Request {
	return elastic.DocumentOf(index, id)
}
