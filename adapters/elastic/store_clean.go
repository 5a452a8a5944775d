package elastic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// Lossless implements adapters.Cleaner.
func (s *Store) Lossless(ctx context.Context, index, field string) error {
	lossy, err := s.lossy(ctx, index, field)
	switch {
	case err != nil:
		return fmt.Errorf("index %s: %w", index, err)
	case lossy != nil:
		return fmt.Errorf("%w: index %s: %w", adapters.ErrLossy, index, lossy)
	}
	return nil
}

// Flag implements adapters.Cleaner. A runtime field would answer filters in place of what documents hold.
func (s *Store) Flag(ctx context.Context, index, field string) (bool, error) {
	is, err := s.shape(ctx, index)
	declared := is.Mappings.Properties[field]
	_, runtime := is.Mappings.Runtime[field]
	return declared.Type == "boolean" && (declared.Index == nil || *declared.Index) && !runtime, err
}

// lossy returns what would be lost, and an error if it could not be found out, or nobody can know it.
func (s *Store) lossy(ctx context.Context, index, field string) (lossy, err error) {
	is, err := s.shape(ctx, index)
	if err != nil {
		return nil, err
	}
	traits, err := traitsOf(is)
	if err != nil {
		return nil, err
	}
	switch lossy = traits.altered(); {
	case lossy != nil || field != "":
	case is.DataStream != "":
		lossy = fmt.Errorf("it is behind the data stream %s, which takes new documents in its newest index alone", is.DataStream)
	case traits.joins != "":
		lossy = fmt.Errorf("the children of a deleted document would be left alone (join field %s)", traits.joins)
	case traits.update && traits.embeds:
		lossy = errors.New("the engine would compute the embeddings of a document again when it is put back")
	case traits.update:
		lossy = fmt.Errorf("a final pipeline (%s) would run again over each document that is put back", finalSetting)
	}
	partly, err := s.curtailed(ctx, index)
	return lossy, cmp.Or(err, partly) // nobody knows what such credentials do not see
}

// curtailed says that the credentials may not see all fields of all documents. Then both engines refuse updates, before they see that this one
// is for no alias.
func (s *Store) curtailed(ctx context.Context, index string) (lossy, err error) {
	err = s.unauthorized(ctx, url.PathEscape(index))
	if err != nil && slices.ContainsFunc([]string{"level security", "FLS", "DLS"}, func(words string) bool { return strings.Contains(err.Error(), words) }) {
		return fmt.Errorf("these credentials may see only a part of it: use some that may see all: %w", err), nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out whether these credentials may see all fields: %w", err)
	}
	return nil, nil
}

const (
	// backTries is how often a document that was deleted is put back where the engine is busy, and backPause the time in between.
	backTries = 60
	backPause = time.Second
)

// Prove implements adapters.Cleaner.
func (s *Store) Prove(ctx context.Context, index, field string, d adapters.Stored, keep func(adapters.Stored) error) (adapters.Result, error) {
	if field != "" {
		results, err := s.Patch(ctx, index, nil, []adapters.Stored{d.With(rule.OursOf(d.Source))})
		if err != nil {
			return adapters.Refused, err
		}
		return results[0], nil
	}
	if adapters.Unaddressable(d.ID) {
		return adapters.Changed, nil
	}
	t, err := s.destinationOf(ctx, index, []adapters.Stored{d})
	if err != nil {
		return adapters.Refused, err
	}
	before, err := s.view(ctx, index, d.ID, d.Routing, t.vectors)
	if err != nil {
		return adapters.Refused, err
	}
	if before.seqNo != versionOf(d).seqNo {
		return adapters.Changed, nil
	}
	results, err := s.Delete(ctx, index, []adapters.Stored{d}, keep)
	if err != nil || results[0] != adapters.Patched {
		return append(results, adapters.Refused)[0], err
	}
	result, seqNo := adapters.Busy, int64(0)
	again := d
	again.Version = nil
	for try := 0; result == adapters.Busy && try < backTries && err == nil; try++ {
		if try > 0 {
			time.Sleep(backPause)
		}
		result, seqNo, err = s.writeOne(ctx, t, again, d.Source)
	}
	switch {
	case err != nil:
		return adapters.Refused, fmt.Errorf("document %q of %s was deleted, and could not be put back: %w", d.ID, index, err)
	case result == adapters.Changed: // another wrote it just then
		return adapters.Changed, nil
	case result != adapters.Patched:
		return adapters.Refused, fmt.Errorf("document %q of %s was deleted, and the engine does not take it back", d.ID, index)
	}
	after, err := s.view(ctx, index, d.ID, d.Routing, t.vectors)
	if err != nil {
		return adapters.Refused, err
	}
	if after.seqNo != seqNo {
		return adapters.Changed, nil
	}
	if path, was, is := before.difference(after); path != "" {
		return adapters.Refused, fmt.Errorf("%w: document %q of %s was put back, and %s was %s and is %s", adapters.ErrLossy, d.ID, index, path, was, is)
	}
	return adapters.Patched, nil
}

