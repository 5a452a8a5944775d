package elastic

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// longestLine is how long one line of a bulk may be to be looked at; a longer one streams through as it stands. Elasticsearch
// refuses bodies over 100 MB by default. Only tests change it.
var longestLine = 32 << 20

// EnrichWrite implements adapters.Dialect.
func (d Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, e *adapters.Enricher) error {
	e.NoCreate = requireAlias(c)
	if c.Form == formBulk {
		b := bulk{r: bufio.NewReaderSize(src, 64<<10), w: bufio.NewWriterSize(dst, 64<<10), e: e, target: c.Target, noCreate: e.NoCreate}
		return errors.Join(b.copy(), b.w.Flush())
	}
	body, err := io.ReadAll(io.LimitReader(src, int64(longestLine)+1))
	if err != nil {
		return err
	}
	if len(body) > longestLine {
		_, err := io.Copy(dst, io.MultiReader(bytes.NewReader(body), src))
		return err
	}
	if c.Form == formUpdate {
		body = update(e, nil, c.Target, body)
	} else {
		body = e.Append(nil, c.Target, body, false)
	}
	_, err = dst.Write(body)
	return err
}

func requireAlias(c adapters.Class) bool {
	params, _ := c.Params.([]adapters.Param)
	value, ok := adapters.Last(params, "require_alias")
	return ok && value != "false"
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

// bulk copies the lines of one bulk.
type bulk struct {
	r        *bufio.Reader
	w        *bufio.Writer
	e        *adapters.Enricher
	target   string
	noCreate bool
	line     []byte // the last line read, with its end
	out      []byte
}

// copy copies operation by operation. From the first action line on that it can't read, the engine will refuse the bulk, and the
// rest is copied as it stands.
func (b *bulk) copy() error {
	for {
		whole, err := b.read()
		if err != nil || !whole {
			return b.rest(err)
		}
		if len(bytes.TrimSpace(b.line)) == 0 {
			if _, err := b.w.Write(b.line); err != nil {
				return err
			}
			continue
		}
		op, index, noCreate, ok := action(b.line, b.target)
		if _, err := b.w.Write(b.line); err != nil {
			return err
		}
		if !ok {
			b.line = nil
			return b.rest(nil)
		}
		if op == "delete" {
			continue
		}
		b.e.NoCreate = b.noCreate || noCreate
		if err := b.document(op, index); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// document copies the line behind an action.
func (b *bulk) document(op, index string) error {
	whole, err := b.read()
	if err != nil && len(b.line) == 0 {
		return err
	}
	end := len(b.line)
	if end > 0 && b.line[end-1] == '\n' {
		end--
	}
	switch document := b.line[:end]; {
	case !whole:
		if _, err := b.w.Write(b.line); err != nil {
			return err
		}
		return b.untilNewline()
	case index == "" || len(bytes.TrimSpace(document)) == 0:
		b.out = append(b.out[:0], document...)
	case op == "update":
		b.out = update(b.e, b.out[:0], index, document)
	default:
		b.out = b.e.Append(b.out[:0], index, document, false)
	}
	b.out = append(b.out, b.line[end:]...)
	_, err = b.w.Write(b.out)
	return err
}

// read reads the next line with its end, and says false where it is longer than is looked at. io.EOF comes with what stands
// behind the last line end, or alone.
func (b *bulk) read() (whole bool, err error) {
	b.line = b.line[:0]
	for {
		part, err := b.r.ReadSlice('\n')
		b.line = append(b.line, part...)
		switch {
		case err == nil:
			return true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(b.line) > 0 && errors.Is(err, io.EOF) {
				return true, nil
			}
			return true, err
		case len(b.line) > longestLine:
			return false, nil
		}
	}
}

// rest copies what was read and everything behind it.
func (b *bulk) rest(err error) error {
	if _, werr := b.w.Write(b.line); werr != nil {
		return werr
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	_, err = io.Copy(b.w, b.r)
	return err
}

func (b *bulk) untilNewline() error {
	for {
		part, err := b.r.ReadSlice('\n')
		if _, werr := b.w.Write(part); werr != nil {
			return werr
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
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
		return op, index, string(adapters.Get(meta, "require_alias")) == "true", true
	}
	return "", "", false, false
}
