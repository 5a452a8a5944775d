package elastic

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Lossless implements adapters.Cleaner. Beside what keeps a document from being written again as it was, it looks at what a deleted one
// can't be put back through.
func (s *Store) Lossless(ctx context.Context, index string) error {
	traits, err := s.traitsOf(ctx, index)
	if err == nil {
		err = traits.writable()
	}
	switch as := s.dialect().ruleName(index); {
	case err != nil:
	case as != index:
		err = fmt.Errorf("the index is behind the data stream %s, which takes new documents in its newest index alone", as)
	case traits.update && traits.embeds:
		err = errors.New("the engine would compute the embeddings of a document anew when it is put back")
	case traits.update:
		err = fmt.Errorf("a final pipeline (%s) would run once more over each document that is put back", finalSetting)
	default:
		err = s.curtailed(ctx, index)
	}
	if err != nil {
		return fmt.Errorf("index %s: %w", index, err)
	}
	return nil
}

// curtailed says that the credentials may not see all fields of all documents. Then both engines refuse updates, before they see that this one
// is for no alias.
func (s *Store) curtailed(ctx context.Context, index string) error {
	err := s.unauthorized(ctx, url.PathEscape(index))
	if err != nil && slices.ContainsFunc([]string{"level security", "FLS", "DLS"}, func(words string) bool { return strings.Contains(err.Error(), words) }) {
		return fmt.Errorf("these credentials may see only a part of it: take some that may see all: %w", err)
	}
	return nil // whether they may write will be seen
}

// Delete implements adapters.Cleaner.
func (s *Store) Delete(ctx context.Context, index string, documents []adapters.Stored) ([]adapters.Result, error) {
	t, err := s.destinationOf(ctx, index, documents)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	var body []byte
	for _, d := range documents {
		body = appendCondition(jsonedit.AppendString(append(body, `{"delete":{"_id":`...), d.ID), d)
		body = append(body, "}}\n"...)
	}
	return s.results(ctx, t, body, len(documents))
}

// Create implements adapters.Cleaner.
func (s *Store) Create(ctx context.Context, index string, documents []adapters.Stored) ([]adapters.Result, error) {
	uuid, err := s.Identity(ctx, index)
	if err != nil {
		return nil, fmt.Errorf("put documents back into %s: %w", index, err)
	}
	t, err := s.openDestination(ctx, index, uuid)
	if err != nil {
		return nil, fmt.Errorf("put documents back into %s: %w", index, err)
	}
	for i := range documents {
		documents[i].Version = nil
	}
	return s.writeEach(ctx, t, documents, func(d adapters.Stored, _ int) ([]byte, []byte, error) {
		action := appendRouting(jsonedit.AppendString([]byte(`{"create":{"pipeline":"_none","_id":`), d.ID), d)
		return append(action, "}}"...), d.Source, nil
	})
}

// SetField implements adapters.Cleaner.
func (s *Store) SetField(
	ctx context.Context, index, field string, documents []adapters.Stored, values [][]byte,
) ([]adapters.Result, error) {
	t, err := s.destinationOf(ctx, index, documents)
	if err == nil && len(documents) > 0 {
		err = t.unwritable
	}
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	return s.writeEach(ctx, t, documents, func(d adapters.Stored, i int) (action, document []byte, err error) {
		verb := `{"index":{"pipeline":"_none","_id":`
		switch value := values[i]; {
		case t.update:
			if verb = `{"update":{"_id":`; value == nil {
				value = []byte("null")
			}
			document = fmt.Appendf(nil, `{"doc":{%s:%s}}`, jsonedit.AppendString(nil, field), value)
		case value == nil:
			document, err = jsonedit.Cut(d.Source, func(key string) bool { return key == field })
		default:
			document, err = jsonedit.Set(d.Source, field, value)
		}
		action = appendCondition(jsonedit.AppendString([]byte(verb), d.ID), d)
		return append(action, "}}"...), document, err
	})
}

// destinationOf opens the index that documents were read from.
func (s *Store) destinationOf(ctx context.Context, index string, documents []adapters.Stored) (*destination, error) {
	if len(documents) == 0 {
		return nil, nil
	}
	uuid, err := uuidOf(documents)
	if err != nil {
		return nil, err
	}
	return s.openDestination(ctx, index, uuid)
}

// writeEach writes documents as edit returns them, with their action of a bulk: in requests of some size, and by itself where one is of
// several lines.
func (s *Store) writeEach(
	ctx context.Context, t *destination, documents []adapters.Stored, edit func(d adapters.Stored, i int) (action, document []byte, err error),
) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(documents))
	var body []byte
	var sent []int
	flush := func() error {
		some, err := s.results(ctx, t, body, len(sent))
		for n, i := range sent {
			if err == nil {
				results[i] = some[n]
			}
		}
		body, sent = nil, nil
		return err
	}
	for i, d := range documents {
		action, document, err := edit(d, i)
		if err != nil {
			return nil, fmt.Errorf("document %s: %w", d.ID, err)
		}
		if t.update && d.Version != nil && !survives(d.Source) {
			results[i] = adapters.Refused
			continue
		}
		if slices.Contains(document, '\n') {
			if results[i], _, err = s.writeOne(ctx, t, d, document); err != nil {
				return nil, err
			}
			continue
		}
		body, sent = append(append(append(append(body, action...), '\n'), document...), '\n'), append(sent, i)
		if len(body) > patchBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	return results, flush()
}

// results sends the lines of n actions, and returns their results.
func (s *Store) results(ctx context.Context, t *destination, body []byte, n int) (results []adapters.Result, err error) {
	outcomes, err := s.bulk(ctx, t, body, n)
	if err != nil {
		return nil, fmt.Errorf("write to %s: %w", t.index, err)
	}
	for _, o := range outcomes {
		results = append(results, resultOf(o.Status))
	}
	return results, nil
}
