package elastic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
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
	// atOnce is how many requests are under way at a time.
	atOnce = 8
	// aliasTries is how often a request is sent whose alias is gone each time.
	aliasTries = 5
	// noIndex is the type of the error by which the engines say that there is no index of a name.
	noIndex = "index_not_found_exception"
)

// Patch implements adapters.Store. In a bulk each document has to be in one line. One that was stored in several goes by itself, so that these
// stay.
func (s *Store) Patch(ctx context.Context, index string, _ *rule.Rule, patches []adapters.Stored) ([]adapters.Result, error) {
	if len(patches) == 0 {
		return nil, nil
	}
	results, done := make([]adapters.Result, len(patches)), 0
	if slices.ContainsFunc(patches, func(p adapters.Stored) bool { return p.Wanted == nil }) {
		return nil, adapters.ErrUnwanted
	}
	var t *destination
	uuid, err := uuidOf(patches)
	if err == nil {
		t, err = s.openDestination(ctx, index, uuid)
	}
	if err == nil {
		err = t.unwritable
	}
	if err == nil { // the first document of an index goes alone, and is compared with what it was
		done, err = s.writeAndCompare(ctx, t, patches, results)
	}
	requests, ctx := errgroup.WithContext(ctx)
	requests.SetLimit(atOnce)
	for done < len(patches) && err == nil {
		from, n := done, t.inOneRequest(patches[done:])
		requests.Go(func() error {
			_, err := s.send(ctx, t, patches[from:from+n], results[from:from+n])
			return err
		})
		done += n
	}
	if err = cmp.Or(err, requests.Wait()); err != nil {
		return nil, fmt.Errorf("patch %s: %w", index, err)
	}
	return results, nil
}

// uuidOf returns the UUID of the index that the documents were read from. It fails if that was not always the same one.
func uuidOf(documents []adapters.Stored) (uuid string, err error) {
	for _, p := range documents {
		v, ok := p.Version.(version)
		if !ok || v.uuid == "" {
			return "", fmt.Errorf("document %s was not read from this store, or not in whole", p.ID)
		}
		if uuid = cmp.Or(uuid, v.uuid); uuid != v.uuid {
			return "", adapters.ErrRecreated
		}
	}
	return uuid, nil
}

// destination is an index that documents are written back to, known by its UUID.
//
// Between a document's reading and its writing the index can be deleted and created again. A load that is always the same gives the new
// documents the sequence numbers of the old ones, so these alone do not keep a job from writing yesterday's text over today's; and a
// bulk to an index that is gone creates it again. Therefore writes go through a hidden alias of our own with require_alias: the engine
// drops the alias with the index, and refuses a write to an alias that is not there.
type destination struct {
	index, uuid string
	// update says that documents are changed by the engine's own update, embeds that the engine computes embeddings of texts, vectors that it
	// shows vectors only where they are asked for.
	update, embeds, vectors bool
	// unwritable says why no document can be written again and be what it was; nil if each can.
	unwritable error
	// alias is empty where there can be none: an index of a data stream takes no aliases, and credentials may forbid it. Then each request
	// asks for the UUID first, and documents are changed by updates, which never replace a text.
	alias string

	mu sync.Mutex // locked while the first document is compared
	// compared says that one document was written and found unchanged but for our fields. Until then no other one is written.
	compared bool
}

// openDestination adds our alias to the index that documents were read from, unless an earlier call did.
func (s *Store) openDestination(ctx context.Context, index, uuid string) (*destination, error) {
	s.shared.opening.Lock()
	defer s.shared.opening.Unlock()
	if t := s.shared.destinations[uuid]; t != nil && t.index == index {
		return t, nil
	}
	traits, err := s.traitsOf(ctx, index)
	if err == nil && traits.uuid != uuid || missing(err) {
		return nil, adapters.ErrRecreated
	}
	if err != nil {
		return nil, err
	}
	t := &destination{
		index: index, uuid: uuid, alias: aliasOf(uuid), update: traits.update, embeds: traits.embeds, vectors: traits.vectors,
		unwritable: traits.writable(),
	}
	if lossy, _ := s.curtailed(ctx, index); t.unwritable == nil { // another error is not about fields
		t.unwritable = lossy
	}
	added, err := s.addAlias(ctx, t)
	if err != nil {
		return nil, err
	}
	if !added {
		t.alias, t.update = "", true
	}
	s.shared.destinations[uuid] = t
	return t, nil
}

