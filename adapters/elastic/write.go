package elastic

import (
	"bytes"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// EnrichWrite implements adapters.Dialect.
func (d Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, e *adapters.Enricher) error {
	e.NoCreate = mayNotCreate(c)
	switch c.Form {
	case formBulk:
		b := bulk{e: e, target: c.Target, noCreate: e.NoCreate}
		return adapters.EditLines(dst, src, b.edit)
	case formUpdate:
		return adapters.EditWhole(dst, src, func(body []byte) []byte { return update(e, nil, c.Target, body) })
	}
	return adapters.EditWhole(dst, src, func(body []byte) []byte { return e.Append(nil, c.Target, body, false) })
}

// mayNotCreate reports whether the engine may end up making no index for a document that it is sent: where one has to be there, or a
// pipeline may drop the document. We then make none beforehand.
func mayNotCreate(c adapters.Class) bool {
	params, _ := c.Params.([]adapters.Param)
	for _, p := range params {
		switch p.Name {
		case "require_alias", "require_data_stream":
			if p.Value != "false" {
				return true
			}
		case "pipeline":
			if p.Value != "_none" {
				return true
			}
		}
	}
	return false
}

// update appends the body of an update: its doc is merged into what is stored, its upsert is a whole document, a script's doing
// can't be foreseen.
func update(e *adapters.Enricher, dst []byte, index string, body []byte) []byte {
	members, err := adapters.Members(body)
	if err != nil || twice(members, "doc") || twice(members, "upsert") { // the engine says so
		return append(dst, body...)
	}
	for _, part := range []struct {
		key     string
		partial bool
	}{{"doc", true}, {"upsert", false}} {
		value := adapters.Get(members, part.key)
		if value == nil || value[0] != '{' {
			continue
		}
		if changed, err := adapters.Set(body, part.key, e.Append(nil, index, value, part.partial)); err == nil {
			body = changed
		}
	}
	return append(dst, body...)
}

// twice reports whether a key stands more than once.
func twice(members []adapters.Member, key string) bool {
	seen := 0
	for _, m := range members {
		if m.Key == key {
			seen++
		}
	}
	return seen > 1
}

// bulk enriches the lines of one bulk, one after the other.
type bulk struct {
	e         *adapters.Enricher
	target    string
	noCreate  bool
	op, index string // of the action whose document comes next; op is empty where an action does
	broken    bool   // an action could not be read: the engine will refuse the bulk, and the rest stays as it stands
	out       []byte
}

// edit returns the next line as the engine gets it; nil stands for one that is too long.
func (b *bulk) edit(line []byte) []byte {
	op, blank := b.op, len(bytes.TrimSpace(line)) == 0
	b.op = ""
	switch {
	case b.broken:
	case op == "" && (line == nil || !blank):
		b.action(line)
	case op == "" || blank || b.index == "":
	case op == "update":
		b.out = update(b.e, b.out[:0], b.index, line)
		return b.out
	default:
		b.out = b.e.Append(b.out[:0], b.index, line, false)
		return b.out
	}
	return line
}

// action takes an action line.
func (b *bulk) action(line []byte) {
	op, index, noCreate, ok := action(line, b.target)
	if b.broken = !ok; op == "delete" { // no document comes
		return
	}
	b.op, b.index, b.e.NoCreate = op, index, b.noCreate || noCreate
}

// action reads an action line.
func action(line []byte, target string) (op, index string, noCreate, ok bool) {
	members, err := adapters.Members(line)
	if err != nil || len(members) != 1 {
		return "", "", false, false
	}
	op, index = members[0].Key, target
	meta, err := adapters.Members(members[0].Value)
	if err != nil {
		return "", "", false, false
	}
	if named, ok := adapters.Text(adapters.Get(meta, "_index")); ok {
		index = named
	}
	switch op {
	case "index", "create", "update", "delete":
		pipeline := adapters.Get(meta, "pipeline")
		noCreate = string(adapters.Get(meta, "require_alias")) == "true" || string(adapters.Get(meta, "require_data_stream")) == "true" ||
			pipeline != nil && string(pipeline) != `"_none"`
		return op, index, noCreate, true
	}
	return "", "", false, false
}
