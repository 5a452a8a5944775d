package typesense

import (
	"bytes"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

// BenchmarkEnrich measures what the documents of an import take on their way in beside HTTP: ns/op and B/s are of 400 of 2 kB each.
func BenchmarkEnrich(b *testing.B) {
	rule := newRule(b, "news", "title", "body")
	var body bytes.Buffer
	for _, d := range adaptertest.Articles(b, rule, 400, 1900, 0.3) {
		bare, err := adapters.Cut(d.Source, adapters.Our)
		if err != nil {
			b.Fatal(err)
		}
		body.Write(append(bare, '\n'))
	}
	class := adapters.Class{Kind: adapters.Write, Target: "news", Form: formImport, Params: writing{}}
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
		if err := (Dialect{}).EnrichWrite(class, &dst, bytes.NewReader(body.Bytes()), e); err != nil {
			b.Fatal(err)
		}
		if enriched != 400 || dst.Len() < body.Len()+400*200 {
			b.Fatal(enriched, dst.Len(), body.Len())
		}
	}
}
