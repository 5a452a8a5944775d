package typesense

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// together is how many documents are patched at a time. The fewer, the shorter a sketch that does not fit can stand there, and
// the longer a backfill takes ([016]: docs/decisions/016-patch-and-look.md).
const together = 100

// tries is how often a sketch is written to a document that keeps changing, before it is cleared and left to its writer or to the
// next run.
const tries = 3

// Patch implements adapters.Store. The engine knows no version of a document, so an update can't be made to depend on one. But it
// answers an update with the whole document as that update left it, so what each sketch came to stand beside is known: where that
// is another text, the next update brings its sketch, and in the end clears it. From one update to the next such a document
// carries a sketch of a former text; where the process ends just then it does so until the next run. To make it rare, the
// documents are read anew just before. Whatever is written through the sidecar after an update that fits brings its own sketch or
// clears ours.
func (s *store) Patch(
	ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch,
) ([]adapters.Result, error) {
	var results []adapters.Result
	for len(patches) > 0 {
		n := portion(patches)
		done, err := s.patch(ctx, index, rule, patches[:n])
		if err != nil {
			return nil, err
		}
		results, patches = append(results, done...), patches[n:]
	}
	return results, nil
}

// portion returns how many of the patches go to the engine at a time.
func portion(patches []adapters.Patch) int {
	size := 0
	for i, p := range patches {
		if size += len(p.Source); i > 0 && size > batchBytes || i == together {
			return i
		}
	}
	return len(patches)
}

// patching is a patch on its way.
type patching struct {
	at   int // among the patches
	id   string
	ours adapters.Ours // what is not there is cleared
}

func (s *store) patch(
	ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch,
) ([]adapters.Result, error) {
	now, err := s.documents(ctx, index, rule, patches)
	if err != nil {
		return nil, fmt.Errorf("read documents of %s: %w", index, err)
	}
	results, left := make([]adapters.Result, len(patches)), []patching{}
	for i, p := range patches {
		one := patching{i, p.ID, p.Ours}
		if source, there := now[p.ID]; there {
			right := false
			if one.ours, right = rule.Wanted(source, xxhash.Sum64String(p.ID)); right {
				results[i] = adapters.Changed
				continue
			}
		}
		left = append(left, one)
	}
	for try := 1; len(left) > 0; try++ {
		if left, err = s.update(ctx, index, rule, left, results); err != nil || try > tries {
			return results, err
		}
		for i := range left {
			if try == tries {
				left[i].ours = adapters.Ours{}
			}
		}
	}
	return results, nil
}

// update sends patches and sets their results by the documents that the engine answers. It returns those that left a document
// with another sketch than its text has, each with that text's own.
func (s *store) update(
	ctx context.Context, index string, rule *adapters.Rule, patches []patching, results []adapters.Result,
) (unfit []patching, err error) {
	var lines []byte
	for _, p := range patches {
		fields := p.ours.Fields(false)
		if p.ours.Sketch == "" {
			fields = []byte(`"` + adapters.SketchField + `":null`)
		}
		lines = appendUpdate(lines, p.id, fields)
	}
	n := 0
	err = s.importReturning(ctx, index, lines, func(line []byte) error {
		if n == len(patches) {
			return errors.New("more replies than documents")
		}
		p := patches[n]
		n++
		document, result, err := updated(line)
		if results[p.at] = result; document == nil {
			return err
		}
		fitting, right := rule.Wanted(unflattened(document), xxhash.Sum64String(p.id))
		if right {
			return nil
		}
		results[p.at] = adapters.Changed
		if p.ours.Sketch != "" { // else it was cleared, as it was meant to be
			unfit = append(unfit, patching{p.at, p.id, fitting})
		}
		return nil
	})
	if err == nil && n < len(patches) {
		err = errors.New("fewer replies than documents")
	}
	if err != nil {
		return nil, fmt.Errorf("update documents of %s: %w", index, err)
	}
	return unfit, nil
}

// importReturning sends lines to be merged into the documents that are stored, and calls yield with each line of the reply, which
// holds the document as it was left.
func (s *store) importReturning(ctx context.Context, index string, lines []byte, yield func(line []byte) error) error {
	action := "update"
	returning := func(_ context.Context, r *http.Request) error { // this parameter the client has not
		r.URL.RawQuery += "&return_doc=true"
		return nil
	}
	resp, err := s.do(func(c *api.Client) (*http.Response, error) {
		params := &api.ImportDocumentsParams{Action: &action}
		return c.ImportDocumentsWithBody(ctx, index, params, "text/plain", bytes.NewReader(lines), returning)
	})
	if err != nil {
		return err
	}
	return eachLine(resp, yield)
}

// appendUpdate appends a line that sets our fields of a document.
func appendUpdate(lines []byte, id string, fields []byte) []byte {
	lines = adapters.AppendString(append(lines, `{"id":`...), id)
	return append(append(append(lines, ','), fields...), '}', '\n')
}

// updated reads one line of an import's reply: the document as it was left, if it was updated.
func updated(line []byte) (document []byte, result adapters.Result, err error) {
	members, err := adapters.Members(line)
	if err != nil {
		return nil, adapters.Refused, err
	}
	switch document = adapters.Get(members, "document"); {
	case string(adapters.Get(members, "success")) != "true":
		if string(adapters.Get(members, "code")) == "404" {
			return nil, adapters.Gone, nil
		}
		return nil, adapters.Refused, nil
	case len(document) == 0 || document[0] != '{':
		return nil, adapters.Refused, fmt.Errorf("%w: no document in %.200s", adapters.ErrNotUnderstood, line)
	}
	return document, adapters.Patched, nil
}

// documents returns what is stored of the patches' documents by id. Those that a filter does not find or can't name are missing.
func (s *store) documents(
	ctx context.Context, index string, rule *adapters.Rule, patches []adapters.Patch,
) (map[string][]byte, error) {
	var quoted []string
	for _, p := range patches {
		if !strings.Contains(p.ID, "`") {
			quoted = append(quoted, "`"+p.ID+"`")
		}
	}
	found := map[string][]byte{}
	if len(quoted) == 0 {
		return found, nil
	}
	documents, err := s.list(ctx, index, rule, "id:["+strings.Join(quoted, ",")+"]", 1, len(quoted))
	for _, d := range documents {
		found[d.ID] = d.Source
	}
	return found, err
}
