package proxy

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// candidate is a document that a newcomer may be a near-duplicate of: one that is stored, or one of the same write.
type candidate struct {
	id, index string // as the engine has it
	sketch    *sketch.Sketch
	cluster   string
	stored    *adapters.Stored
	newcomer  *newcomer
}

// newcomer is a document of a write that gets a sketch.
type newcomer struct {
	candidate
	op      rule.Operation
	rule    *rule.Rule
	keys    []int64
	partial bool
	// standing is the document that takes its place, where its operation is left out of the write.
	standing *candidate
	// reply is what the engine answers of that document, where the answer to this operation is made of it.
	reply []byte
}

// perLook is about how many bytes are held for each byte of a write whose duplicates are looked up: its texts, sketches and bands.
const perLook = 2

// findings is what was found out about the documents of a write before it is sent: their clusters, and the operations that are left out. It is the
// rule.Clustering of the write. With nothing found, each document is alone in its cluster.
type findings struct {
	*writing
	decided *decided.Set
	tooLong bool   // the write streams: nothing is looked for
	plain   []byte // the body as the client sent it
	replies adapters.Replies
	ops     []rule.Operation
	// mentions is how many operations have the id, whatever index they go to: a name may be an alias.
	mentions map[string]int
	seen     []*newcomer
	by       map[place]*newcomer
	// left are the newcomers of the operations that are left out of the write.
	left map[int]*newcomer
}

// place is the place of a document in a write: an update can have two.
type place struct {
	op      int
	partial bool
}

// seeksDuplicates reports whether a rule has near-duplicates looked up before a document is stored.
func (h *Handler) seeksDuplicates() bool {
	return slices.ContainsFunc(h.Rules, func(r *rule.Rule) bool {
		return r.Clusters || r.OnDuplicate != rule.IndexDuplicates
	})
}

// findDuplicates reads a write once before it is sent, and looks up what its documents are near-duplicates of.
func (w *writing) findDuplicates(plain []byte) *findings {
	if !w.u.hold.take(perLook * int64(len(plain))) {
		w.h.Metrics.duplicates.WithLabelValues(string(adapters.ReasonBusy)).Inc()
		return &findings{writing: w, plain: plain}
	}
	f := &findings{writing: w, decided: w.h.decidedPairs(), plain: plain, mentions: map[string]int{}, by: map[place]*newcomer{}, left: map[int]*newcomer{}}
	replies, err := w.h.Dialect.EnrichWrite(w.u.class, io.Discard, bytes.NewReader(plain), firstReading{f}, math.MaxInt64/2)
	if f.replies = replies; err == nil && len(f.seen) > 0 {
		err = guarded(func() error {
			f.judge(w.u)
			f.fetch()
			return nil
		})
	}
	if err != nil { // the documents are stored as if nothing were known of any other
		w.h.Metrics.duplicates.WithLabelValues("failed").Inc()
		w.h.Log.Error("write could not be looked through", "error", unquoted(err))
		return &findings{writing: w, plain: plain}
	}
	w.h.Metrics.documents.WithLabelValues("skipped").Add(float64(len(f.left)))
	return f
}

// unsought returns the rule.Writing of a write that streams: no near-duplicates of its documents are looked up.
func (w *writing) unsought() rule.Writing {
	if w.h.seeksDuplicates() {
		return &findings{writing: w, tooLong: true}
	}
	return w
}

// sendOthers sends the write on without the operations that are left out. raw is the body as it was sent.
func (f *findings) sendOthers(raw []byte) {
	if len(f.left) > 0 && len(f.left) == len(f.ops) {
		f.answer()
		return
	}
	body, err := f.enriched(f.plain, f)
	if err != nil {
		f.h.answerError(f.u, f.r, err)
		return
	}
	if body == nil { // nothing is left out of it
		body, f.left = raw, nil
	}
	if len(f.left) > 0 {
		acceptReadable(f.out.Header)
	}
	f.sendBody(body, f.finish)
}

// Start implements rule.Clustering.
func (f *findings) Start(o rule.Operation) bool { return f.left[o.Number] == nil }

// firstReading is the rule.Clustering that collects the documents of a write and changes nothing.
type firstReading struct{ *findings }

