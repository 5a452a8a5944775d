package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"golang.org/x/sync/errgroup"
)

// engine is a search engine that runs, and what is said to its kind.
type engine struct {
	kind, name string // elasticsearch, Elasticsearch
	base, key  string
	version    string
	process    *process
	release    func() error
	stock      *stock // nil until fillStocks
	warm       bool   // whether it has been asked for pages until its code is compiled
}

// names are the engines' own.
var names = map[string]string{
	engines.Elasticsearch: "Elasticsearch", engines.OpenSearch: "OpenSearch", engines.Typesense: "Typesense",
}

// openEngine takes the engine that the environment names, or starts one; get is engines.Acquire, or engines.Launch for a separate one.
func openEngine(ctx context.Context, kind string, get func(kind string) (*engines.Engine, func() error, error)) (*engine, error) {
	found, release, err := get(kind)
	if err != nil {
		return nil, err
	}
	e := &engine{kind: kind, name: names[kind], base: found.URL, key: found.Key, release: release}
	pid := found.PID
	if pid == 0 {
		at, err := url.Parse(e.base)
		if err == nil {
			pid, err = listener(at.Port())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("find the process of %s: %w", kind, err), release())
		}
	}
	e.process = &process{name: "engine", pid: pid, base: e.base}
	var root struct{ Version json.RawMessage }
	path := "/"
	if e.typesense() {
		path = "/debug"
	}
	if err := e.do(ctx, e.base, request{method: "GET", path: path}, &root); err != nil {
		return nil, errors.Join(err, release())
	}
	var number struct{ Number string }
	if json.Unmarshal(root.Version, &number) != nil || number.Number == "" {
		_ = json.Unmarshal(root.Version, &number.Number)
	}
	e.version = number.Number
	return e, nil
}

func (e *engine) typesense() bool { return e.kind == engines.Typesense }

// header is what each request to the engine carries.
func (e *engine) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if e.key != "" {
		h.Set("X-Typesense-Api-Key", e.key)
	}
	return h
}

