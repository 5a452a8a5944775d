package typesense

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// batch is how many documents are handed on at a time; the engine's limit on a page of hits.
	batch = maxPerPage
	// batchBytes is how many bytes of documents are, but for a single one that is longer.
	batchBytes = 8 << 20
)

// reading is a scan under way.
type reading struct {
	store *Store
	index string
	rule  *rule.Rule
	sel   adapters.Selection
	share share
	yield func(adapters.Page) error
	// total is how many documents are selected, 0 where that is not known, and left how many more may be yielded; below 0 is no bound.
	total, left int
	// stop is why no more are to be yielded.
	stop error
}

// readFields returns the fields that are read: ours and those asked for, and unless it is to be brief the texts that a sketch is
// computed from. Empty means all fields.
func readFields(r *rule.Rule, sel adapters.Selection) string {
	if slices.Contains(sel.Fields, adapters.AllFields) {
		return ""
	}
	fields := append([]string{"id"}, rule.OurFields...)
	if r != nil && !sel.Brief {
		fields = append(fields, withRoots(r.Fields)...)
	}
	for _, field := range withRoots(sel.Fields) {
		if !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	return strings.Join(fields, ",")
}

// Scan implements adapters.Store. A whole collection, a share of it and what a filter lets through are read from an export, in the
// order in which the documents were made; documents by their ids or bands are looked up by search, which takes no more than the right
// to search. Which of them have our fields no filter can tell: these are sorted out here.
func (s *Store) Scan(
	ctx context.Context, index string, rule *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error,
) error {
	part, err := parsePart(sel.Part)
	if err != nil {
		return err
	}
	if sel.After != "" {
		return fmt.Errorf("scan %s: this engine knows no place to go on from: begin anew", index)
	}
	r := &reading{store: s, index: index, rule: rule, sel: sel, share: part, yield: yield, left: -1}
	if sel.Limit > 0 {
		r.left = sel.Limit
	}
	switch {
	case sel.IDs != nil:
		err = r.byIDs(ctx)
	case sel.Bands != nil:
		err = r.byBands(ctx)
	case sel.Random && sel.Limit > 0:
		err = r.sample(ctx)
	default:
		err = r.export(ctx)
	}
	if r.stop != nil {
		err = r.stop
	}
	if errors.Is(err, adapters.ErrEnough) {
		return nil
	}
	return err
}

// hand yields documents, no more than are left.
func (r *reading) hand(documents []adapters.Stored) error {
	if r.left >= 0 && len(documents) > r.left {
		documents = documents[:r.left]
	}
	if len(documents) > 0 {
		if r.stop = r.yield(adapters.Page{Total: r.total, Documents: documents}); r.stop != nil {
			return r.stop
		}
	}
	if r.left >= 0 {
		if r.left -= len(documents); r.left == 0 {
			r.stop = adapters.ErrEnough
		}
	}
	return r.stop
}

// count returns how many documents of a collection a filter lets through.
func (s *Store) count(ctx context.Context, index, filter string) (int, error) {
	if filter == "" {
		c, err := s.collection(ctx, index)
		return c.NumDocuments, err
	}
	_, found, err := s.list(ctx, index, listing{filter: filter, include: "id", enginePage: enginePage{number: 1}})
	if err != nil {
		return 0, fmt.Errorf("search %s: %w", index, err)
	}
	return found, nil
}

// export reads exports, each a stream as of the moment it begins. The engine cuts one of which nothing is read for a minute, as a
// throttled job may: then another is begun, and what was read of the first is skipped. The order of an export is that in which the documents were
// made, whatever is updated, deleted or added.
func (r *reading) export(ctx context.Context) error {
	documents, err := r.store.count(ctx, r.index, r.sel.Query)
	if err != nil {
		return err
	}
	if !r.sel.Marked { // else only reading them tells
		r.total = r.share.size(documents)
	}
	var kept []adapters.Stored // documents that are selected and not yet yielded
	size := 0                  // of these, in bytes
	flush := func() error {
		page := kept
		kept, size = nil, 0
		return r.hand(page)
	}
	last, before := map[string]bool{}, map[string]bool{} // the ids that were read last
	for skip := false; ; {                               // skip all up to these, which were read already
		progress := false
		err := r.exportOnce(ctx, func(d adapters.Stored) error {
			if last[d.ID] || before[d.ID] {
				skip = false
				return nil
			}
			if skip {
				return nil
			}
			if progress = true; len(last) == batch {
				last, before = map[string]bool{}, last
			}
			last[d.ID] = true
			if !r.share.holds(d.ID) || r.sel.Marked && !rule.HasOurs(d.Source) {
				return nil
			}
			kept, size = append(kept, d), size+len(d.Source)
			if len(kept) == batch || size >= batchBytes {
				return flush()
			}
			return nil
		})
		_, refused := errors.AsType[*refusal](err)
		switch {
		case r.stop != nil:
			return r.stop
		case err == nil && !skip:
			return flush()
		case err != nil && (refused || ctx.Err() != nil || !progress):
			return fmt.Errorf("export %s: %w", r.index, err)
		}
		skip = err != nil // without an error, all that was read last is gone: once more from the start
	}
}

// exportOnce reads one export to its end.
func (r *reading) exportOnce(ctx context.Context, yield func(adapters.Stored) error) error {
	include, params := readFields(r.rule, r.sel), &api.ExportDocumentsParams{}
	if include != "" {
		params.IncludeFields = &include
	}
	if r.sel.Query != "" {
		params.FilterBy = &r.sel.Query
	}
	resp, err := r.store.api.ExportDocuments(ctx, r.index, params)
	if err != nil {
		return err
	}
	return eachLine(resp, func(line []byte) error {
		document, err := storedDocument(line)
		if err != nil {
			return err
		}
		return yield(document)
	})
}

// eachLine calls yield with each line of a reply that is not empty, and closes it. An engine's refusal is a *refusal.
func eachLine(resp *http.Response, yield func(line []byte) error) error {
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return refusalOf(resp.StatusCode, body)
	}
	for lines := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if failed := yield(line); failed != nil {
				return failed
			}
		}
		if err != nil {
			return nil
		}
	}
}

