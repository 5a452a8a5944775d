package embedded

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// operation is one write. Its sequence number is a condition if the term is not 0.
type operation struct {
	kind          string // index, create, update or delete
	index, id     string
	source        []byte // for an update, its body
	seqNo, term   int64
	forcedRefresh bool
}

// shards is the part of a reply that tells how many shards took a write.
type shards struct {
	Total      int `json:"total"`
	Successful int `json:"successful"`
	Failed     int `json:"failed"`
}

// result is the reply to a write.
type result struct {
	Index         string `json:"_index"`
	ID            string `json:"_id"`
	Version       int64  `json:"_version"`
	Result        string `json:"result"`
	ForcedRefresh bool   `json:"forced_refresh,omitempty"`
	Shards        shards `json:"_shards"`
	SeqNo         int64  `json:"_seq_no"`
	PrimaryTerm   int64  `json:"_primary_term"`
	Status        int    `json:"status,omitempty"` // in a bulk reply
}

// apply carries out one write.
func (e *Engine) apply(op operation) (*result, error) {
	x := e.indices[op.index]
	if x == nil {
		if op.kind == "delete" {
			return nil, noSuchIndex(op.index)
		}
		var err error
		if x, err = e.autoCreate(op.index); err != nil {
			return nil, err
		}
	}
	if op.id == "" {
		op.id = rand.Text()[:20]
	}
	old := x.docs[op.id]
	if err := x.check(op, old); err != nil {
		return nil, err
	}
	switch op.kind {
	case "delete":
		return x.remove(op, old)
	case "update":
		source, err := updated(op, old, x)
		if err != nil {
			return nil, err
		}
		if source == nil {
			return x.reply(op, old.version, old.seqNo, "noop", http.StatusOK), nil
		}
		op.source = source
	}
	return e.store(x, op, old)
}

// check refuses a write whose condition is not met.
func (x *index) check(op operation, old *document) error {
	const kind = "version_conflict_engine_exception"
	switch {
	case op.kind == "create" && old != nil:
		return x.ofIndex(http.StatusConflict, kind, "[%s]: version conflict, document already exists (current version [%d])", op.id, old.version)
	case op.term == 0:
	case old == nil:
		return x.ofIndex(http.StatusConflict, kind, "[%s]: version conflict, required seqNo [%d], primary term [%d]. but no document was found",
			op.id, op.seqNo, op.term)
	case old.seqNo != op.seqNo || op.term != 1:
		return x.ofIndex(http.StatusConflict, kind, "[%s]: version conflict, required seqNo [%d], primary term [%d]. "+
			"current document has seqNo [%d] and primary term [1]", op.id, op.seqNo, op.term, old.seqNo)
	}
	return nil
}

// store puts a whole document in the place of old.
func (e *Engine) store(x *index, op operation, old *document) (*result, error) {
	d := &document{index: x, id: op.id, version: x.gone[op.id] + 1, seqNo: x.seqNo, order: e.orders, source: bytes.Clone(op.source)}
	outcome, status := "created", http.StatusCreated
	if old != nil {
		d.version, d.order = old.version+1, old.order
		outcome, status = "updated", http.StatusOK
	}
	if err := x.read(d); err != nil {
		return nil, err
	}
	if old == nil {
		e.orders++
	}
	delete(x.gone, d.id)
	x.replace(old, d)
	x.docs[d.id] = d
	x.seqNo++
	return x.reply(op, d.version, d.seqNo, outcome, status), nil
}

func (x *index) remove(op operation, old *document) (*result, error) {
	version, outcome, status := x.gone[op.id]+1, "not_found", http.StatusNotFound
	if old != nil {
		version, outcome, status = old.version+1, "deleted", http.StatusOK
		x.replace(old, nil)
		delete(x.docs, op.id)
	}
	x.gone[op.id] = version
	x.seqNo++
	return x.reply(op, version, x.seqNo-1, outcome, status), nil
}

func (x *index) reply(op operation, version, seqNo int64, outcome string, status int) *result {
	return &result{x.name, op.id, version, outcome, op.forcedRefresh, shards{2, 1, 0}, seqNo, 1, status}
}

