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
	"slices"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// batch is how many documents are handed on, and read back, at a time; the engine's limit on a page of hits.
const batch = maxPerPage

// storedFields returns what a sketch is computed from and compared with.
func storedFields(rule *adapters.Rule) []string {
	computing := *rule
	computing.Compute = true
	return append([]string{"id", adapters.SketchField}, textFields(adapters.Rules{&computing})...)
}

// Scan implements adapters.Store. It reads an export, which is a stream as of the moment it begins.
func (s *store) Scan(ctx context.Context, index string, rule *adapters.Rule, yield func(adapters.Page) error) error {
	c, err := s.collection(ctx, index)
	if err != nil {
		return err
	}
	include := strings.Join(storedFields(rule), ",")
	resp, err := s.do(func(c *api.Client) (*http.Response, error) {
		return c.ExportDocuments(ctx, index, &api.ExportDocumentsParams{IncludeFields: &include})
	})
	if err != nil {
		return fmt.Errorf("export %s: %w", index, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		return fmt.Errorf("export %s: %w", index, refusalOf(resp.StatusCode, body))
	}
	page := adapters.Page{Total: c.NumDocuments}
	for lines := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("export %s: %w", index, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			document, err := storedDocument(line)
			if err != nil {
				return fmt.Errorf("export %s: %w", index, err)
			}
			page.Documents = append(page.Documents, document)
		}
		ended := errors.Is(err, io.EOF)
		if len(page.Documents) == batch || ended && len(page.Documents) > 0 {
			if err := yield(page); err != nil {
				return err
			}
			page.Documents = nil
		}
		if ended {
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

// Patch implements adapters.Store. The engine knows no version of a document, so an update can't be made to depend on one. Instead every
// document is read back after its update: where its text is no longer the one that the sketch was made of, the sketch is cleared. In
// between, for as long as the update and the reading take, such a document carries a sketch of its former text; where the process ends
// just then it does so until the next run. What is written meanwhile through the sidecar brings its own sketch, which is at worst
// cleared.
func (s *store) Patch(ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	var results []adapters.Result
	for chunk := range slices.Chunk(patches, batch) {
		done, err := s.patch(ctx, index, rule, chunk)
		if err != nil {
			return nil, err
		}
		results = append(results, done...)
	}
	return results, nil
}

func (s *store) patch(ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	var lines []byte
	for _, p := range patches {
		value := []byte("null")
		if p.Sketch != "" {
			value = adapters.AppendString(nil, p.Sketch)
		}
		lines = appendUpdate(lines, p.ID, value)
	}
	replies, err := s.importLines(ctx, index, lines)
	if err != nil {
		return nil, err
	}
	if len(replies) != len(patches) {
		return nil, fmt.Errorf("update documents of %s: %d replies for %d documents", index, len(replies), len(patches))
	}
	results, ids := make([]adapters.Result, len(patches)), []string{}
	for i, reply := range replies {
		if results[i] = updated(reply); results[i] == adapters.Patched {
			ids = append(ids, patches[i].ID)
		}
	}
	stored, err := s.documents(ctx, index, rule, ids)
	if err != nil {
		return nil, err
	}
	return results, s.verify(ctx, index, rule, patches, results, stored)
}

// appendUpdate appends a line that sets our field of a document.
func appendUpdate(lines []byte, id string, value []byte) []byte {
	lines = adapters.AppendString(append(lines, `{"id":`...), id)
	lines = append(append(lines, `,"`+adapters.SketchField+`":`...), value...)
	return append(lines, '}', '\n')
}

// updated reads one line of an import's reply.
func updated(reply []byte) adapters.Result {
	var r struct {
		Success bool
		Code    int
	}
	switch err := json.Unmarshal(reply, &r); {
	case err == nil && r.Success:
		return adapters.Patched
	case err == nil && r.Code == http.StatusNotFound:
		return adapters.Gone
	}
	return adapters.Refused
}

// verify corrects the results by what is stored now, and clears the sketches that are not of the stored text.
func (s *store) verify(ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch, results []adapters.Result, now map[string][]byte) error {
	var clear []byte
	for i, p := range patches {
		if results[i] != adapters.Patched {
			continue
		}
		source, there := now[p.ID]
		if !there {
			results[i] = adapters.Gone
			continue
		}
		computed, stored := rule.SketchOf(source)
		switch {
		case p.Sketch == "" && computed == nil && !adapters.HasSketch(source):
			continue
		case computed != nil && computed.Text == p.Sketch && stored != nil && stored.Text == p.Sketch:
			continue
		case stored != nil && stored.Text == p.Sketch:
			clear = appendUpdate(clear, p.ID, []byte("null"))
		}
		results[i] = adapters.Changed
	}
	if len(clear) == 0 {
		return nil
	}
	replies, err := s.importLines(ctx, index, clear)
	for _, reply := range replies {
		if r := updated(reply); r == adapters.Refused {
			err = errors.Join(err, fmt.Errorf("clear the sketch of a document of %s that changed: %s", index, reply))
		}
	}
	return err
}

// documents returns what is stored of the documents by id. A filter finds nearly all in one request; ids that can't be written in one,
// and those that it did not find, are read one by one.
func (s *store) documents(ctx context.Context, index string, rule *adapters.Rule, ids []string) (map[string][]byte, error) {
	found := map[string][]byte{}
	if err := s.filter(ctx, index, rule, ids, found); err != nil {
		return nil, fmt.Errorf("read back documents of %s: %w", index, err)
	}
	for _, id := range ids {
		if _, ok := found[id]; ok {
			continue
		}
		body, err := s.get(func(c *api.Client) (*http.Response, error) { return c.GetDocument(ctx, index, id) })
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read back document %s of %s: %w", id, index, err)
		}
		found[id] = unflattened(body)
	}
	return found, nil
}

func (s *store) filter(ctx context.Context, index string, rule *adapters.Rule, ids []string, found map[string][]byte) error {
	var quoted []string
	for _, id := range ids {
		if !strings.Contains(id, "`") {
			quoted = append(quoted, "`"+id+"`")
		}
	}
	if len(quoted) == 0 {
		return nil
	}
	documents, err := s.list(ctx, index, rule, "id:["+strings.Join(quoted, ",")+"]", 1, len(quoted))
	for _, d := range documents {
		found[d.ID] = d.Source
	}
	return err
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
