package typesense

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Lossless implements adapters.Cleaner. The engine shows what was sent, but for fields that the schema says to index and not to store.
func (s *Store) Lossless(ctx context.Context, index string) error {
	all, err := decoded[[]keeping](s.api.GetCollections(ctx))
	if err != nil {
		return fmt.Errorf("list collections: %w", err)
	}
	for _, c := range all {
		for _, f := range c.Fields {
			own := c.Name == index
			switch target, _, _ := strings.Cut(f.Reference, "."); {
			case own && f.Store != nil && !*f.Store:
				return fmt.Errorf("collection %s: the engine shows nothing of the field %s (store: false)", index, f.Name)
			case own && len(f.Embed) > 0:
				return fmt.Errorf("collection %s: the engine would compute the field %s of a document anew when it is put back", index, f.Name)
			case f.Reference != "" && target == index:
				return fmt.Errorf("collection %s: documents of %s refer to it (field %s), and the engine may delete them too", index, c.Name, f.Name)
			}
		}
	}
	return nil
}

// keeping is a collection by how its fields are kept.
type keeping struct {
	Name   string
	Fields []struct {
		Name      string
		Store     *bool
		Embed     json.RawMessage
		Reference string
	}
}

// Delete implements adapters.Cleaner. The engine knows no condition, but it answers the document as it was when it went. If that is not the one
// that was read, it is put back at once, unless there is another one under the id by then. Between the two it is missing.
func (s *Store) Delete(ctx context.Context, index string, documents []adapters.Stored) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(documents))
	for i, d := range documents {
		reply, err := readAll(s.api.DeleteDocument(ctx, index, d.ID))
		r, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil && sameJSON(unflattened(reply), d.Source):
			results[i] = adapters.Patched
		case err == nil:
			back, err := s.Create(context.WithoutCancel(ctx), index, []adapters.Stored{{ID: d.ID, Source: unflattened(reply)}})
			if err != nil || back[0] != adapters.Patched && back[0] != adapters.Changed {
				return nil, fmt.Errorf("document %q changed just before it was deleted, and the engine does not take it back: store it again, it was %s (%w)",
					d.ID, reply, err)
			}
			results[i] = adapters.Changed
		case answered(err, http.StatusNotFound):
			results[i] = adapters.Gone
		case refused && busy(r.code):
			results[i] = adapters.Busy
		default:
			return nil, fmt.Errorf("delete document %q of %s: %w", d.ID, index, err)
		}
	}
	return results, nil
}

// sameJSON reports whether two documents hold the same.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, err := decodedNumbers(a)
	y, err2 := decodedNumbers(b)
	return err == nil && err2 == nil && reflect.DeepEqual(x, y)
}

func decodedNumbers(text []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v)
}

// Create implements adapters.Cleaner.
func (s *Store) Create(ctx context.Context, index string, documents []adapters.Stored) ([]adapters.Result, error) {
	var lines []byte
	for _, d := range documents {
		lines = append(append(lines, bytes.TrimSpace(d.Source)...), '\n')
	}
	return s.imported(ctx, index, "create", lines, len(documents))
}

// SetField implements adapters.Cleaner. The engine leaves out a field that is null.
func (s *Store) SetField(
	ctx context.Context, index, field string, documents []adapters.Stored, values [][]byte,
) ([]adapters.Result, error) {
	var lines []byte
	for i, d := range documents {
		value := values[i]
		if value == nil {
			value = []byte("null")
		}
		member := append(append(jsonedit.AppendString(nil, field), ':'), value...)
		lines = appendUpdate(lines, d.ID, member)
	}
	return s.imported(ctx, index, "update", lines, len(documents))
}

// imported sends lines, and returns the result of each.
func (s *Store) imported(ctx context.Context, index, action string, lines []byte, n int) (results []adapters.Result, err error) {
	if n == 0 {
		return nil, nil
	}
	resp, err := s.api.ImportDocumentsWithBody(ctx, index, &api.ImportDocumentsParams{Action: &action}, "text/plain", bytes.NewReader(lines))
	if err == nil {
		err = eachLine(resp, func(line []byte) error {
			members, err := jsonedit.Members(line)
			results = append(results, importResult(members))
			return err
		})
	}
	if r, refused := errors.AsType[*refusal](err); refused && busy(r.code) {
		return slices.Repeat([]adapters.Result{adapters.Busy}, n), nil
	}
	if err == nil && len(results) != n {
		err = fmt.Errorf("%d replies for %d documents", len(results), n)
	}
	if err != nil {
		return nil, fmt.Errorf("write documents of %s: %w", index, err)
	}
	return results, nil
}

// importResult returns what one line of an import's reply says.
func importResult(members []jsonedit.Member) adapters.Result {
	code := count(members, "code")
	switch {
	case string(jsonedit.Get(members, "success")) == "true":
		return adapters.Patched
	case code == http.StatusConflict:
		return adapters.Changed
	case code == http.StatusNotFound:
		return adapters.Gone
	case busy(code):
		return adapters.Busy
	}
	return adapters.Refused
}
