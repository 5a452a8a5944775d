package elastic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// raw is a request for which esapi has no type that serves both engines, or none that is short.
type raw struct{ method, path, query, body string }

// post returns a request about an index, which stands in front of the path, and has to be escaped.
func post(path, query, body string) raw {
	index, endpoint, _ := strings.Cut(path, "/")
	return raw{http.MethodPost, "/" + url.PathEscape(index) + "/" + endpoint, query, body}
}

// Do implements esapi.Request.
func (r raw) Do(ctx context.Context, t esapi.Transport) (*esapi.Response, error) {
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	request, err := http.NewRequestWithContext(ctx, r.method, r.path, body)
	if err != nil {
		return nil, err
	}
	request.URL.RawQuery = r.query
	request.Header["Accept-Encoding"] = []string{"identity"} // packing pages of documents takes the engine longer than sending them
	if body != nil {
		request.Header["Content-Type"] = []string{"application/json"}
	}
	resp, err := t.Perform(request)
	if err != nil {
		return nil, err
	}
	return &esapi.Response{StatusCode: resp.StatusCode, Body: resp.Body, Header: resp.Header}, nil
}

// after sends a request that tidies up, with time of its own, and whose outcome changes nothing.
func (s *Store) after(ctx context.Context, r esapi.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_ = s.do(ctx, r, nil)
}

// errTooLong: a reply is longer than wanted.
var errTooLong = errors.New("a reply of more than " + strconv.Itoa(scanLimit>>20) + " MB")

func tooLong(err error) bool { return errors.Is(err, errTooLong) }

// body sends a request and returns the reply's body, or errTooLong if that is longer than the limit; 0 is no limit.
func (s *Store) body(ctx context.Context, r esapi.Request, limit int64) (Dialect, []byte, error) {
	resp, err := r.Do(ctx, s.perform)
	if err != nil {
		return Dialect{}, nil, err
	}
	defer resp.Body.Close()
	d := Dialect{OpenSearch: resp.Header.Get("X-Elastic-Product") == ""}
	from := io.Reader(resp.Body)
	if limit > 0 {
		from = io.LimitReader(from, limit+1)
	}
	var to bytes.Buffer
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil && n > 0 && (limit == 0 || n <= limit) {
		to.Grow(int(n) + bytes.MinRead)
	}
	if _, err := to.ReadFrom(from); err != nil {
		return d, nil, err
	}
	switch {
	case limit > 0 && int64(to.Len()) > limit:
		return d, nil, errTooLong
	case resp.StatusCode >= 300:
		return d, nil, refusalOf(resp.StatusCode, to.Bytes())
	}
	return d, to.Bytes(), nil
}

// foundHits is what a search, or a request for documents by their ids, has found.
type foundHits struct {
	hits   []scanned
	total  int
	cursor string // of a scroll, or a point in time
	length int    // of the reply
}

// scanned is one document of a reply. Its source shares the reply's memory.
type scanned struct {
	id, routing string
	seqNo, term int64
	version     int64
	source      []byte
	found       bool
	failed      string // why it could not be looked for
}

// search asks for documents, with their vectors if they are to be written again.
func (r *scan) search(ctx context.Context, request raw, limit int64) (foundHits, error) {
	if r.made.vectors && !r.sel.Brief && !strings.HasSuffix(request.path, "/scroll") {
		request.query = strings.TrimPrefix(request.query+"&"+withVectors, "&")
	}
	return r.find(ctx, request, limit)
}

// find sends a search whose body says what is shown of the documents; withVectors would overrule that. It fails where it was not answered for all
// that it concerns.
func (r *scan) find(ctx context.Context, request raw, limit int64) (foundHits, error) {
	_, body, err := r.s.body(ctx, request, limit)
	if err != nil {
		return foundHits{}, err
	}
	return takeHits(body)
}

