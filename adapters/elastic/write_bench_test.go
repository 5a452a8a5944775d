package elastic

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// BenchmarkEnrich measures what the documents of a bulk take on their way in beside HTTP: ns/op and B/s are of 400 of 2 kB each.
func BenchmarkEnrich(b *testing.B) {
	rule := adaptertest.Rules(b)[0]
	var body bytes.Buffer
	for _, d := range adaptertest.Articles(b, rule, 400, 1900, 0.3) {
		bare, err := adapters.Cut(d.Source, adapters.Our)
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(&body, "{\"index\":{\"_index\":\"news\",\"_id\":%q}}\n%s\n", d.ID, bare)
	}
	b.SetBytes(int64(body.Len()))
	b.ReportAllocs()
	var dst bytes.Buffer
	for b.Loop() {
		dst.Reset()
		enriched := 0
		e := &adapters.Enricher{
			Rule:  func(string, bool) (*adapters.Rule, bool) { return rule, true },
			Count: func(adapters.Change) { enriched++ },
			Room:  1 << 30,
		}
		if err := (Dialect{}).EnrichWrite(adapters.Class{Kind: adapters.Write, Form: formBulk}, &dst, bytes.NewReader(body.Bytes()), e); err != nil {
			b.Fatal(err)
		}
		if enriched != 400 || dst.Len() < body.Len()+400*200 {
			b.Fatal(enriched, dst.Len(), body.Len())
		}
	}
}