// updated is the source after a partial update, or nil if nothing changes.
func updated(op operation, old *document, x *index) ([]byte, error) {
	var doc, upsert json.RawMessage
	var asUpsert bool
	detectNoop := true
	list, err := members(op.source)
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		switch m.key {
		case "doc":
			doc = m.value
		case "upsert":
			upsert = m.value
		case "doc_as_upsert":
			asUpsert = string(m.value) == "true"
		case "detect_noop":
			detectNoop = string(m.value) != "false"
		case "script", "scripted_upsert", "_source":
			return nil, unsupported(m.key + " in an update")
		default:
			return nil, fail(http.StatusBadRequest, "x_content_parse_exception", "[1:%d] [UpdateRequest] unknown field [%s]", m.at, m.key)
		}
	}
	if doc == nil {
		return nil, invalid("script or doc is missing")
	}
	if old == nil {
		if asUpsert {
			upsert = doc
		}
		if upsert == nil {
			return nil, x.ofIndex(http.StatusNotFound, "document_missing_exception", "[%s]: document missing", op.id)
		}
		return upsert, nil
	}
	merged, err := merge(old.source, doc)
	if err != nil {
		return nil, err
	}
	merged = compact(merged)
	if detectNoop && bytes.Equal(merged, compact(old.source)) {
		return nil, nil
	}
	return merged, nil
}

// forced says whether the reply is to say that a refresh was forced.
func (r *request) forced() bool {
	return r.flag("refresh") && r.params.Get("refresh") != "wait_for"
}

// one answers a request that writes a single document.
func (e *Engine) one(r *request, kind string) (int, any, error) {
	op := operation{kind: kind, index: r.PathValue("index"), id: r.PathValue("id"), source: r.body, forcedRefresh: r.forced()}
	if kind != "delete" && len(r.body) == 0 {
		return 0, nil, fail(http.StatusBadRequest, "parse_exception", "request body is required")
	}
	for name, to := range map[string]*int64{"if_seq_no": &op.seqNo, "if_primary_term": &op.term} {
		n := 0
		if err := r.number(name, &n); err != nil {
			return 0, nil, err
		}
		*to = int64(n)
	}
	if r.params.Has("if_seq_no") && op.term == 0 {
		return 0, nil, invalid("ifSeqNo is set, but primary term is [0]")
	}
	res, err := e.apply(op)
	if err != nil {
		return 0, nil, err
	}
	status := res.Status
	res.Status = 0
	if status == http.StatusCreated {
		r.header.Set("Location", "/"+res.Index+"/_doc/"+res.ID)
	}
	if res.Result == "noop" {
		res.Shards = shards{}
	}
	return status, res, nil
}

func (e *Engine) indexDocument(r *request) (int, any, error) {
	if r.params.Get("op_type") == "create" {
		return e.one(r, "create")
	}
	return e.one(r, "index")
}

func (e *Engine) createDocument(r *request) (int, any, error) { return e.one(r, "create") }
func (e *Engine) updateDocument(r *request) (int, any, error) { return e.one(r, "update") }
func (e *Engine) deleteDocument(r *request) (int, any, error) { return e.one(r, "delete") }

// find returns the document that the path names, nil if the index has none of that id.
func (e *Engine) find(r *request) (*document, error) {
	x := e.indices[r.PathValue("index")]
	if x == nil {
		return nil, noSuchIndex(r.PathValue("index"))
	}
	return x.docs[r.PathValue("id")], nil
}

func (e *Engine) getDocument(r *request) (int, any, error) {
	d, err := e.find(r)
	if err != nil {
		return 0, nil, err
	}
	b := appendJSON([]byte(`{"_index":`), r.PathValue("index"))
	b = appendJSON(append(b, `,"_id":`...), r.PathValue("id"))
	if d == nil {
		return http.StatusNotFound, append(b, `,"found":false}`...), nil
	}
	b = fmt.Appendf(b, `,"_version":%d,"_seq_no":%d,"_primary_term":1,"found":true`, d.version, d.seqNo)
	var filter sourceFilter
	if filter.override(r); !filter.off {
		b = append(append(b, `,"_source":`...), filter.apply(d.source)...)
	}
	return http.StatusOK, append(b, '}'), nil
}

