package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

const (
	// patchBytes is how large one bulk of patches grows.
	patchBytes = 5 << 20
	// atOnce is how many documents that go by themselves are under way at a time.
	atOnce = 8
)

// version is the state of a document that a patch must meet.
type version struct {
	seqNo, primaryTerm int64
	// number is the document's version; known of those that were read by their ids alone.
	number  int64
	routing string
	// uuid is the index's.
	uuid string
}

// Patch implements adapters.Store. Documents go in bulks, each in one line; those that were stored in several lines by themselves, so
// that these stay.
func (s *Store) Patch(ctx context.Context, index string, _ *adapters.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(patches))
	if len(patches) == 0 {
		return results, nil
	}
	for _, p := range patches {
		if v, ok := p.Version.(version); !ok || v.uuid == "" {
			return nil, fmt.Errorf("patch %s: document %s was not read from this store, or not in whole", index, p.ID)
		} else if first, _ := patches[0].Version.(version); v.uuid != first.uuid {
			return nil, fmt.Errorf("patch %s: %w", index, adapters.ErrRecreated)
		}
	}
	first, _ := patches[0].Version.(version)
	t, err := s.destination(ctx, index, first.uuid)
	if err == nil {
		err = s.patch(ctx, t, patches, results)
	}
	if errors.Is(err, adapters.ErrBusy) && t == nil {
		for i := range results {
			results[i] = adapters.Busy
		}
		return results, nil
	}
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", index, err)
	}
	return results, nil
}