// takeHits takes a reply apart in one go: it is the engine's own and long, and what stands in the documents is none of our business
// here.
func takeHits(body []byte) (f foundHits, err error) {
	f.length = len(body)
	failed, late := 0, false
	list := func(value []byte) {
		elements(value, func(hit []byte) {
			d := scanned{seqNo: -1}
			members(hit, func(key string, value []byte) { d.set(key, value) })
			f.hits = append(f.hits, d)
		})
	}
	whole := members(body, func(key string, value []byte) {
		switch key {
		case "hits":
			members(value, func(key string, value []byte) {
				switch key {
				case "hits":
					list(value)
				case "total":
					members(value, func(key string, value []byte) {
						if key == "value" {
							f.total = int(number(value))
						}
					})
				}
			})
		case "docs":
			list(value)
		case "_shards":
			members(value, func(key string, value []byte) {
				if key == "failed" {
					failed = int(number(value))
				}
			})
		case "timed_out": // a limit of the cluster's own, with which it answers what it has found so far
			late = string(value) == "true"
		case "_scroll_id", "pit_id":
			f.cursor, _ = adapters.Text(value)
		}
	})
	switch {
	case !whole:
		return f, fmt.Errorf("a reply that is not understood: %.100q", body)
	case late:
		return f, fmt.Errorf("it was not done within search.default_search_timeout: %w", adapters.ErrBusy)
	case failed > 0:
		return f, fmt.Errorf("%d shards failed: run it again when the index is whole", failed)
	}
	return f, nil
}

// set takes a member of a hit.
func (d *scanned) set(key string, value []byte) {
	switch key {
	case "_id":
		d.id, _ = adapters.Text(value)
	case "_routing":
		d.routing, _ = adapters.Text(value)
	case "_seq_no":
		d.seqNo = number(value)
	case "_primary_term":
		d.term = number(value)
	case "_source":
		d.source = value
	case "_version":
		d.version = number(value)
	case "error":
		d.failed = string(value)
		members(value, func(key string, value []byte) {
			if text, ok := adapters.Text(value); ok && key == "type" {
				d.failed = text + ": " + d.failed
			}
		})
	case "found":
		d.found = string(value) == "true"
	}
}

func number(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// members visits the members of a JSON object that the engine wrote, which is trusted to be well-formed. It returns false where it
// is no object, or cut short.
func members(data []byte, visit func(key string, value []byte)) bool {
	at := space(data, 0)
	if at == len(data) || data[at] != '{' {
		return false
	}
	at = space(data, at+1)
	for at < len(data) && data[at] == '"' {
		key := at + 1
		if at = skip(data, at); at < 0 {
			return false
		}
		name := data[key : at-1]
		if at = space(data, at); at == len(data) || data[at] != ':' {
			return false
		}
		at = space(data, at+1)
		value := at
		if at = skip(data, at); at < 0 {
			return false
		}
		visit(string(name), data[value:at])
		if at = space(data, at); at < len(data) && data[at] == ',' {
			at = space(data, at+1)
		}
	}
	return at < len(data) && data[at] == '}'
}

// elements visits the elements of a list, as members does.
func elements(data []byte, visit func(value []byte)) {
	at := space(data, 0)
	if at == len(data) || data[at] != '[' {
		return
	}
	for at = space(data, at+1); at < len(data) && data[at] != ']'; {
		value := at
		if at = skip(data, at); at < 0 {
			return
		}
		visit(data[value:at])
		if at = space(data, at); at < len(data) && data[at] == ',' {
			at = space(data, at+1)
		}
	}
}

func space(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\n' || data[at] == '\t' || data[at] == '\r') {
		at++
	}
	return at
}

// ends are the bytes behind a number or a word.
var ends = [256]bool{' ': true, '\n': true, '\t': true, '\r': true, ',': true, ':': true, ']': true, '}': true}

// skip returns where the value that begins there ends, or -1 where it does not.
func skip(data []byte, at int) int {
	for depth := 0; at < len(data); {
		switch data[at] {
		case '"':
			if at = afterString(data, at); at < 0 {
				return -1
			}
		case '{', '[':
			depth++
			at++
			continue
		case '}', ']':
			depth--
			at++
		case ' ', '\n', '\t', '\r', ',', ':':
			at++
			continue
		default:
			for at < len(data) && !ends[data[at]] {
				at++
			}
		}
		if depth == 0 {
			return at
		}
	}
	return -1
}

// afterString returns where the string that begins there ends.
func afterString(data []byte, at int) int {
	for at++; ; at++ {
		next := bytes.IndexByte(data[at:], '"')
		if next < 0 {
			return -1
		}
		at += next
		backslashes := 0
		for data[at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return at + 1
		}
	}
}
