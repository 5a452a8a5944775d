package elastic

import (
	"context"
	"errors"
	"fmt"

	"github.com/neardup/sidecar/adapters"
)

const (
	// scanFirst is how many documents the first page of a scan holds, and a page of a scroll, whose size is fixed; scanMost is how
	// many any page holds.
	scanFirst, scanMost = 100, 1000
	// scanBytes is how large a reply is meant to be, and scanLimit how large it may be at all: a larger one is not read to its end,
	// but asked for again in smaller pages.
	scanBytes, scanLimit = 4 << 20, 64 << 20
)

// errEnough ends a scan that has read what was wanted.
var errEnough = errors.New("enough documents")

// Scan implements adapters.Store. Without a part or ids it sees what was stored before it began, and nothing later. Chosen by ids,
// documents are read as they are at that moment; by bands with a limit of one search, as of the engine's last refresh.
func (s *Store) Scan(
	ctx context.Context, index string, rule *adapters.Rule, sel adapters.Selection, yield func(adapters.Page) error,
) error {
	r := &scan{s: s, index: index, sel: sel, yield: yield, left: sel.Limit, size: scanFirst, source: sourceFor(sel)}
	err := r.begin(ctx, rule)
	if err == nil {
		switch {
		case sel.Random:
			err = r.sample(ctx)
		case sel.IDs != nil && r.query == "":
			err = r.byIDs(ctx, sel.IDs)
		case r.looks():
			err = r.look(ctx)
		default:
			err = r.walk(ctx)
		}
	}
	yielded, ours := errors.AsType[*yieldError](err)
	switch {
	case err == nil, errors.Is(err, errEnough):
		return nil
	case ours:
		return yielded.error
	}
	return fmt.Errorf("scan %s: %w", index, err)
}

// yieldError is an error of the one who reads, to be handed back as it is.
type yieldError struct{ error }

// scan is one reading of documents under way.
type scan struct {
	s      *Store
	d      Dialect
	index  string
	sel    adapters.Selection
	yield  func(adapters.Page) error
	query  string // the filter of what is selected, empty for all
	source string // which part of the documents is read, as a member of a body, or empty for all of it
	made   made
	total  int
	left   int // of a limit
	size   int // how many documents the next page holds
}

// begin finds out what has to be known before the first page.
func (r *scan) begin(ctx context.Context, rule *adapters.Rule) error {
	if r.sel.Brief && (r.sel.Random || r.sel.Part != "" || r.sel.IDs != nil || r.looks()) {
		return r.filter(ctx, rule) // nothing of it will be written, and some of it has to be quick
	}
	made, err := r.s.made(ctx, r.index)
	if err == nil {
		r.made = made
		if r.sel.Brief || made.partial == "" {
			return r.filter(ctx, rule)
		}
		err = fmt.Errorf("the index keeps only a part of its documents (_source is %s): send the documents again instead", made.partial)
	}
	return err
}

// looks reports whether one search finds all that is selected.
func (r *scan) looks() bool {
	return r.sel.Bands != nil && r.sel.Part == "" && r.sel.After == "" && r.sel.Limit > 0 && r.sel.Limit <= maxResultWindow
}

// sourceFor returns which part of the documents is read, as a member of a search's body.
func sourceFor(sel adapters.Selection) string {
	if !sel.Brief {
		return ""
	}
	list := append([]string{adapters.SketchField, adapters.BandsField, adapters.ClusterField}, sel.Fields...)
	return `"_source":` + string(stringsOf(list)) + `,`
}

// give hands on some documents, which are of one reply of that length.
func (r *scan) give(documents []scanned, after string, length int) error {
	r.pace(len(documents), length)
	if r.sel.Limit > 0 {
		documents = documents[:min(len(documents), r.left)]
		r.left -= len(documents)
	}
	page := adapters.Page{Total: r.total, After: after}
	for _, d := range documents {
		page.Documents = append(page.Documents, adapters.Stored{
			ID: d.id, Source: d.source, Version: version{d.seqNo, d.term, d.version, d.routing, r.made.uuid},
		})
	}
	if len(page.Documents) > 0 {
		if err := r.yield(page); err != nil {
			return &yieldError{err}
		}
	}
	if r.sel.Limit > 0 && r.left == 0 {
		return errEnough
	}
	return nil
}

// pace chooses the size of the next page by the length of one.
func (r *scan) pace(documents, length int) {
	if documents > 0 {
		r.size = min(max(scanBytes/(length/documents+1), 1), 2*r.size, scanMost)
	}
}

// want is how many documents to ask for.
func (r *scan) want() int {
	if r.sel.Limit > 0 {
		return min(r.size, r.left)
	}
	return r.size
}
