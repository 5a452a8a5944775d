package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/bench/internal/corpora"
)

// record is one line of the corpus. Group names its planted near-duplicates; the sidecar does not look at it.
type record struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Group string `json:"group"`
	At    int64  `json:"at"`
}

// beside is about how many bytes of a record are not of its text.
const beside = 130

// shelfOf describes documents whose records have about this many bytes, three in ten of them near-duplicates.
func shelfOf(documents, bytes int) corpora.Shelf {
	return corpora.Shelf{Count: documents, Bytes: max(50, bytes-beside), Duplicates: .3}
}

// recordOf is the i-th record of a shelf. Each sentence is on a line of its own.
func recordOf(t *corpora.Texts, s corpora.Shelf, i int) record {
	d := t.Document(s, i)
	return record{ID: d.ID, Title: d.Title, Text: strings.ReplaceAll(d.Body, ". ", ".\n"), Group: d.Cluster, At: d.At}
}

// writeCorpus writes a shelf to a file, one record a line, and returns how many bytes the lines have. The same shelf gives the same bytes.
func writeCorpus(ctx context.Context, file string, t *corpora.Texts, s corpora.Shelf) (size int64, err error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	size, err = writeRecords(ctx, w, t, s)
	return size, errors.Join(err, w.Flush(), f.Close())
}

// writeRecords makes the records of a shelf on all cores and writes them in their order.
func writeRecords(ctx context.Context, w io.Writer, t *corpora.Texts, s corpora.Shelf) (size int64, err error) {
	const each = 1 << 12
	parts := make([]bytes.Buffer, runtime.GOMAXPROCS(0))
	for from := 0; from < s.Count; from += each * len(parts) {
		group, ctx := errgroup.WithContext(ctx)
		for p := range parts {
			part, first := &parts[p], from+each*p
			part.Reset()
			group.Go(func() error {
				into := json.NewEncoder(part)
				into.SetEscapeHTML(false)
				for i := first; i < min(first+each, s.Count); i++ {
					if err := into.Encode(recordOf(t, s, i)); err != nil {
						return err
					}
				}
				return ctx.Err()
			})
		}
		if err := group.Wait(); err != nil {
			return size, err
		}
		for p := range parts {
			n, err := parts[p].WriteTo(w)
			if size += n; err != nil {
				return size, err
			}
		}
	}
	return size, nil
}

// pack writes a file gzipped to another one.
func pack(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	w, _ := gzip.NewWriterLevel(f, gzip.BestSpeed) // a level that there is
	_, err = io.Copy(w, src)
	return errors.Join(err, w.Close(), f.Close())
}
