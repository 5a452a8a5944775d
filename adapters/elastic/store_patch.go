package elastic

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"golang.org/x/sync/errgroup"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
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
func (s *Store) Patch(ctx context.Context, index string, _ *rule.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
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
		err = s.patchAll(ctx, t, patches, results)
	}
	if err != nil {
		return nil, fmt.Errorf("patch %s: %w", index, err)
	}
	return results, nil
}

func (s *Store) patchAll(ctx context.Context, t *destination, patches []adapters.Patch, results []adapters.Result) error {
	done, err := s.writeAndCompare(ctx, t, patches, results)
	if err != nil {
		return err
	}
	b := patchBulk{s: s, t: t, results: results}
	var alone errgroup.Group
	alone.SetLimit(atOnce)
	for i := done; i < len(patches) && err == nil; i++ {
		if t.alone(patches[i]) {
			alone.Go(func() (err error) {
				results[i], _, err = s.patchOne(ctx, t, patches[i])
				return err
			})
			continue
		}
		if err = b.add(i, patches[i]); err == nil && b.body.Len() >= patchBytes {
			err = b.send(ctx)
		}
	}
	if err == nil {
		err = b.send(ctx)
	}
	return errors.Join(err, alone.Wait())
}

// alone reports whether a document goes by itself: in a bulk it would have to be in one line.
func (t *destination) alone(p adapters.Patch) bool {
	return !t.update && bytes.IndexByte(p.Source, '\n') >= 0
}

