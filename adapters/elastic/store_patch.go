package elastic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
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
	// merge says that our fields have to be merged in by an update rather than written with the whole document.
	merge bool
}

// Patch implements adapters.Store. Documents go in bulks, each in one line; those that were stored in several lines by themselves, so
// that these stay.
func (s *Store) Patch(ctx context.Context, index string, _ *adapters.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(patches))
	b := patchBulk{s: s, index: index, results: results}
	var alone []int
	err := error(nil)
	for i, p := range patches {
		v, ok := p.Version.(version)
		switch {
		case !ok:
			err = errors.New("a patch of a document that was not read from this store")
		case !v.merge && bytes.IndexByte(p.Source, '\n') >= 0:
			alone = append(alone, i)
		default:
			err = b.add(i, p, v)
		}
		if err == nil && b.body.Len() >= patchBytes {
			err = b.send(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("patch %s: %w", index, err)
		}
	}
	if err := errors.Join(b.send(ctx), s.patchAlone(ctx, index, patches, alone, results)); err != nil {
		return nil, fmt.Errorf("patch %s: %w", index, err)
	}
	return results, nil
}

// patchAlone patches some documents one by one, several at a time.
func (s *Store) patchAlone(ctx context.Context, index string, patches []adapters.Patch, which []int, results []adapters.Result) error {
	errs := make([]error, len(which))
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for n, i := range which {
		places <- struct{}{}
		all.Go(func() {
			results[i], errs[n] = s.patchOne(ctx, index, patches[i])
			<-places
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// patchOne writes a document by itself, with each byte of it.
func (s *Store) patchOne(ctx context.Context, index string, p adapters.Patch) (adapters.Result, error) {
	document, err := adapters.WithOurs(p.Source, p.Ours)
	if err != nil {
		return 0, fmt.Errorf("document %s: %w", p.ID, err)
	}
	v, _ := p.Version.(version)
	number, term := int(v.seqNo), int(v.primaryTerm)
	err = s.do(ctx, esapi.IndexRequest{
		Index: url.PathEscape(index), DocumentID: url.PathEscape(p.ID), Routing: v.routing, Pipeline: "_none",
		IfSeqNo: &number, IfPrimaryTerm: &term, Body: bytes.NewReader(document),
	}, nil)
	refused, is := errors.AsType[*refusal](err)
	if is && refused.status != http.StatusUnauthorized && refused.status != http.StatusForbidden {
		return resultOf(refused.status), nil
	}
	return adapters.Patched, err
}

// patchBulk is a bulk of patches in the making.
type patchBulk struct {
	s       *Store
	index   string
	results []adapters.Result
	body    bytes.Buffer
	which   []int // the patches in it
}

// add puts a patch into the bulk.
func (b *patchBulk) add(which int, p adapters.Patch, v version) error {
	var document []byte
	var err error
	line := append(make([]byte, 0, 160), `{"index":{"pipeline":"_none","_id":`...)
	if v.merge {
		line = append(line[:0], `{"update":{"_id":`...)
	}
	line = adapters.AppendString(line, p.ID)
	line = strconv.AppendInt(append(line, `,"if_seq_no":`...), v.seqNo, 10)
	line = strconv.AppendInt(append(line, `,"if_primary_term":`...), v.primaryTerm, 10)
	if v.routing != "" {
		line = adapters.AppendString(append(line, `,"routing":`...), v.routing)
	}
	if v.merge {
		document = merged(p)
	} else if document, err = adapters.WithOurs(p.Source, p.Ours); err != nil {
		return fmt.Errorf("document %s: %w", p.ID, err)
	}
	b.which = append(b.which, which)
	b.body.Write(append(line, "}}\n"...))
	b.body.Write(document)
	b.body.WriteByte('\n')
	return nil
}

// merged returns the update that merges our fields into a document: those that stand there and are to be taken out leave null; a
// document of which nothing of ours is to be left is rid of them by a script.
func merged(p adapters.Patch) []byte {
	if p.Equal(adapters.Ours{}) {
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
	return append(append([]byte(`{"doc":{`), fields...), `}}`...)
}

// send sends the bulk, if there is one.
func (b *patchBulk) send(ctx context.Context) error {
	if len(b.which) == 0 {
		return nil
	}
	r := esapi.BulkRequest{
		Index: url.PathEscape(b.index), Body: bytes.NewReader(b.body.Bytes()),
		FilterPath: []string{"items.*.status"},
	}
	_, reply, err := b.s.body(ctx, r, 0)
	which := b.which
	b.which = nil
	b.body.Reset()
	if errors.Is(err, adapters.ErrBusy) {
		for _, i := range which {
			b.results[i] = adapters.Busy
		}
		return nil
	}
	if err != nil {
		return err
	}
	n := 0
	members(reply, func(key string, value []byte) {
		elements(value, func(item []byte) {
			members(item, func(_ string, outcome []byte) {
				members(outcome, func(_ string, status []byte) {
					if n < len(which) {
						b.results[which[n]] = resultOf(int(number(status)))
					}
					n++
				})
			})
		})
	})
	if n != len(which) {
		return fmt.Errorf("%d results for %d documents", n, len(which))
	}
	return nil
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