func (s *Store) patch(ctx context.Context, t *destination, patches []adapters.Patch, results []adapters.Result) error {
	done := 0
	t.mu.Lock()
	if !t.compared {
		var err error
		if done, err = s.patchFirst(ctx, t, patches, results); err != nil {
			t.mu.Unlock()
			return err
		}
	}
	t.mu.Unlock()
	b := patchBulk{s: s, t: t, results: results}
	var alone []int
	for i := done; i < len(patches); i++ {
		if t.alone(patches[i]) {
			alone = append(alone, i)
			continue
		}
		err := b.add(i, patches[i])
		if err == nil && b.body.Len() >= patchBytes {
			err = b.send(ctx)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(b.send(ctx), s.patchAlone(ctx, t, patches, alone, results))
}

// alone reports whether a document goes by itself: in a bulk it would have to be in one line.
func (t *destination) alone(p adapters.Patch) bool {
	return !t.update && bytes.IndexByte(p.Source, '\n') >= 0
}

// patchAlone patches some documents one by one, several at a time.
func (s *Store) patchAlone(ctx context.Context, t *destination, patches []adapters.Patch, which []int, results []adapters.Result) error {
	errs := make([]error, len(which))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n, i := range which {
		places <- struct{}{}
		all.Go(func() {
			results[i], _, errs[n] = s.patchOne(ctx, t, patches[i])
			<-places
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// patchOne writes a document by itself, with each byte of it.
func (s *Store) patchOne(ctx context.Context, t *destination, p adapters.Patch) (result adapters.Result, seqNo int64, err error) {
	document, err := adapters.WithOurs(p.Source, p.Ours)
	if err != nil {
		return 0, 0, fmt.Errorf("document %s: %w", p.ID, err)
	}
	v, _ := p.Version.(version)
	number, term := int(v.seqNo), int(v.primaryTerm)
	var said struct {
		SeqNo int64 `json:"_seq_no"`
	}
	err = s.write(ctx, t, func() (lost bool, err error) {
		pinned := t.alias != ""
		err = s.do(ctx, esapi.IndexRequest{
			Index: url.PathEscape(t.name()), DocumentID: url.PathEscape(p.ID), Routing: v.routing, Pipeline: "_none",
			IfSeqNo: &number, IfPrimaryTerm: &term, RequireAlias: &pinned, Body: bytes.NewReader(document),
		}, &said)
		if lostBy(err) {
			return true, nil
		}
		refused, is := errors.AsType[*refusal](err)
		if is && refused.status != http.StatusUnauthorized && refused.status != http.StatusForbidden {
			result = resultOf(refused.status)
			return false, nil
		}
		return false, err
	})
	return result, said.SeqNo, err
}

// patchBulk is a bulk of patches in the making.
type patchBulk struct {
	s       *Store
	t       *destination
	results []adapters.Result
	body    bytes.Buffer
	which   []int // the patches in it
	seqNo   int64 // of the last document that was written
}

// add puts a patch into the bulk.
func (b *patchBulk) add(which int, p adapters.Patch) error {
	v, _ := p.Version.(version)
	var document []byte
	var err error
	if b.t.update && !survives(p.Source) {
		b.results[which] = adapters.Refused
		return nil
	}
	line := append(make([]byte, 0, 160), `{"index":{"pipeline":"_none","_id":`...)
	if b.t.update {
		line = append(line[:0], `{"update":{"_id":`...)
	}
	line = adapters.AppendString(line, p.ID)
	line = strconv.AppendInt(append(line, `,"if_seq_no":`...), v.seqNo, 10)
	line = strconv.AppendInt(append(line, `,"if_primary_term":`...), v.primaryTerm, 10)
	if v.routing != "" {
		line = adapters.AppendString(append(line, `,"routing":`...), v.routing)
	}
	if b.t.update {
		document = merged(p, !b.t.embeds)
	} else if document, err = adapters.WithOurs(p.Source, p.Ours); err != nil {
		return fmt.Errorf("document %s: %w", p.ID, err)
	}
	b.which = append(b.which, which)
	b.body.Write(append(line, "}}\n"...))
	b.body.Write(document)
	b.body.WriteByte('\n')
	return nil
}

// merged returns the update that merges our fields into a document: fields that are to go become null. A
// script removes them where all of them are to go and scripts are allowed.
func merged(p adapters.Patch, script bool) []byte {
	if script && p.Equal(adapters.Ours{}) {
		script := []byte(`{"script":{"lang":"painless","source":"for (f in params.f) { ctx._source.remove(f) }","params":{"f":`)
		return append(append(script, stringsOf(ourFields)...), `}}}`...)
	}
	stands, _ := adapters.Members(p.Source) // what is no document has none of them
	fields := p.Fields(false)
	set, _ := adapters.Members(append(append([]byte{'{'}, fields...), '}'))
	for _, name := range ourFields {
		if adapters.Get(stands, name) != nil && adapters.Get(set, name) == nil {
			fields = append(append(append(fields, `,"`...), name...), `":null`...)
		}
	}
	return append(append([]byte(`{"doc":{`), bytes.TrimPrefix(fields, []byte(","))...), `}}`...)
}

// send sends the bulk, if there is one.
func (b *patchBulk) send(ctx context.Context) error {
	if len(b.which) == 0 {
		return nil
	}
	which := b.which
	b.which = nil
	defer b.body.Reset()
	err := b.s.write(ctx, b.t, func() (lost bool, err error) {
		pinned := b.t.alias != ""
		r := esapi.BulkRequest{
			Index: url.PathEscape(b.t.name()), RequireAlias: &pinned, Body: bytes.NewReader(b.body.Bytes()),
			FilterPath: []string{"items.*.status", "items.*.error.type", "items.*._seq_no"},
		}
		_, reply, err := b.s.body(ctx, r, 0)
		if lostBy(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		return b.take(reply, which)
	})
	if errors.Is(err, adapters.ErrBusy) {
		for _, i := range which {
			b.results[i] = adapters.Busy
		}
		return nil
	}
	return err
}

// take reads what became of the documents, and reports whether there is no index of that name.
func (b *patchBulk) take(reply []byte, which []int) (lost bool, err error) {
	var said struct {
		Items []map[string]struct {
			Status int
			SeqNo  int64 `json:"_seq_no"`
			Error  struct{ Type string }
		}
	}
	if err := json.Unmarshal(reply, &said); err != nil {
		return false, err
	}
	if len(said.Items) != len(which) {
		return false, fmt.Errorf("%d results for %d documents", len(said.Items), len(which))
	}
	for n, item := range said.Items {
		for _, outcome := range item {
			if outcome.Error.Type == noIndex {
				return true, nil
			}
			b.results[which[n]], b.seqNo = resultOf(outcome.Status), outcome.SeqNo
		}
	}
	return false, nil
}

// resultOf returns what a patch's status says.
func resultOf(status int) adapters.Result {
	switch {
	case status >= 200 && status < 300:
		return adapters.Patched
	case status == http.StatusConflict:
		return adapters.Changed
	case status == http.StatusNotFound:
		return adapters.Gone
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return adapters.Busy
	}
	return adapters.Refused
}

// survives reports whether a document's numbers are the same after an update, by which the engine writes the document anew: it reads a
// number with a fraction or an exponent as 64 bits, so one with more digits would lose some of them.
func survives(source []byte) bool {
	for at := 0; at < len(source); {
		switch c := source[at]; {
		case c == '"':
			if at = afterString(source, at); at < 0 {
				return false
			}
		case c == '-' || c >= '0' && c <= '9':
			end := at
			for end < len(source) && !ends[source[end]] {
				end++
			}
			if !fitsDouble(string(source[at:end])) {
				return false
			}
			at = end
		default:
			at++
		}
	}
	return true
}

// fitsDouble reports whether a number in JSON is an integer, or has the value of its nearest 64-bit number in its shortest form.
func fitsDouble(number string) bool {
	if number == "-0" {
		return false
	}
	if !strings.ContainsAny(number, ".eE") {
		return true
	}
	nearest, err := strconv.ParseFloat(number, 64)
	return err == nil && sameNumber(number, strconv.FormatFloat(nearest, 'g', -1, 64))
}