// do sends a request, which must succeed, to an address that speaks for the engine; into may be nil.
func (e *engine) do(ctx context.Context, base string, q request, into any) error {
	if q.header == nil {
		q.header = e.header()
	}
	r, err := send(ctx, base, q)
	if err == nil && r.status >= 300 {
		err = fmt.Errorf("status %d: %.500s", r.status, r.body)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(r.body, into)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	return nil
}

// create makes an index of one shard without copies, which is refreshed when it is asked to be.
func (e *engine) create(ctx context.Context, base, index string) error {
	e.drop(index)
	if e.typesense() {
		return e.do(ctx, base, request{method: "POST", path: "/collections", body: fmt.Appendf(nil, `{"name":%q,"fields":[`+
			`{"name":"title","type":"string"},{"name":"body","type":"string"},{"name":"cluster","type":"string","facet":true},`+
			`{"name":"at","type":"int64"}]}`, index)}, nil)
	}
	return e.do(ctx, base, request{method: "PUT", path: "/" + index, body: []byte(`{"settings":{"number_of_shards":1,` +
		`"number_of_replicas":0,"refresh_interval":"-1"},"mappings":{"properties":{"id":{"type":"keyword"},"title":{"type":"text"},` +
		`"body":{"type":"text"},"cluster":{"type":"keyword"},"at":{"type":"date","format":"epoch_second"}}}}`)}, nil)
}

// drop deletes an index if it is there.
func (e *engine) drop(index string) {
	path := "/" + index
	if e.typesense() {
		path = "/collections/" + index
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = e.do(ctx, e.base, request{method: "DELETE", path: path}, nil) // usually it does not exist
}

// write is the request that stores documents.
func (e *engine) write(index string, documents []document) request {
	var lines bytes.Buffer
	into := json.NewEncoder(&lines)
	into.SetEscapeHTML(false)
	for _, d := range documents {
		if !e.typesense() {
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":%q}}\n", d.ID)
		}
		_ = into.Encode(d) // texts and numbers can be encoded
	}
	if e.typesense() {
		return request{"POST", "/collections/" + index + "/documents/import?action=upsert", e.header(), lines.Bytes()}
	}
	header := e.header()
	header.Set("Content-Type", "application/x-ndjson")
	return request{"POST", "/" + index + "/_bulk", header, lines.Bytes()}
}

// written says what is wrong with the reply to a write.
func (e *engine) written(r reply) error {
	if e.typesense() && bytes.Count(r.body, []byte(`"success":true`)) == bytes.Count(r.body, []byte("\n"))+1 {
		return nil
	}
	if !e.typesense() && bytes.Contains(r.body[:min(200, len(r.body))], []byte(`"errors":false`)) {
		return nil
	}
	return fmt.Errorf("not all documents were stored: %.300s", r.body)
}

// loaders is how many writes are under way while an index is filled.
const loaders = 3

// fill makes an index and stores the documents of a shelf in it through an address, then makes it one segment.
func (e *engine) fill(ctx context.Context, base, index string, t *texts, s shelf) error {
	if err := e.create(ctx, base, index); err != nil {
		return err
	}
	each := max(1, min(1000, 4<<20/(s.Bytes+200))) // documents to a write
	var next atomic.Int64
	var group errgroup.Group
	for range loaders {
		group.Go(func() error {
			for {
				from := int(next.Add(int64(each))) - each
				if from >= s.Count {
					return nil
				}
				part := make([]document, 0, each)
				for i := from; i < min(from+each, s.Count); i++ {
					part = append(part, t.document(s, i))
				}
				r, err := send(ctx, base, e.write(index, part))
				if err == nil {
					err = e.written(r)
				}
				if err != nil {
					return fmt.Errorf("fill %s: %w", index, err)
				}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return e.settle(ctx, index)
}

// settle makes an index searchable and one segment, where the engine has such.
func (e *engine) settle(ctx context.Context, index string) error {
	if e.typesense() {
		return nil
	}
	for _, step := range []string{"/_refresh", "/_forcemerge?max_num_segments=1", "/_flush?force=true", "/_refresh"} {
		if err := e.do(ctx, e.base, request{method: "POST", path: "/" + index + step}, nil); err != nil {
			return err
		}
	}
	return nil
}

// read is the request that reads one document.
func (e *engine) read(index, id string) request {
	if e.typesense() {
		return request{"GET", "/collections/" + index + "/documents/" + id, e.header(), nil}
	}
	return request{"GET", "/" + index + "/_doc/" + id, e.header(), nil}
}

// search says what a search asks for.
type search struct {
	from, size int
	// grouped has the engine itself collapse the list, by the stored cluster.
	grouped bool
	// gzip has the reply compressed.
	gzip bool
	// more are further members of the search, as in `,"_source":false`, or parameters of its URL, as in `&include_fields=id`.
	more string
}

// request is the request of a search for some words.
func (e *engine) request(index, words string, s search) request {
	header := e.header()
	if s.gzip {
		header.Set("Accept-Encoding", "gzip")
	}
	if e.typesense() {
		path := fmt.Sprintf("/collections/%s/documents/search?query_by=title,body&drop_tokens_threshold=10000&q=%s&per_page=%d&page=%d",
			index, url.QueryEscape(words), s.size, 1+s.from/s.size)
		if s.grouped {
			path += "&group_by=cluster&group_limit=1"
		}
		return request{"GET", path + s.more, header, nil}
	}
	if s.grouped {
		s.more += `,"collapse":{"field":"cluster"}`
	}
	path, more, _ := strings.Cut(s.more, "?") // the part after a question mark is for the URL
	body := fmt.Appendf(nil, `{"query":{"match":{"body":%q}},"from":%d,"size":%d%s}`, words, s.from, s.size, path)
	if more != "" {
		more = "?" + more
	}
	return request{"POST", "/" + index + "/_search" + more, header, body}
}

// hits returns how many hits a reply shows; groups count once.
func (e *engine) hits(r reply) (int, error) {
	body, err := unzipped(r)
	if err != nil {
		return 0, err
	}
	if e.typesense() {
		var found struct {
			Hits   []json.RawMessage
			Groups []json.RawMessage `json:"grouped_hits"`
		}
		err := json.Unmarshal(body, &found)
		return len(found.Hits) + len(found.Groups), err
	}
	var found struct {
		Hits struct{ Hits []json.RawMessage }
	}
	err = json.Unmarshal(body, &found)
	return len(found.Hits.Hits), err
}

// indexName is a name that no other run uses.
func indexName(what string) string { return fmt.Sprintf("bench-e2e-%d-%s", os.Getpid(), what) }
