package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/onboard"
	"github.com/neardup/sidecar/internal/terminal"
)

const (
	// ownIndex is the index of the user's documents.
	ownIndex = "documents"
	// maxDocuments and maxBytes limit what is taken: the embedded engine keeps it in memory.
	maxDocuments, maxBytes = 10_000, 50 << 20
	// maxLine limits a line. The fields are chosen by the first sampled documents. A bulk ends after batchBytes.
	maxLine, sampled, batchBytes = 8 << 20, 1000, 4 << 20
)

// file reads the user's documents, one JSON object in each line.
type file struct {
	io.Closer
	name  string
	lines *bufio.Scanner
	line  int // number of the last line that was read

	documents, bytes int
	// refused counts the documents that the engine did not take. refusal is the first of them, and why.
	refused int
	refusal error
	// ids are the lines of the ids so far.
	ids map[string]int
	// full says that there are more documents than are taken.
	full bool
}

// own is a document of the user.
type own struct {
	line   int
	id     string
	source []byte
}

// openDocuments opens the file, which may be compressed by gzip.
func openDocuments(ctx context.Context, o Options) (*file, error) {
	f := &file{Closer: io.NopCloser(nil), name: o.Documents, ids: map[string]int{}}
	in := o.In
	if o.Documents == "-" {
		f.name = "standard input"
	} else {
		opened, err := os.Open(o.Documents)
		if err != nil {
			return nil, fmt.Errorf("--documents: %w: name a file of JSON lines, or - for standard input", err)
		}
		f.Closer, in = opened, opened
	}
	buffered := bufio.NewReader(terminal.UntilDone(ctx, in))
	in = buffered
	if start, _ := buffered.Peek(2); string(start) == "\x1f\x8b" {
		unpacked, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: starts like a gzip file but is not one: %w: pack it again, or give it unpacked", f.name, err), f.Close())
		}
		in = unpacked
	}
	f.lines = bufio.NewScanner(in)
	f.lines.Buffer(nil, maxLine)
	return f, nil
}

// next returns the next document, nil at the end or once there are enough.
func (f *file) next() (*own, error) {
	for f.lines.Scan() {
		f.line++
		text := f.lines.Bytes()
		if f.line == 1 {
			text = bytes.TrimPrefix(text, []byte("\uFEFF"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if f.documents == maxDocuments || f.bytes+len(text) > maxBytes {
			f.full = true
			return nil, nil
		}
		d, err := f.read(text)
		if err != nil && f.lines.Err() != nil { // the line is cut off
			f.line--
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", f.name, f.line, err)
		}
		f.documents, f.bytes = f.documents+1, f.bytes+len(text)
		return d, nil
	}
	switch err := f.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: is longer than %d MB: write one document in each line", f.name, f.line+1, maxLine>>20)
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrChecksum):
		return nil, fmt.Errorf("%s:%d: the gzip file is cut off or damaged here: %w: pack it again, or give it unpacked", f.name, f.line+1, err)
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", f.name, f.line+1, err)
	}
	return nil, nil
}

// inEngine are members that an engine adds to a document when it exports it.
var inEngine = []string{"_id", "_index", "_score", "_source", "_type", "_version", "_routing", "_ignored", "_seq_no", "_primary_term"}

// read reads a line: a document, or a hit with the document in _source.
func (f *file) read(text []byte) (*own, error) {
	const hint = `write one JSON object in each line, such as {"id": "a", "text": "some words"}`
	if !json.Valid(text) {
		return nil, fmt.Errorf("is not valid JSON: %s", hint)
	}
	members, err := jsonedit.Members(text)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON object: %s", hint)
	}
	d := &own{line: f.line, id: strconv.Itoa(f.line)}
	unique := false // the id is in _id
	for _, field := range []string{"_id", "id"} {
		value := jsonedit.Get(members, field)
		id, ok := jsonedit.Text(value)
		if _, err := strconv.ParseFloat(string(value), 64); err == nil {
			id, ok = string(value), true
		}
		if ok && id != "" {
			d.id, unique = id, field == "_id"
			break
		}
	}
	if before, taken := f.ids[d.id]; taken && !unique { // several documents may be about one thing, with its id
		d.id = "line-" + strconv.Itoa(f.line)
	} else if taken {
		return nil, fmt.Errorf("the id %.60s is in line %d too: give each document its own in _id, or leave _id out", d.id, before)
	}
	f.ids[d.id] = f.line
	if source := jsonedit.Get(members, "_source"); source != nil && source[0] == '{' {
		text = source
	}
	cut, err := jsonedit.Cut(text, func(key string) bool { return slices.Contains(inEngine, key) })
	d.source = bytes.Clone(cut)
	return d, err
}