// Start implements rule.Clustering.
func (f firstReading) Start(o rule.Operation) bool {
	f.ops = append(f.ops, o)
	if o.ID != "" {
		f.mentions[o.ID]++
	}
	return true
}

// Count implements rule.Clustering: documents are counted as they are sent.
func (f firstReading) Count(rule.Change) {}

// Sketch implements rule.Clustering. A document has the sketch that the first reading made.
func (f *findings) Sketch(o rule.Operation, rule *rule.Rule, texts [][]byte, vector []byte, partial bool) (*sketch.Sketch, bool) {
	if n := f.by[place{o.Number, partial}]; n != nil && n.rule == rule {
		return n.sketch, true
	}
	s := &sketch.Sketch{}
	return s, rule.SketchInto(s, texts, vector)
}

// Cluster implements rule.Clustering: the document is a newcomer, of no known cluster yet.
func (f firstReading) Cluster(o rule.Operation, r *rule.Rule, s *sketch.Sketch, partial bool) string {
	if r.Clusters || r.OnDuplicate != rule.IndexDuplicates {
		n := &newcomer{candidate: candidate{id: o.ID, sketch: s}, op: o, rule: r, keys: r.BandKeys(s), partial: partial}
		n.newcomer = n
		f.seen = append(f.seen, n)
		f.by[place{o.Number, partial}] = n
	}
	return ""
}

// Cluster implements rule.Clustering: it is the one that was found for the document.
func (f *findings) Cluster(o rule.Operation, r *rule.Rule, _ *sketch.Sketch, partial bool) string {
	if f.tooLong && r.OnDuplicate != rule.IndexDuplicates {
		f.h.Metrics.duplicates.WithLabelValues("too_long").Inc()
	}
	if n := f.by[place{o.Number, partial}]; n != nil && n.rule == r {
		return n.cluster
	}
	return ""
}

// Number implements rule.Clustering: by the id and the index that a document goes to, and at random where it has no id.
func (f *findings) Number(o rule.Operation, r *rule.Rule) uint64 {
	if o.ID == "" {
		return max(rand.Uint64(), 1)
	}
	name := o.Index
	if index, err := f.h.catalog.concrete(f.u, f.u.sender.client(), name); err == nil && index.Name != "" {
		name = index.Name
	}
	return max(r.NumberOf(entryKey(client{key: name}, o.ID)), 1)
}

// fetch gets the documents that replies quote. An operation whose document can't be had stays in the write.
func (f *findings) fetch() {
	fetcher, ok := f.replies.(adapters.Fetcher)
	if !ok {
		return
	}
	for number, n := range f.left {
		if n.standing.stored == nil {
			continue
		}
		fetch := fetcher.Fetch(n.op, n.standing.id)
		fetch.RawQuery, fetch.Header = f.u.sender.client().query, f.u.sender.client().header
		ctx, cancel := context.WithTimeout(f.u, lookFor)
		reply, err := f.h.roundTrip(ctx, &f.u.hold, fetch)
		cancel()
		if err != nil || reply.Status != http.StatusOK {
			f.h.Metrics.duplicates.WithLabelValues("failed").Inc()
			delete(f.left, number)
			continue
		}
		n.reply = reply.Body
	}
}

// answer answers a write whose operations are all left out.
func (f *findings) answer() {
	var clean bytes.Buffer
	body, err := f.joined(nil)
	if err == nil {
		err = f.h.Dialect.CleanReply(f.u.class, &clean, bytes.NewReader(body))
	}
	if err != nil {
		f.h.Log.Error("write could not be answered", "error", unquoted(err))
		f.h.refuse(f.u, f.r, http.StatusBadGateway, unanswered)
		return
	}
	status, contentType := f.replies.Empty()
	reply := f.h.Dialect.ErrorReply(requestOf(f.r), status, "")
	if contentType != "" {
		reply.Header["Content-Type"] = []string{contentType}
	}
	reply.Body = clean.Bytes()
	writeReply(f.u, reply)
}

// joined returns the reply to the whole write, given the reply to what was sent of it, nil for nothing.
func (f *findings) joined(reply []byte) (joined []byte, err error) {
	err = guarded(func() (err error) {
		var sent [][]byte
		var refused []bool
		if reply != nil {
			if sent, refused, err = f.replies.Split(reply); err != nil {
				return err
			}
		}
		all, missing, err := f.entries(sent, refused)
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			f.resend(all, missing)
		}
		joined, err = f.replies.Join(reply, all)
		return err
	})
	return joined, err
}