// Delete implements adapters.Cleaner. It refuses documents that the engine would not take back.
func (s *Store) Delete(ctx context.Context, index string, documents []adapters.Stored, _ func(adapters.Stored) error) ([]adapters.Result, error) {
	t, err := s.destinationOf(ctx, index, documents)
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	results, err := s.takenBack(ctx, t, documents)
	if err != nil {
		return nil, err
	}
	var body []byte
	var sent []int
	for i, d := range documents {
		if results[i] != adapters.Patched {
			continue
		}
		body = appendCondition(jsonedit.AppendString(append(body, `{"delete":{"_id":`...), d.ID), d)
		body, sent = append(body, "}}\n"...), append(sent, i)
	}
	some, err := s.results(ctx, t, body, len(sent))
	if err != nil {
		return nil, err
	}
	for n, i := range sent {
		results[i] = some[n]
	}
	return results, nil
}

// takenBack says by Patched which documents the engine would take. It sends each under a condition that no document meets: the engine reads a
// document by the mapping before it looks at the condition. No document is written, but the mapping may take up a field that it has lost.
func (s *Store) takenBack(ctx context.Context, t *destination, documents []adapters.Stored) ([]adapters.Result, error) {
	none := version{uuid: t.uuid, primaryTerm: math.MaxInt64}
	documents = slices.Clone(documents)
	for i := range documents {
		documents[i].Version = nil
	}
	results, err := s.writeEach(ctx, t, documents, func(d adapters.Stored, _ int) ([]byte, []byte, error) {
		d.Version = none
		action := appendCondition(jsonedit.AppendString([]byte(`{"index":{"pipeline":"_none","_id":`), d.ID), d)
		var line bytes.Buffer
		err := json.Compact(&line, d.Source)
		return append(action, "}}"...), line.Bytes(), err
	})
	full := false // the disk is, so the index takes deletions alone: the engine says that as if it were busy
	if err == nil && slices.Contains(results, adapters.Busy) {
		var all map[string]map[string]string
		all, err = s.settings(ctx, esapi.IndicesGetSettingsRequest{Index: []string{url.PathEscape(t.index)}}, fullSetting)
		full = all[t.index][fullSetting] == "true"
	}
	for i, result := range results {
		switch {
		case adapters.Unaddressable(documents[i].ID): // Create may need a path
			results[i] = adapters.Refused
		case result == adapters.Changed:
			results[i] = adapters.Patched
		case result != adapters.Busy || full:
			results[i] = adapters.Refused
		}
	}
	return results, err
}

// fullSetting is how the engine blocks an index whose disk is full.
const fullSetting = "index.blocks.read_only_allow_delete"

// Create implements adapters.Cleaner.
func (s *Store) Create(ctx context.Context, index, identity string, documents []adapters.Stored) ([]adapters.Result, error) {
	t, err := s.openDestination(ctx, index, identity)
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

// SetField implements adapters.Cleaner. If only the engine's own update can do it, a field to remove becomes null: removing it takes a script. The
// cluster may forbid scripts, and the engine refuses them for embeddings.
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