func storedDocument(source []byte) (adapters.Stored, error) {
	members, err := jsonedit.Members(source)
	if err != nil {
		return adapters.Stored{}, err
	}
	id, ok := jsonedit.Text(jsonedit.Get(members, "id"))
	if !ok {
		return adapters.Stored{}, errors.New("a document without id")
	}
	return adapters.Stored{ID: id, Source: unflattened(source)}, nil
}

// leastParts is how many parts a collection has at least.
const leastParts = 4

// Split implements adapters.JobStore. Parts are shares of the documents by a hash of their ids, so that each document is in the
// same part whatever happens to the others. Reading one part costs an export of the collection. There are a few at least, so that
// others can join in.
func (s *Store) Split(ctx context.Context, index, query string, n int) (parts []string, documents int, err error) {
	n = max(n, leastParts)
	for i := range n {
		parts = append(parts, strconv.Itoa(i)+"/"+strconv.Itoa(n))
	}
	documents, err = s.count(ctx, index, query)
	return parts, documents, err
}

// Identity implements adapters.JobStore: it is when the collection was made.
func (s *Store) Identity(ctx context.Context, index string) (string, error) {
	c, err := s.collection(ctx, index)
	return strconv.FormatInt(c.CreatedAt, 10), err
}

// share is a part of a collection: the documents whose ids' hash, divided by the number of shares, leaves that remainder.
type share struct{ number, of uint64 }

// parsePart reads the name of a part, as Split gave it. Without one it is all of the collection.
func parsePart(name string) (share, error) {
	if name == "" {
		return share{0, 1}, nil
	}
	first, second, _ := strings.Cut(name, "/")
	number, err1 := strconv.ParseUint(first, 10, 32)
	of, err2 := strconv.ParseUint(second, 10, 32)
	if err1 != nil || err2 != nil || number >= of {
		return share{}, fmt.Errorf("part %q: is no share of a collection: use one such as 0/4", name)
	}
	return share{number, of}, nil
}

func (s share) holds(id string) bool { return xxhash.Sum64String(id)%s.of == s.number }

// size returns about how many of the documents are in the share; over all shares it adds up to them.
func (s share) size(documents int) int {
	all, number, of := uint64(documents), s.number, s.of
	return int(all*(number+1)/of - all*number/of)
}