// takeUp reads the first documents, and chooses the fields and a search from them.
func (d *walk) takeUp(f *file) error {
	var first []*own
	var sources [][]byte
	for len(first) < sampled {
		next, err := f.next()
		if err != nil {
			return err
		}
		if next == nil {
			break
		}
		first, sources = append(first, next), append(sources, next.source)
	}
	if len(first) == 0 {
		return fmt.Errorf("%s: has no document: write one JSON object in each line", f.name)
	}
	guess, err := onboard.GuessFrom(ownIndex, sources)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	d.rule, d.shown = guess.Rule, guess.Rule.Fields[:1]
	if guess.Word != "" {
		d.queries = []string{guess.Word}
	}
	d.load = func(ctx context.Context) error { return d.loadOwn(ctx, f, first) }
	return nil
}

// loadOwn writes the first documents and the rest of the file through the sidecar.
func (d *walk) loadOwn(ctx context.Context, f *file, first []*own) error {
	began := time.Now()
	if err := d.createIndex(ctx); err != nil {
		return err
	}
	var batch []*own
	size := 0
	for {
		var next *own
		var err error
		if len(first) > 0 {
			next, first = first[0], first[1:]
		} else if next, err = f.next(); err != nil {
			return err
		}
		if next != nil {
			batch, size = append(batch, next), size+len(next.source)
		}
		if len(batch) > 0 && (next == nil || size >= batchBytes) {
			if err := d.write(ctx, f, batch); err != nil {
				return err
			}
			batch, size = nil, 0
		}
		if next == nil {
			break
		}
	}
	stored := f.documents - f.refused
	switch {
	case stored == 0:
		return f.refusal
	case f.refused > 0:
		_, _ = fmt.Fprintf(d.log, "note: %s left out, the first one: %v\n", terminal.Count(f.refused, "document"), terminal.Harmless(f.refusal.Error()))
	}
	if f.full {
		_, _ = fmt.Fprintf(d.log, "note: %s is left out from line %d on: the demo takes %d documents or %d MB\n", f.name, f.line, maxDocuments, maxBytes>>20)
	}
	_, err := fmt.Fprintf(d.out, "%s of %s, compared by %s, written through the sidecar in %v.\n", terminal.Count(stored, "document"),
		terminal.Harmless(f.name), terminal.Harmless(strings.Join(d.rule.Fields, ", ")), time.Since(began).Round(time.Millisecond))
	return err
}

// createIndex declares only the fields that the rule names: the others may hold anything.
func (d *walk) createIndex(ctx context.Context) error {
	properties := map[string]any{}
	for _, field := range d.rule.Fields {
		properties[field] = map[string]string{"type": "text"}
	}
	if date := d.rule.DateField; date != "" {
		properties[date] = map[string]string{"type": "date"}
	}
	if host, sub := strings.CutSuffix(d.rule.HostField, ".keyword"); sub {
		properties[host] = map[string]any{"type": "text", "fields": map[string]any{"keyword": map[string]string{"type": "keyword"}}}
	}
	body, err := json.Marshal(map[string]any{"mappings": map[string]any{"dynamic": false, "properties": properties}})
	if err == nil {
		_, err = d.send(ctx, http.MethodPut, d.sidecar+"/"+ownIndex, "application/json", bytes.NewReader(body))
	}
	if err != nil {
		return fmt.Errorf("create the index: %w", err)
	}
	return nil
}

// write writes documents in one bulk.
func (d *walk) write(ctx context.Context, f *file, batch []*own) error {
	var body bytes.Buffer
	for _, one := range batch {
		fmt.Fprintf(&body, "{\"index\":{\"_id\":%s}}\n%s\n", jsonedit.AppendString(nil, one.id), one.source)
	}
	reply, err := d.post(ctx, d.sidecar+"/"+ownIndex+"/_bulk", "application/x-ndjson", &body)
	if err != nil {
		return fmt.Errorf("%s:%d and after: %w", f.name, batch[0].line, err)
	}
	var result struct {
		Items []struct {
			Index struct {
				Error *struct {
					Reason   string
					CausedBy struct{ Reason string } `json:"caused_by"`
				}
			}
		}
	}
	if err := json.Unmarshal(reply.body, &result); err != nil || len(result.Items) != len(batch) {
		return fmt.Errorf("%s:%d and after: the engine answered %.200s", f.name, batch[0].line, reply.body)
	}
	for i, item := range result.Items {
		if e := item.Index.Error; e != nil {
			why := fmt.Errorf("%s:%d: the engine refuses the document: %s", f.name, batch[i].line, strings.TrimSuffix(e.Reason+": "+e.CausedBy.Reason, ": "))
			f.refused, f.refusal = f.refused+1, cmp.Or(f.refusal, why)
		}
	}
	return nil
}

// pageOf returns the address of the page, open on the user's documents.
func (d *walk) pageOf(page string) string {
	if d.rule.Match != ownIndex {
		return page
	}
	open := url.Values{"engine": {"demo"}, "index": {ownIndex}}
	if len(d.queries) > 0 {
		open.Set("q", d.queries[0])
	}
	return page + "/#" + open.Encode()
}