// patchOne writes a document by itself, with each byte of it.
func (s *Store) patchOne(ctx context.Context, t *destination, p adapters.Patch) (result adapters.Result, seqNo int64, err error) {
	document, err := rule.WithOurs(p.Source, p.Ours)
	if err != nil {
		return 0, 0, fmt.Errorf("document %s: %w", p.ID, err)
	}
	v, _ := p.Version.(version)
	number, term := int(v.seqNo), int(v.primaryTerm)
	var said struct {
		SeqNo int64 `json:"_seq_no"`
	}
	pinned := t.alias != ""
	err = s.write(ctx, t, func() error {
		err := s.do(ctx, esapi.IndexRequest{
			Index: url.PathEscape(t.name()), DocumentID: url.PathEscape(p.ID), Routing: v.routing, Pipeline: "_none",
			IfSeqNo: &number, IfPrimaryTerm: &term, RequireAlias: &pinned, Body: bytes.NewReader(document),
		}, &said)
		switch status := adapters.StatusOf(err); {
		case status == 0, status == http.StatusUnauthorized, status == http.StatusForbidden, lostBy(err):
			return err
		default:
			result = resultOf(status)
			return nil
		}
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
	line = jsonedit.AppendString(line, p.ID)
	line = strconv.AppendInt(append(line, `,"if_seq_no":`...), v.seqNo, 10)
	line = strconv.AppendInt(append(line, `,"if_primary_term":`...), v.primaryTerm, 10)
	if v.routing != "" {
		line = jsonedit.AppendString(append(line, `,"routing":`...), v.routing)
	}
	if b.t.update {
		document = merged(p, !b.t.embeds)
	} else if document, err = rule.WithOurs(p.Source, p.Ours); err != nil {
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
	if script && p.Equal(rule.Ours{}) {
		script := []byte(`{"script":{"lang":"painless","source":"for (f in params.f) { ctx._source.remove(f) }","params":{"f":`)
		return append(append(script, stringsOf(ourFields)...), `}}}`...)
	}
	stored, _ := jsonedit.Members(p.Source) // what is no document has no members
	fields := p.Fields(false)
	set, _ := jsonedit.Members(append(append([]byte{'{'}, fields...), '}'))
	for _, name := range ourFields {
		if jsonedit.Get(stored, name) != nil && jsonedit.Get(set, name) == nil {
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
	pinned := b.t.alias != ""
	err := b.s.write(ctx, b.t, func() error {
		r := esapi.BulkRequest{
			Index: url.PathEscape(b.t.name()), RequireAlias: &pinned, Body: bytes.NewReader(b.body.Bytes()),
			FilterPath: []string{"items.*.status", "items.*.error.type", "items.*._seq_no"},
		}
		var reply bulkOutcome
		if err := b.s.do(ctx, r, &reply); err != nil {
			return err
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

// bulkOutcome is what the engine says of each document of a bulk.
type bulkOutcome struct {
	Items []map[string]struct {
		Status int
		SeqNo  int64 `json:"_seq_no"`
		Error  struct{ Type, Reason string }
	}
}

// take takes the results of the documents. A missing index is an error.
func (b *patchBulk) take(reply bulkOutcome, which []int) error {
	if len(reply.Items) != len(which) {
		return fmt.Errorf("%d results for %d documents", len(reply.Items), len(which))
	}
	for n, item := range reply.Items {
		for _, outcome := range item {
			if outcome.Error.Type == noIndex {
				return &refusal{status: http.StatusNotFound, reason: noIndex}
			}
			b.results[which[n]], b.seqNo = resultOf(outcome.Status), outcome.SeqNo
		}
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

// survives reports whether a document's numbers are the same after an update, by which the engine writes the document anew: it reads a
// number with a fraction or an exponent as 64 bits, so one with more digits would lose some of them.
func survives(source []byte) bool {
	inString := false
	for at := 0; at < len(source); at++ {
		switch c := source[at]; {
		case inString && c == '\\':
			at++
		case c == '"':
			inString = !inString
		case !inString && (c == '-' || c >= '0' && c <= '9'):
			number := source[at:]
			number = number[:len(number)-len(bytes.TrimLeft(number, "+-.eE0123456789"))]
			if !fitsDouble(string(number)) {
				return false
			}
			at += len(number) - 1
		}
	}
	return !inString
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

// destination is an index that documents are written back to, known by its UUID.
//
// Between a document's reading and its writing the index can be deleted and created again. A load that is always the same gives the new
// documents the sequence numbers of the old ones, so these alone do not keep a job from writing yesterday's text over today's; and a
// bulk to an index that is gone creates it anew. Therefore writes go through a hidden alias of our own with require_alias: the engine
// drops the alias with the index, and refuses a write to an alias that is not there.
type destination struct {
	index, uuid string
	// alias is empty where there can be none: an index behind a data stream takes no aliases, and credentials may forbid it. Then the UUID
	// is asked for before each request, and documents are changed by updates, which never replace a text.
	alias  string
	update bool
	// embeds says that the engine refuses scripts, since it computes embeddings of the documents.
	embeds bool
	// vectors says that the engine shows vectors only where they are asked for.
	vectors bool

	mu sync.Mutex // locked until the first document is compared
	// compared says that one document was written and found unchanged but for our fields.
	compared bool
}

// destinations are the destinations of one engine by UUID.
type destinations struct {
	mu  sync.Mutex
	all map[string]*destination
}

// aliasOf returns the name of our alias of the index with a UUID.
func aliasOf(uuid string) string { return "neardup-writes-" + hex.EncodeToString([]byte(uuid)) }

// destination returns the index that documents were read from, ready to be written to, or says why it can't be written to.
func (s *Store) destination(ctx context.Context, index, uuid string) (*destination, error) {
	known := &s.shared.destinations
	known.mu.Lock()
	defer known.mu.Unlock()
	if t := known.all[uuid]; t != nil && t.index == index {
		return t, nil
	}
	made, err := s.made(ctx, index)
	if err == nil && made.uuid != uuid || missing(err) {
		return nil, adapters.ErrRecreated
	}
	if err == nil {
		err = made.writable()
	}
	if err != nil {
		return nil, err
	}
	t := &destination{index: index, uuid: uuid, alias: aliasOf(uuid), update: made.update, embeds: made.embeds, vectors: made.vectors}
	added, err := s.pin(ctx, t)
	if err != nil {
		return nil, err
	}
	if !added {
		t.alias, t.update = "", true
	}
	known.all[uuid] = t
	return t, nil
}

// pin adds the alias to the index, unless the engine refuses. Only then is it asked whether this is still the same index.
func (s *Store) pin(ctx context.Context, t *destination) (added bool, err error) {
	err = s.do(ctx, aliasAction("add", t.index, t.alias, `,"is_hidden":true`), nil)
	switch {
	case missing(err):
		return false, adapters.ErrRecreated
	case errors.Is(err, adapters.ErrBusy) || err != nil && !refusedBy(err):
		return false, err
	}
	added = err == nil
	err = s.same(ctx, t)
	if errors.Is(err, adapters.ErrRecreated) && added {
		s.tidyUp(ctx, aliasAction("remove", t.index, t.alias, ""))
	}
	return added, err
}

// same fails with adapters.ErrRecreated if the index is not the one that documents were read from.
func (s *Store) same(ctx context.Context, t *destination) error {
	uuid, err := s.Identity(ctx, t.index)
	if err == nil && uuid != t.uuid || missing(err) {
		return adapters.ErrRecreated
	}
	return err
}

func aliasAction(action, index, alias, more string) raw {
	body := fmt.Sprintf(`{"actions":[{%q:{"index":%s,"alias":%q%s}}]}`, action, jsonedit.AppendString(nil, index), alias, more)
	return raw{"POST", "/_aliases", "", body}
}

// name is what the destination is called in a request that writes to it.
func (t *destination) name() string {
	if t.alias != "" {
		return t.alias
	}
	return t.index
}

// write sends a request that writes to the destination, and again where another process has removed the alias when it was done.
func (s *Store) write(ctx context.Context, t *destination, send func() error) error {
	for range aliasTries {
		if t.alias == "" {
			if err := s.same(ctx, t); err != nil {
				return err
			}
		}
		if err := send(); !lostBy(err) {
			return err
		}
		if t.alias == "" {
			return adapters.ErrRecreated
		}
		if added, err := s.pin(ctx, t); err != nil {
			return err
		} else if !added { // the request may hold whole documents, which go through the alias alone
			return fmt.Errorf("the alias %s is gone, and the engine refuses to add it again", t.alias)
		}
	}
	return fmt.Errorf("the alias %s is removed again and again: is another job at work on %s?", t.alias, t.index)
}

// aliasTries is how often a request is sent whose alias is gone each time.
const aliasTries = 5

// noIndex is the type of the error by which the engines say that there is no index of a name.
const noIndex = "index_not_found_exception"

// lostBy reports whether err says that there is no index, or alias, of the name that was written to.
func lostBy(err error) bool { return missing(err) && says(err, noIndex) }

// Release implements adapters.Store.
func (s *Store) Release(ctx context.Context, index string) {
	known := &s.shared.destinations
	known.mu.Lock()
	defer known.mu.Unlock()
	for uuid, t := range known.all {
		if t.index == index {
			delete(known.all, uuid)
			if t.alias != "" {
				s.tidyUp(ctx, aliasAction("remove", index, t.alias, ""))
			}
		}
	}
}
