package typesense

import (
	"net/url"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// scan reads all documents of the collection, by id.
func (b *bench) scan() map[string]adapters.Stored {
	b.t.Helper()
	all := map[string]adapters.Stored{}
	err := b.store().Scan(b.t.Context(), b.collection, b.rule, adapters.Selection{}, func(p adapters.Page) error {
		if p.Total == 0 || len(p.Documents) > batch {
			b.t.Errorf("a page of %d documents of %d", len(p.Documents), p.Total)
		}
		for _, d := range p.Documents {
			all[d.ID] = d
		}
		return nil
	})
	expect.OK(b.t, err)
	return all
}

// patches returns a patch for each document that lacks what is ours.
func (b *bench) patches() []adapters.Stored {
	var list []adapters.Stored
	for _, d := range b.scan() {
		if want, right := b.rule.OursFor(d.Source, d.ID); !right {
			list = append(list, d.With(want))
		}
	}
	return list
}

func (b *bench) urls() []*url.URL {
	u := expect.Value(url.Parse(b.engine.URL))(b.t)
	// Nothing listens on the first; the next is tried.
	return []*url.URL{{Scheme: "http", Host: "127.0.0.1:1"}, u}
}
