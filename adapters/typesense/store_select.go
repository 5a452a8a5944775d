package typesense

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

const (
	// idsAtOnce is how many ids one search looks up: as many as a page holds. bandsAtOnce is how many band keys: a filter over these
	// took the engine 8 ms.
	idsAtOnce   = batch
	bandsAtOnce = 5000
)

// listing is one page of the documents that a filter lets through, of all where it is empty.
type listing struct {
	filter, include string
	enginePage
}

// list reads a page in a search of its own, whose filter can be as long as it takes. found is how many documents there are on all pages.
func (s *Store) list(ctx context.Context, index string, l listing) (documents []adapters.Stored, found int, err error) {
	search, err := json.Marshal(map[string]any{
		"collection": index, "q": "*", "filter_by": l.filter, "page": l.number, "per_page": l.size, "include_fields": l.include,
	})
	if err != nil {
		return nil, 0, err
	}
	body := append(append([]byte(`{"searches":[`), search...), `]}`...)
	reply, err := readAll(s.api.MultiSearchWithBody(ctx, &api.MultiSearchParams{}, "application/json", bytes.NewReader(body)))
	if err != nil {
		return nil, 0, err
	}
	results, err := jsonedit.Elements(member(reply, "results"))
	if err != nil || len(results) != 1 {
		return nil, 0, fmt.Errorf("%w: %s", adapters.ErrNotUnderstood, reply[:min(len(reply), 200)])
	}
	r, err := parseResult(results[0], &l.enginePage)
	if no, ok := errors.AsType[*adapters.Declined](err); ok {
		return nil, 0, &refusal{no.Status, no.Reason}
	}
	if err != nil {
		return nil, 0, err
	}
	for _, h := range r.hits {
		if h.id == "" {
			return nil, 0, errors.New("the key hides the documents' ids: use one that does not")
		}
		documents = append(documents, adapters.Stored{ID: h.id, Source: h.unflattened()})
	}
	return documents, r.found, nil
}

// byIDs reads documents by their ids, each once: those that no filter can name one by one.
func (r *reading) byIDs(ctx context.Context) error {
	left := map[string]bool{}
	for _, id := range r.sel.IDs {
		left[id] = true
	}
	var odd []string
	for chunk := range slices.Chunk(r.sel.IDs, idsAtOnce) {
		var quoted []string
		for _, id := range chunk {
			if unnameable(id) {
				odd = append(odd, id)
			} else {
				quoted = append(quoted, "`"+id+"`")
			}
		}
		if len(quoted) == 0 {
			continue
		}
		err := r.lookUp(ctx, "id:["+strings.Join(quoted, ",")+"]", func(id string) bool {
			selected := left[id] // a filter may find an id that is merely like one it names
			delete(left, id)
			return selected
		})
		if err != nil {
			return fmt.Errorf("look up documents of %s: %w", r.index, err)
		}
	}
	return r.fetch(ctx, odd)
}

// unnameable reports whether no filter can name the id.
func unnameable(id string) bool { return strings.Contains(id, "`") || strings.TrimSpace(id) != id }

// byBands reads the documents with one of the band keys, each once.
func (r *reading) byBands(ctx context.Context) error {
	seen := map[string]bool{}
	for chunk := range slices.Chunk(r.sel.Bands, bandsAtOnce) {
		keys := make([]string, len(chunk))
		for i, key := range chunk {
			keys[i] = strconv.FormatInt(key, 10)
		}
		err := r.lookUp(ctx, rule.BandsField+":["+strings.Join(keys, ",")+"]", func(id string) bool {
			again := seen[id]
			seen[id] = true
			return !again
		})
		if err != nil {
			return r.explained(err)
		}
	}
	return nil
}

// lookUp reads the documents that a filter lets through and that are wanted.
func (r *reading) lookUp(ctx context.Context, filter string, wanted func(id string) bool) error {
	for number := 1; ; number++ {
		documents, _, err := r.store.list(ctx, r.index, listing{filter, readFields(r.rule, r.sel), enginePage{number, batch}})
		if err != nil {
			return err
		}
		last := len(documents) < batch
		documents = slices.DeleteFunc(documents, func(d adapters.Stored) bool { return !wanted(d.ID) })
		if err := r.hand(documents); err != nil || last {
			return err
		}
	}
}

// fetch reads the documents with ids that no filter can name, one by one.
func (r *reading) fetch(ctx context.Context, ids []string) error {
	include := strings.Split(readFields(r.rule, r.sel), ",")
	for _, id := range ids {
		source, err := readAll(r.store.api.GetDocument(ctx, r.index, id))
		if answered(err, http.StatusNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read document %q of %s: %w", id, r.index, err)
		}
		if source, err = jsonedit.Cut(source, func(key string) bool { return include[0] != "" && !slices.Contains(include, key) }); err != nil {
			return err
		}
		d, err := storedDocument(source)
		if err != nil {
			return err
		}
		if err := r.hand([]adapters.Stored{d}); err != nil {
			return err
		}
	}
	return nil
}

// explained says what to do about a search that the engine refuses because our field is not there.
func (r *reading) explained(err error) error {
	if no, ok := errors.AsType[*refusal](err); ok && strings.Contains(no.reason, rule.BandsField) {
		return fmt.Errorf("collection %s stores no bands: set bands: auto in its entry of the configuration, and run setup and reindex: %w",
			r.index, err)
	}
	return fmt.Errorf("look up documents of %s: %w", r.index, err)
}

// DocumentOf returns the request for a stored document, without credentials.
func (Dialect) DocumentOf(index, id string) *adapters.Request {
	escaped := func(name string) string { return strings.ReplaceAll(url.PathEscape(name), "+", "%2B") } // a space to the engine
	return &adapters.Request{Method: http.MethodGet, Path: "/collections/" + escaped(index) + "/documents/" + escaped(id)}
}

const (
	// sampleRequests is how many pages a sample is taken from, more only where they would be longer than the engine grants. Documents that are
	// alike are often neighbours, so many short runs tell more.
	sampleRequests = 50
	// sampleRun is the shortest run: a page far down a large collection takes seconds.
	sampleRun = 25
)

// sample reads documents in short runs chosen at random, fewer where the last run is short, and all where there are no more.
// A page far down a list took the engine a tenth of a second for each 300,000 documents.
func (r *reading) sample(ctx context.Context) error {
	n := r.left
	documents, err := r.store.count(ctx, r.index, r.sel.Query)
	if err != nil {
		return err
	}
	if n >= documents {
		return r.export(ctx)
	}
	r.total = n
	run := min(batch, max(sampleRun, n/sampleRequests))
	all, wanted := (documents+run-1)/run, (n+run-1)/run // pages
	for i := range wanted {
		first, next := i*all/wanted, (i+1)*all/wanted // a stretch of pages, of which one is read
		at := enginePage{1 + first + rand.IntN(next-first), run}
		documents, _, err := r.store.list(ctx, r.index, listing{r.sel.Query, readFields(r.rule, r.sel), at})
		if err != nil {
			return err
		}
		if err := r.hand(documents); err != nil {
			return err
		}
	}
	return nil
}
