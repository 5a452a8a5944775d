package kind

import (
	"context"
	"net/http"
	"net/url"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/typesense"
)

type typesenseAdapter struct{}

func (typesenseAdapter) Dialect(Sniffing) Dialect { return typesense.Dialect{} }

func (typesenseAdapter) Open(t http.RoundTripper, urls []*url.URL, rules adapters.Rules) func(adapters.Header, string) adapters.Store {
	return typesense.Open(t, urls, rules)
}

func (typesenseAdapter) ProductOf(ctx context.Context, s adapters.Store) (adapters.Product, error) {
	return typesense.Product(ctx, s)
}

func (typesenseAdapter) Condition(ctx context.Context, s adapters.Store, index adapters.Index, r *adapters.Rule) (adapters.Condition, error) {
	return typesense.ConditionOf(ctx, s, index, r)
}

func (typesenseAdapter) Anything(index string, fields []string) *adapters.Request {
	return typesense.Anything(index, fields)
}

func (typesenseAdapter) Split(ctx context.Context, s adapters.Store, index string, n int) ([]string, error) {
	return typesense.Split(ctx, s, index, n)
}

func (typesenseAdapter) Identity(ctx context.Context, s adapters.Store, index string) (string, error) {
	return typesense.IdentityOf(ctx, s, index)
}

func (typesenseAdapter) Journal(s adapters.Store) adapters.Journal { return typesense.JournalOf(s) }

func (typesenseAdapter) JournalIndex() string { return typesense.JournalIndex }

func (typesenseAdapter) Remove(ctx context.Context, s adapters.Store, index string) (string, error) {
	return typesense.Remove(ctx, s, index)
}

func (typesenseAdapter) Recognize(ctx context.Context, s adapters.Store) (adapters.Recognition, bool, error) {
	return typesense.Recognize(ctx, s)
}

func (typesenseAdapter) Holdings(ctx context.Context, s adapters.Store) ([]adapters.Holding, error) {
	return typesense.Holdings(ctx, s)
}

func (typesenseAdapter) Count(ctx context.Context, s adapters.Store, names []string) (int, error) {
	return typesense.DocumentsIn(ctx, s, names)
}

func (typesenseAdapter) Fields(ctx context.Context, s adapters.Store, names []string) ([]adapters.Field, error) {
	return typesense.Fields(ctx, s, names)
}

func (typesenseAdapter) Documents(ctx context.Context, s adapters.Store, name string, fields []string, n int) ([][]byte, error) {
	return typesense.Documents(ctx, s, name, fields, n)
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

func (typesenseAdapter) Listed(ctx context.Context, s adapters.Store) ([]adapters.Listed, error) {
	return typesense.Listed(ctx, s)
}

func (typesenseAdapter) DocumentOf(index, id string) *adapters.Request {
	return typesense.DocumentOf(index, id)
}