func (e *Engine) getSource(r *request) (int, any, error) {
	d, err := e.find(r)
	if err != nil {
		return 0, nil, err
	}
	if d == nil {
		return 0, nil, fail(http.StatusNotFound, "resource_not_found_exception", "Document not found [%s]/[%s]", r.PathValue("index"), r.PathValue("id"))
	}
	var filter sourceFilter
	filter.override(r)
	return http.StatusOK, filter.apply(d.source), nil
}

// bulk reads the whole body before it writes anything, so that a malformed one writes nothing.
func (e *Engine) bulk(r *request) (int, any, error) {
	ops, err := readBulk(r)
	if err != nil {
		return 0, nil, err
	}
	type bad struct {
		Index  string  `json:"_index"`
		ID     *string `json:"_id"`
		Status int     `json:"status"`
		Error  cause   `json:"error"`
	}
	failed, items := false, make([]map[string]any, len(ops))
	for i, op := range ops {
		if res, err := e.apply(op); err == nil {
			items[i] = map[string]any{op.kind: res}
		} else {
			f, id := asFailure(err), &op.id
			if op.id == "" {
				id = nil
			}
			items[i] = map[string]any{op.kind: bad{op.index, id, f.status, f.cause}}
			failed = true
		}
	}
	return http.StatusOK, struct {
		Errors bool             `json:"errors"`
		Took   int64            `json:"took"`
		Items  []map[string]any `json:"items"`
	}{failed, time.Since(r.start).Milliseconds(), items}, nil
}

func readBulk(r *request) ([]operation, error) {
	rest := r.body
	if len(rest) == 0 {
		return nil, fail(http.StatusBadRequest, "parse_exception", "request body is required")
	}
	if !bytes.HasSuffix(rest, []byte("\n")) {
		return nil, illegal(`The bulk request must be terminated by a newline [\n]`)
	}
	var ops []operation
	for number := 1; len(rest) > 0; number++ {
		var line []byte
		if line, rest, _ = bytes.Cut(rest, []byte("\n")); len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		op, err := readAction(line, number)
		if err != nil {
			return nil, err
		}
		if op.index == "" {
			op.index = r.PathValue("index")
		}
		if op.index == "" {
			return nil, invalid("index is missing")
		}
		if op.kind != "delete" {
			if len(rest) == 0 {
				return nil, invalid("no requests added")
			}
			op.source, rest, _ = bytes.Cut(rest, []byte("\n"))
			number++
		}
		op.forcedRefresh = r.forced()
		ops = append(ops, op)
	}
	return ops, nil
}

func readAction(line []byte, number int) (op operation, err error) {
	action, err := members(line)
	if err != nil {
		return op, err
	}
	if len(action) != 1 {
		return op, illegal("Malformed action/metadata line [%d], expected one action", number)
	}
	switch op.kind = action[0].key; op.kind {
	case "index", "create", "update", "delete":
	default:
		return op, illegal("Malformed action/metadata line [%d], expected field [create], [delete], [index] or [update] but found [%s]", number, op.kind)
	}
	meta, err := members(action[0].value)
	if err != nil {
		return op, err
	}
	for _, m := range meta {
		var v any
		if err := decode(m.value, &v); err != nil {
			return op, err
		}
		switch m.key {
		case "_index":
			op.index = text(v)
		case "_id":
			if op.id = text(v); op.id == "" {
				return op, invalid("an id must not be empty")
			}
		case "if_seq_no":
			op.seqNo, err = strconv.ParseInt(text(v), 10, 64)
		case "if_primary_term":
			op.term, err = strconv.ParseInt(text(v), 10, 64)
		case "retry_on_conflict", "require_alias":
		case "routing", "version", "version_type", "pipeline", "dynamic_templates", "op_type", "_source":
			return op, unsupported(m.key + " in a bulk request")
		default:
			return op, illegal("Action/metadata line [%d] contains an unknown parameter [%s]", number, m.key)
		}
		if err != nil {
			return op, illegal("Failed to parse parameter [%s] with value [%s]", m.key, m.value)
		}
	}
	return op, nil
}
