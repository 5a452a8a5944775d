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
	"time"

	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Lossless implements adapters.Cleaner. The engine shows what was sent, but for fields that the schema says to index and not to store.
func (s *Store) Lossless(ctx context.Context, index, field string) error {
	if field != "" {
		return nil // an update changes no other field
	}
	all, err := decoded[[]keeping](s.api.GetCollections(ctx))
	if err != nil {
		return fmt.Errorf("list collections: %w", err)
	}
	names := []string{index + "."} // what refers to the collection begins with one of these
	if slices.ContainsFunc(all, keeping.refers) {
		known, err := decoded[struct {
			Aliases []struct {
				Name       string
				Collection string `json:"collection_name"`
			}
		}](s.api.GetAliases(ctx))
		if err != nil {
			return fmt.Errorf("list the aliases that others may refer to %s by: %w", index, err)
		}
		for _, alias := range known.Aliases {
			if alias.Collection == index {
				names = append(names, alias.Name+".")
			}
		}
	}
	for _, c := range all {
		for _, f := range c.Fields {
			own := c.Name == index
			refers := func(name string) bool { return strings.HasPrefix(f.Reference, name) }
			switch {
			case own && f.Store != nil && !*f.Store:
				return fmt.Errorf("%w: collection %s: the engine shows nothing of the field %s (store: false)", adapters.ErrLossy, index, f.Name)
			case own && len(f.Embed) > 0:
				return fmt.Errorf("%w: collection %s: the engine would compute the field %s of a document again when it is put back", adapters.ErrLossy, index, f.Name)
			case own && f.Reference != "":
				return fmt.Errorf("%w: collection %s: the engine would not take a document back if what it refers to is gone (field %s)", adapters.ErrLossy, index, f.Name)
			case slices.ContainsFunc(names, refers):
				return fmt.Errorf("%w: collection %s: documents of %s refer to it (field %s), and the engine may delete them too", adapters.ErrLossy, index, c.Name, f.Name)
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
		Type      string
		Index     *bool
		Store     *bool
		Embed     json.RawMessage
		Reference string
	}
}

// refers reports whether documents of the collection refer to others.
func (c keeping) refers() bool {
	for _, f := range c.Fields {
		if f.Reference != "" {
			return true
		}
	}
	return false
}

// Flag implements adapters.Cleaner.
func (s *Store) Flag(ctx context.Context, index, field string) (bool, error) {
	c, err := decoded[keeping](s.api.GetCollection(ctx, index))
	for _, f := range c.Fields {
		if f.Name == field {
			return f.Type == "bool" && (f.Index == nil || *f.Index) && (f.Store == nil || *f.Store), err
		}
	}
	return false, err
}

// Prove implements adapters.Cleaner. It creates the document while it is there, before it deletes it: an engine that has no room, or does not let
// this key create, says so then.
func (s *Store) Prove(ctx context.Context, index, field string, d adapters.Stored, keep func(adapters.Stored) error) (adapters.Result, error) {
	if field != "" {
		return adapters.Patched, nil
	}
	if adapters.Unaddressable(d.ID) {
		return adapters.Changed, nil
	}
	results, err := s.create(ctx, index, []adapters.Stored{d})
	switch {
	case err != nil:
		return adapters.Refused, err
	case results[0] == adapters.Patched: // another deleted it just then
		if _, err := s.Delete(ctx, index, []adapters.Stored{d}, keep); err != nil {
			return adapters.Refused, err
		}
		return adapters.Changed, nil
	case results[0] != adapters.Changed:
		return results[0], nil
	}
	results, err = s.Delete(ctx, index, []adapters.Stored{d}, keep)
	if err != nil || results[0] != adapters.Patched {
		return append(results, adapters.Refused)[0], err
	}
	switch result, err := s.putBack(ctx, index, d); {
	case err != nil:
		return adapters.Refused, err
	case result == adapters.Changed: // another wrote it just then
		return adapters.Changed, nil
	}
	result := adapters.Changed
	err = adapters.ReadByID(ctx, s, index, nil, []string{d.ID}, []string{adapters.AllFields}, func(now adapters.Stored) error {
		if result = adapters.Patched; !sameJSON(now.Source, d.Source) {
			return fmt.Errorf("%w: document %q of %s was %s and is %s", adapters.ErrLossy, d.ID, index, d.Source, now.Source)
		}
		return nil
	})
	return result, err
}

// Delete implements adapters.Cleaner. The engine knows no condition, but it answers the document as it was when it went. If that is not the one
// that was read, it is put back at once, unless there is another one under the id by then. Between the two it is missing.
func (s *Store) Delete(
	ctx context.Context, index string, documents []adapters.Stored, keep func(adapters.Stored) error,
) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(documents))
	for i, d := range documents {
		if adapters.Unaddressable(d.ID) {
			results[i] = adapters.Refused
			continue
		}
		reply, err := readAll(s.api.DeleteDocument(ctx, index, d.ID))
		r, refused := errors.AsType[*refusal](err)
		switch {
		case err == nil && sameJSON(unflattened(reply), d.Source):
			results[i] = adapters.Patched
		case err == nil:
			newer := adapters.Stored{ID: d.ID, Source: unflattened(reply)}
			kept := keep(newer)
			if _, err := s.putBack(ctx, index, newer); err != nil {
				return nil, fmt.Errorf("%w: it changed just before, and was %s", errors.Join(err, kept), reply)
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

const (
	// backTries is how often a document that was deleted is put back where the engine is busy, and backPause the time in between.
	backTries = 60
	backPause = time.Second
)

// putBack creates a document again that was deleted. It fails unless the document, or another one under its id, is there.
func (s *Store) putBack(ctx context.Context, index string, d adapters.Stored) (adapters.Result, error) {
	ctx = context.WithoutCancel(ctx)
	results, err := []adapters.Result{adapters.Busy}, error(nil)
	for try := 0; err == nil && results[0] == adapters.Busy && try < backTries; try++ {
		if try > 0 {
			time.Sleep(backPause)
		}
		results, err = s.create(ctx, index, []adapters.Stored{d})
	}
	if err == nil && results[0] != adapters.Patched && results[0] != adapters.Changed {
		err = errors.New("the engine does not take it back")
	}
	if err != nil {
		return adapters.Refused, fmt.Errorf("document %q of %s was deleted, and could not be put back: %w", d.ID, index, err)
	}
	return results[0], nil
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
func (s *Store) Create(ctx context.Context, index, identity string, documents []adapters.Stored) ([]adapters.Result, error) {
	now, err := s.Identity(ctx, index)
	if err == nil && now != identity {
		err = adapters.ErrRecreated
	}
	if err != nil {
		return nil, fmt.Errorf("put documents back into %s: %w", index, err)
	}
	return s.create(ctx, index, documents)
}

func (s *Store) create(ctx context.Context, index string, documents []adapters.Stored) ([]adapters.Result, error) {
	var lines []byte
	for _, d := range documents {
		lines = append(append(lines, bytes.TrimSpace(d.Source)...), '\n')
	}
	return s.imported(ctx, index, "create", lines, len(documents))
}

// SetField implements adapters.Cleaner. The engine leaves out a field that is null. It knows no condition, but it answers the document as the
// update left it. If any other field is not what was read, the field is set back, unless it was true.
func (s *Store) SetField(
	ctx context.Context, index, field string, documents []adapters.Stored, values [][]byte,
) ([]adapters.Result, error) {
	if len(documents) == 0 {
		return nil, nil
	}
	var results []adapters.Result
	var changed []byte
	line := func(lines []byte, id string, value []byte) []byte {
		if value == nil {
			value = []byte("null")
		}
		return appendUpdate(lines, id, append(append(jsonedit.AppendString(nil, field), ':'), value...))
	}
	var lines []byte
	for i, d := range documents {
		lines = line(lines, d.ID, values[i])
	}
	rest := func(source []byte) []byte {
		source, _ = jsonedit.Cut(source, func(key string) bool { return key == field || rule.Our(key) })
		return source
	}
	err := s.update(ctx, index, lines, func(reply []byte) error {
		if len(results) == len(documents) {
			return errors.New("more replies than documents")
		}
		d := documents[len(results)]
		document, result, err := updated(reply)
		members, _ := jsonedit.Members(d.Source)
		was := jsonedit.Get(members, field)
		if document != nil && string(was) != "true" && !sameJSON(rest(unflattened(document)), rest(d.Source)) {
			result = adapters.Changed
			changed = line(changed, d.ID, was)
		}
		results = append(results, result)
		return err
	})
	if r, refused := errors.AsType[*refusal](err); refused && busy(r.code) {
		return slices.Repeat([]adapters.Result{adapters.Busy}, len(documents)), nil
	}
	if err == nil && len(results) < len(documents) {
		err = fmt.Errorf("update documents of %s: fewer replies than documents", index)
	}
	if len(changed) > 0 {
		err = errors.Join(err, s.update(context.WithoutCancel(ctx), index, changed, func(reply []byte) error {
			if _, result, err := updated(reply); err != nil || result != adapters.Patched && result != adapters.Gone {
				return errors.Join(err, fmt.Errorf("a document of %s changed when %s was set, and the engine does not set that back: %.200s", index, field, reply))
			}
			return nil
		}))
	}
	return results, err
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