// unanswered is the error where operations were left out of a write, and its reply can't be completed.
const unanswered = "on_duplicate: skip left documents out of this write, and its reply could not be understood: send it again"

// entries returns the reply's entry for each operation of the write, given those of what was sent. missing are the operations without an entry: the
// document that was to take their place was refused.
func (f *findings) entries(sent [][]byte, refused []bool) (all [][]byte, missing []int, err error) {
	if len(sent) != len(f.ops)-len(f.left) {
		return nil, nil, adapters.ErrNotUnderstood
	}
	all, failed := make([][]byte, len(f.ops)), make([]bool, len(f.ops))
	for i := range f.ops {
		if f.left[i] == nil {
			all[i], failed[i] = sent[0], refused[0]
			sent, refused = sent[1:], refused[1:]
		}
	}
	for i, o := range f.ops {
		n := f.left[i]
		if n == nil {
			continue
		}
		of := adapters.Standing{Index: n.standing.index, Stored: n.standing.stored, Reply: n.reply}
		if other := n.standing.newcomer; other != nil {
			if failed[other.op.Number] {
				missing = append(missing, i)
				continue
			}
			of.Entry = all[other.op.Number]
		}
		if all[i], err = f.replies.NoOp(o, of); err != nil {
			return nil, nil, err
		}
	}
	return all, missing, nil
}

// finish remembers what was just written, and puts the answers to the operations that were left out into the reply.
func (f *findings) finish(resp *http.Response) {
	if resp.StatusCode >= 300 { // the engine refused all of it
		return
	}
	f.remember()
	if len(f.left) == 0 {
		return
	}
	var sure *hold // the client must get it, whatever else is held
	reply, err := sure.readReply(resp, f.h.Limits.MaxReply)
	if err == nil {
		reply.Body, err = f.joined(reply.Body)
	}
	if err == nil {
		putBody(resp, coded(resp.Header.Get("Content-Encoding"), reply.Body))
		return
	}
	f.h.Metrics.duplicates.WithLabelValues("unanswered").Inc()
	f.h.Log.Error("reply to a write could not be completed", "error", unquoted(err))
	reply = f.h.Dialect.ErrorReply(requestOf(f.r), http.StatusBadGateway, unanswered)
	resp.StatusCode, resp.Status = reply.Status, http.StatusText(reply.Status)
	resp.Header = http.Header(reply.Header)
	putBody(resp, reply.Body)
}

// putBody puts another body in the place of a response's.
func putBody(resp *http.Response, body []byte) {
	resp.Body = readCloser{bytes.NewReader(body), resp.Body}
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	resp.TransferEncoding = nil
}

// resend sends the missing operations after all: the documents that were to take their place were refused. Where that fails they get the entries of
// those, and the client sees that they are not stored.
func (f *findings) resend(all [][]byte, missing []int) {
	only := *f
	only.left = map[int]*newcomer{}
	for i := range f.ops {
		if !slices.Contains(missing, i) {
			only.left[i] = &newcomer{}
		}
	}
	var body bytes.Buffer
	var entries [][]byte
	_, err := f.h.Dialect.EnrichWrite(f.u.class, &body, bytes.NewReader(f.plain), &only, f.h.Limits.EngineMaxBody)
	if err == nil {
		header := f.r.Header.Clone()
		header.Del("Content-Encoding")
		header.Del("Content-Length")
		var reply *adapters.Reply
		reply, err = f.h.roundTrip(f.u, nil, &adapters.Request{
			Method: f.r.Method, Path: rawPath(f.r), RawQuery: f.r.URL.RawQuery, Header: adapters.Header(header), Body: body.Bytes(),
		})
		if err == nil && reply.Status < 300 {
			entries, _, err = f.replies.Split(reply.Body)
		}
	}
	if err != nil || len(entries) != len(missing) {
		f.h.Metrics.duplicates.WithLabelValues("unsent").Add(float64(len(missing)))
		entries = nil
	}
	for i, number := range missing {
		if all[number] = all[f.left[number].standing.newcomer.op.Number]; entries != nil {
			all[number] = entries[i]
		}
	}
}
