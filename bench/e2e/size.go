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
	s := shelf{count: 20_000, bytes: 2000, duplicates: .3}
	if b.short {
		s.count = 500
	}
	t := measured.Table{
		Name: "size", Title: "Index size", Columns: []measured.Column{{Name: "size", Unit: "bytes a document"}},
		Notes: []string{
			fmt.Sprintf("%d documents of 2 kB in one shard; sketches as they come (128 positions of 8 bits), no bands.", s.count),
			"Elasticsearch and OpenSearch: the index merged to one segment. Typesense: the database of a server of its own, as a snapshot has it.",
			"*sketch in the source alone* is the same index with a mapping that keeps our field in `_source` and nowhere else, made by the engine's own reindexing.",
		},
	}
	for _, e := range b.engines {
		row := measured.Row{What: "with sketches", Engine: e.name}
		measure := b.sizesOfIndex
		if e.typesense() {
			measure = b.sizesOfServer
		}
		sizes, err := measure(e, s)
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
func (b *bench) sizesOfIndex(e *engine, s shelf) (sizes []float64, err error) {
	p, err := b.sidecar(e, setup{})
	if err != nil {
		return nil, err
	}
	defer p.stop()
	names := []string{indexName("size-without"), indexName("size-with"), indexName("size-source")}
	for i, fill := range []func(index string) error{
		func(index string) error { return e.fill(b.ctx, e.base, index, b.texts, s) },
		func(index string) error { return e.fill(b.ctx, p.base, index, b.texts, s) },
		func(index string) error { return e.copyWithSource(b.ctx, names[1], index) },
	} {
		defer e.drop(names[i])
		if err := fill(names[i]); err != nil {
			return nil, err
		}
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
		if err := e.do(b.ctx, e.base, request{method: "GET", path: "/" + names[i] + "/_stats/docs,store"}, &stats); err != nil {
			return nil, err
		}
		if stats.All.Primaries.Docs.Count != float64(s.count) {
			return nil, fmt.Errorf("%s has %.0f documents of %d", names[i], stats.All.Primaries.Docs.Count, s.count)
		}
		sizes = append(sizes, stats.All.Primaries.Store.Size/float64(s.count))
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
func (b *bench) sizesOfServer(_ *engine, s shelf) (sizes []float64, err error) {
	for _, sketched := range []bool{false, true} {
		size, err := b.sizeOfServer(s, sketched)
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, size/float64(s.count))
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
