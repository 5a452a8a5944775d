package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/measured"
)

// size measures what a document takes in the engine's files, without a sketch and with one.
func (b *bench) size() error {
	if err := b.fillStocks(); err != nil {
		return err
	}
	own := shelf{Count: b.few(5000, 500), Bytes: 2000, Duplicates: .3} // of Typesense's servers
	t := measured.Table{
		Name: "size", Title: "Index size", Columns: []measured.Column{{Name: "size", Unit: "bytes a document"}},
		Notes: []string{
			fmt.Sprintf("%d documents of 2 kB in one shard (Typesense: %d); sketches as they come (128 positions of 8 bits), no bands.",
				b.stocked().Count, own.Count),
			"Elasticsearch and OpenSearch: the index merged to one segment. Typesense: the database of a server of its own, as a snapshot has it.",
			"*sketch in the source alone* is the same index with a mapping that keeps our field in `_source` and nowhere else, made by the engine's own reindexing.",
		},
	}
	for _, e := range b.engines {
		row := measured.Row{What: "with sketches", Engine: e.name}
		var sizes []float64
		var err error
		if e.typesense() {
			sizes, err = b.sizesOfServer(own)
		} else {
			sizes, err = b.sizesOfIndex(e)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		for i, name := range []string{"without sketches", ours, "sketch in the source alone"}[:len(sizes)] {
			row.Contenders = append(row.Contenders, measured.Contender{Name: name, Figures: map[string]float64{"size": sizes[i]}})
		}
		more := func(i int, of string, most float64, limit string) {
			v := measured.Verdict{Of: of, Against: "", Unit: "bytes a document", Value: sizes[i] - sizes[0]}
			row.Verdicts = append(row.Verdicts, judged(within(v, most), limit))
		}
		if e.typesense() {
			more(1, "more, one copy stored", 240, "the stored form of a sketch, with the field's name")
		} else {
			more(1, "more, with doc values", 420, fmt.Sprintf("%.0f bytes of it in `_source`, the rest doc values", sizes[2]-sizes[0]))
			more(2, "more, one copy stored", 240, "the stored form of a sketch, with the field's name")
		}
		t.Rows = append(t.Rows, row)
	}
	b.report.Tables = append(b.report.Tables, t)
	return nil
}

// sizesOfIndex returns the bytes that a document takes without a sketch, as the sidecar stores it, and with the sketch in the source alone.
func (b *bench) sizesOfIndex(e *engine) (sizes []float64, err error) {
	count, source := b.stocked().Count, indexName("size-source")
	defer e.drop(source)
	if err := e.copyWithSource(b.ctx, e.stock.with, source); err != nil {
		return nil, err
	}
	for _, index := range []string{e.stock.bare, e.stock.with, source} {
		var stats struct {
			All struct {
				Primaries struct {
					Docs  struct{ Count float64 }
					Store struct {
						Size float64 `json:"size_in_bytes"`
					}
				}
			} `json:"_all"`
		}
		if err := e.do(b.ctx, e.base, request{method: "GET", path: "/" + index + "/_stats/docs,store"}, &stats); err != nil {
			return nil, err
		}
		if stats.All.Primaries.Docs.Count != float64(count) {
			return nil, fmt.Errorf("%s has %.0f documents of %d", index, stats.All.Primaries.Docs.Count, count)
		}
		sizes = append(sizes, stats.All.Primaries.Store.Size/float64(count))
	}
	return sizes, nil
}

// copyWithSource copies an index within the engine into one whose mapping keeps our field in the source alone.
func (e *engine) copyWithSource(ctx context.Context, from, to string) error {
	if err := e.create(ctx, e.base, to); err != nil {
		return err
	}
	for _, q := range []request{
		{method: "PUT", path: "/" + to + "/_mapping", body: []byte(`{"properties":{"neardup_sketch":{"type":"object","enabled":false}}}`)},
		{method: "POST", path: "/_reindex", body: fmt.Appendf(nil, `{"source":{"index":%q},"dest":{"index":%q}}`, from, to)},
	} {
		if err := e.do(ctx, e.base, q, nil); err != nil {
			return err
		}
	}
	return e.settle(ctx, to)
}

// sizesOfServer returns the bytes that a document takes in a separate Typesense, without a sketch and with one.
func (b *bench) sizesOfServer(s shelf) (sizes []float64, err error) {
	for _, sketched := range []bool{false, true} {
		size, err := b.sizeOfServer(s, sketched)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size/float64(s.Count))
	}
	return sizes, nil
}

func (b *bench) sizeOfServer(s shelf, sketched bool) (size float64, err error) {
	e, err := openEngine(b.ctx, engines.Typesense, engines.Launch)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.release()) }()
	base := e.base
	if sketched {
		p, err := b.sidecar(e, setup{})
		if err != nil {
			return 0, err
		}
		defer p.stop()
		base = p.base
	}
	if err := e.fill(b.ctx, base, indexName("size"), b.texts, s); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp(b.folder, "snapshot-")
	if err != nil {
		return 0, err
	}
	path := "/operations/snapshot?snapshot_path=" + url.QueryEscape(filepath.Join(folder, "made"))
	if err := e.do(b.ctx, e.base, request{method: "POST", path: path}, nil); err != nil {
		return 0, err
	}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".sst") {
			return err
		}
		about, err := entry.Info()
		size += float64(about.Size())
		return err
	})
	return size, err
}