// addAlias adds the alias to the index, unless the engine refuses. Then it looks whether this is still the same index.
func (s *Store) addAlias(ctx context.Context, t *destination) (added bool, err error) {
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

// aliasOf returns the name of our alias of the index with a UUID.
func aliasOf(uuid string) string { return "neardup-writes-" + hex.EncodeToString([]byte(uuid)) }

func aliasAction(action, index, alias, more string) raw {
	body := fmt.Sprintf(`{"actions":[{%q:{"index":%s,"alias":%q%s}}]}`, action, jsonedit.AppendString(nil, index), alias, more)
	return raw{"POST", "/_aliases", "", body}
}

// same fails with adapters.ErrRecreated if the index is not the one that documents were read from.
func (s *Store) same(ctx context.Context, t *destination) error {
	uuid, err := s.Identity(ctx, t.index)
	if err == nil && uuid != t.uuid || missing(err) {
		return adapters.ErrRecreated
	}
	return err
}

// inOneRequest returns how many of the patches go in the next request.
func (t *destination) inOneRequest(patches []adapters.Stored) int {
	size := 0
	for i, p := range patches {
		if size += len(p.Source); i > 0 && (size > patchBytes || t.keepsLines(p) || t.keepsLines(patches[0])) {
			return i
		}
	}
	return len(patches)
}

// keepsLines reports whether a document goes in a request of its own: in a bulk it would have to be in one line.
func (t *destination) keepsLines(p adapters.Stored) bool {
	return !t.update && bytes.IndexByte(p.Source, '\n') >= 0
}

// send writes some documents in one request, and sets their results. seqNo is the sequence number that the last of them got.
func (s *Store) send(ctx context.Context, t *destination, patches []adapters.Stored, results []adapters.Result) (seqNo int64, err error) {
	if t.keepsLines(patches[0]) {
		document, err := rule.WithOurs(patches[0].Source, *patches[0].Wanted)
		if err != nil {
			return 0, fmt.Errorf("document %s: %w", patches[0].ID, err)
		}
		results[0], seqNo, err = s.writeOne(ctx, t, patches[0], document)
		return seqNo, err
	}
	var body []byte
	var sent []int
	for i, p := range patches {
		if t.update && !survives(p.Source) {
			results[i] = adapters.Refused
			continue
		}
		if body, err = t.appendPatch(body, p); err != nil {
			return 0, fmt.Errorf("document %s: %w", p.ID, err)
		}
		sent = append(sent, i)
	}
	outcomes, err := s.bulk(ctx, t, body, len(sent))
	for n, i := range sent {
		if err == nil {
			results[i], seqNo = resultOf(outcomes[n].Status), outcomes[n].SeqNo
		}
	}
	return seqNo, err
}

// outcome is what became of one action of a bulk.
type outcome struct {
	Status int
	SeqNo  int64 `json:"_seq_no"`
	Error  struct{ Type string }
}

// bulk sends the lines of n actions, and returns what became of each. Where the engine is busy, each has its status for that.
func (s *Store) bulk(ctx context.Context, t *destination, body []byte, n int) (outcomes []outcome, err error) {
	if n == 0 {
		return nil, nil
	}
	var reply struct{ Items []map[string]outcome }
	pinned := t.alias != ""
	err = s.throughAlias(ctx, t, func() error {
		reply.Items = nil
		err := s.do(ctx, esapi.BulkRequest{
			Index: url.PathEscape(t.name()), RequireAlias: &pinned, Body: bytes.NewReader(body),
			FilterPath: []string{"items.*.status", "items.*.error.type", "items.*._seq_no"},
		}, &reply)
		for _, item := range reply.Items {
			for _, outcome := range item {
				if outcome.Error.Type == noIndex {
					return &refusal{status: http.StatusNotFound, reason: noIndex}
				}
			}
		}
		return err
	})
	if errors.Is(err, adapters.ErrBusy) {
		return slices.Repeat([]outcome{{Status: http.StatusTooManyRequests}}, n), nil
	}
	if err == nil && len(reply.Items) != n {
		err = fmt.Errorf("%d results for %d documents", len(reply.Items), n)
	}
	if err != nil {
		return nil, err
	}
	for _, item := range reply.Items {
		for _, outcome := range item {
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes, nil
}

// throughAlias sends a request that writes to the destination. Where another process has removed the alias it adds it and sends again.
func (s *Store) throughAlias(ctx context.Context, t *destination, send func() error) error {
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
		if added, err := s.addAlias(ctx, t); err != nil {
			return err
		} else if !added { // the request may hold whole documents, which go through the alias alone
			return fmt.Errorf("the alias %s is gone, and the engine refuses to add it again", t.alias)
		}
	}
	return fmt.Errorf("the alias %s is removed again and again: is another job at work on %s?", t.alias, t.index)
}

// name is what the destination is called in a request that writes to it.
func (t *destination) name() string {
	if t.alias != "" {
		return t.alias
	}
	return t.index
}

// lostBy reports whether err says that there is no index, or alias, of the name that was written to.
func lostBy(err error) bool { return missing(err) && says(err, noIndex) }

// appendPatch appends the two lines of a bulk that patch a document.
func (t *destination) appendPatch(body []byte, p adapters.Stored) ([]byte, error) {
	action := `{"index":{"pipeline":"_none","_id":`
	document, err := rule.WithOurs(p.Source, *p.Wanted)
	if t.update {
		action = `{"update":{"_id":`
		document, err = merged(p, !t.embeds), nil
	}
	body = appendCondition(jsonedit.AppendString(append(body, action...), p.ID), p)
	return append(append(append(body, "}}\n"...), document...), '\n'), err
}

// appendCondition appends, to the action of a document, that it must be in the place and the state in which it was read.
func appendCondition(body []byte, d adapters.Stored) []byte {
	v := versionOf(d)
	return appendRouting(fmt.Appendf(body, `,"if_seq_no":%d,"if_primary_term":%d`, v.seqNo, v.primaryTerm), d)
}

// appendRouting appends a document's routing, if it has one, to what is sent of it.
func appendRouting(body []byte, d adapters.Stored) []byte {
	if d.Routing == "" {
		return body
	}
	return jsonedit.AppendString(append(body, `,"routing":`...), d.Routing)
}

// merged returns the update that merges our fields into a document: fields that are to go become null. A
// script removes them where all of them are to go and scripts are allowed.
func merged(p adapters.Stored, script bool) []byte {
	if script && p.Wanted.Equal(rule.Ours{}) {
		script := []byte(`{"script":{"lang":"painless","source":"for (f in params.f) { ctx._source.remove(f) }","params":{"f":`)
		return append(append(script, stringsOf(rule.OurFields)...), `}}}`...)
	}
	stored, _ := jsonedit.Members(p.Source) // what is no document has no members
	null := slices.DeleteFunc(slices.Clone(rule.OurFields), func(name string) bool { return jsonedit.Get(stored, name) == nil })
	return append(append([]byte(`{"doc":{`), p.Wanted.Fields(null...)...), `}}`...)
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

// writeOne writes a document by itself, with each byte of it: in place of the state in which it was read, or, if it never was, as a new one.
func (s *Store) writeOne(ctx context.Context, t *destination, d adapters.Stored, document []byte) (result adapters.Result, seqNo int64, err error) {
	if adapters.Unaddressable(d.ID) {
		return adapters.Refused, 0, nil
	}
	request := esapi.IndexRequest{
		Index: url.PathEscape(t.name()), DocumentID: url.PathEscape(d.ID), Routing: d.Routing, Pipeline: "_none", OpType: "create",
	}
	if v, read := d.Version.(version); read {
		number, term := int(v.seqNo), int(v.primaryTerm)
		request.OpType, request.IfSeqNo, request.IfPrimaryTerm = "", &number, &term
	}
	var said struct {
		SeqNo int64 `json:"_seq_no"`
	}
	pinned := t.alias != ""
	err = s.throughAlias(ctx, t, func() error {
		request.Index, request.RequireAlias, request.Body = url.PathEscape(t.name()), &pinned, bytes.NewReader(document)
		err := s.do(ctx, request, &said)
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

// survives reports whether a document's numbers are the same after an update. There the engine reads a number with a fraction or an exponent
// as 64 bits and writes that, so one with more digits would lose some of them.
func survives(source []byte) bool {
	for _, literal := range literals.FindAll(source, -1) {
		if literal[0] != '"' && !fitsDouble(string(literal)) {
			return false
		}
	}
	return true
}

// literals matches the strings and the numbers of a document.
var literals = regexp.MustCompile(`(?s)"(?:\\.|[^"\\])*"|[-0-9][-+.eE0-9]*`)

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

// Release implements adapters.Store: it removes the alias.
func (s *Store) Release(ctx context.Context, index string) {
	s.shared.opening.Lock()
	defer s.shared.opening.Unlock()
	for uuid, t := range s.shared.destinations {
		if t.index == index {
			delete(s.shared.destinations, uuid)
			if t.alias != "" {
				s.tidyUp(ctx, aliasAction("remove", index, t.alias, ""))
			}
		}
	}
}
