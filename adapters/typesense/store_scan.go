package typesense

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

const (
	// batch is how many documents are handed on at a time; the engine's limit on a page of hits.
	batch = maxPerPage
	// batchBytes is how many bytes of documents are, but for a single one that is longer.
	batchBytes = 8 << 20
)

// storedFields returns what a sketch is computed from and compared with.
func storedFields(rule *adapters.Rule) []string {
	computing := *rule
	computing.Compute = true
	return append([]string{"id", adapters.SketchField}, textFields(adapters.Rules{&computing})...)
}

// Scan implements adapters.Store. It reads an export, which is a stream as of the moment it begins. The engine cuts one of which
// nothing is read for a minute, as a throttled job may: then another is begun, and read on behind what was yielded.
func (s *store) Scan(
	ctx context.Context, index string, rule *adapters.Rule, sel adapters.Selection, yield func(adapters.Page) error,
) error {
	if sel.Random {
		return s.sample(ctx, index, rule, sel.Limit, yield)
	}
	c, err := s.collection(ctx, index)
	if err != nil {
		return err
	}
	e := export{store: s, index: index, include: strings.Join(storedFields(rule), ","), yield: yield, total: c.NumDocuments}
	for {
		before := e.yielded
		err := e.read(ctx)
		_, refused := errors.AsType[*refusal](err)
		switch {
		case e.stop != nil:
			return e.stop
		case err == nil && !e.behind:
			return nil
		case err != nil && (refused || ctx.Err() != nil || e.yielded == before):
			return fmt.Errorf("export %s: %w", index, err)
		}
		e.behind = err != nil // without an error, all that was yielded last is gone: once more from the start
	}
}

// export is a scan under way.
type export struct {
	store          *store
	index, include string
	yield          func(adapters.Page) error
	total, yielded int
	stop           error
	// last are the ids that were yielded last; behind says that reading is to go on behind them. The order of an export is that in
	// which the documents were made, whatever is updated, deleted or added.
	last   map[string]bool
	behind bool
}

// read reads one export to its end.
func (e *export) read(ctx context.Context) error {
	resp, err := e.store.do(func(c *api.Client) (*http.Response, error) {
		return c.ExportDocuments(ctx, e.index, &api.ExportDocumentsParams{IncludeFields: &e.include})
	})
	if err != nil {
		return err
	}
	var documents []adapters.Stored
	size := 0
	err = eachLine(resp, func(line []byte) error {
		document, err := storedDocument(line)
		if err != nil {
			return err
		}
		if e.last[document.ID] {
			e.behind = false
		}
		if e.behind || e.last[document.ID] {
			return nil
		}
		documents = append(documents, document)
		if size += len(document.Source); len(documents) < batch && size < batchBytes {
			return nil
		}
		err = e.hand(documents)
		documents, size = nil, 0
		return err
	})
	if err == nil && len(documents) > 0 {
		return e.hand(documents)
	}
	return err
}

// hand yields documents.
func (e *export) hand(documents []adapters.Stored) error {
	e.last = map[string]bool{}
	for _, d := range documents {
		e.last[d.ID] = true
	}
	e.yielded += len(documents)
	e.stop = e.yield(adapters.Page{Total: e.total, Documents: documents})
	return e.stop
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
	members, err := adapters.Members(source)
	if err != nil {
		return adapters.Stored{}, err
	}
	id, ok := adapters.Text(adapters.Get(members, "id"))
	if !ok {
		return adapters.Stored{}, errors.New("a document without id")
	}
	return adapters.Stored{ID: id, Source: unflattened(source)}, nil
}

// list returns one page of the documents that a filter lets through, of all where it is empty.
func (s *store) list(
	ctx context.Context, index string, rule *adapters.Rule, filter string, page, perPage int,
) ([]adapters.Stored, error) {
	a := ask{content: texts, page: page, perPage: perPage}
	search, err := json.Marshal(map[string]any{
		"collection": index, "q": "*", "filter_by": filter, "page": a.page, "per_page": a.perPage,
		"include_fields": strings.Join(storedFields(rule), ","),
	})
	if err != nil {
		return nil, err
	}
	body := append(append([]byte(`{"searches":[`), search...), `]}`...)
	reply, err := s.get(func(c *api.Client) (*http.Response, error) {
		return c.MultiSearchWithBody(ctx, &api.MultiSearchParams{}, "application/json", bytes.NewReader(body))
	})
	if err != nil {
		return nil, err
	}
	root, err := adapters.Members(reply)
	if err != nil {
		return nil, err
	}
	results, err := adapters.Elements(adapters.Get(root, "results"))
	if err != nil || len(results) != 1 {
		return nil, fmt.Errorf("%w: %s", adapters.ErrNotUnderstood, reply[:min(len(reply), 200)])
	}
	r, err := parseResult(results[0], a)
	if err != nil {
		return nil, err
	}
	var documents []adapters.Stored
	for _, h := range r.hits {
		documents = append(documents, adapters.Stored{ID: h.id, Source: unflattened(h.document)})
	}
	return documents, nil
}
