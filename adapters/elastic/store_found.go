package elastic

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// This file holds what every way to scan shares: a request for documents, and the documents of its reply.

// scanPage is what a search, or a request for documents by their ids, has found.
type scanPage struct {
	hits   []adapters.Stored // their sources share the reply's memory
	absent []absent
	sort   []byte // where a search goes on after the last hit
	total  int
	point  string // the point in time to go on in
}

// absent is a document that was asked for by its id and not found. failed says why it could not be looked for.
type absent struct{ id, failed string }

// search asks for documents, with their vectors if they are to be written again, and chooses the size of the next page by the reply's length.
func (r *scan) search(ctx context.Context, request raw) (scanPage, error) {
	if r.vectors && !r.sel.Brief {
		request.query = strings.TrimPrefix(request.query+"&"+withVectors, "&")
	}
	found, length, err := r.find(ctx, request)
	if n := len(found.hits); err == nil && n > 0 {
		r.size = min(max(scanBytes/(length/n+1), 1), 2*r.size, scanMost)
	}
	return found, err
}

// find sends a search whose body says what is shown of the documents; withVectors would overrule that. It fails where it was not answered for all
// that it concerns.
func (r *scan) find(ctx context.Context, request raw) (found scanPage, length int, err error) {
	body, err := r.s.body(ctx, request, scanLimit)
	if err == nil {
		found, err = readScanPage(body, r.uuid)
	}
	return found, len(body), err
}

// readScanPage reads a reply, in which it goes over each document twice: by jsonedit.Members alone these would be four times. uuid is
// that of the index.
func readScanPage(body []byte, uuid string) (f scanPage, err error) {
	var total, shards []byte
	late := false
	r := jsonedit.NewReader(body)
	for in := r.Enter('{'); in && r.Next(); {
		switch string(r.Key()) {
		case "hits":
			for in := r.Enter('{'); in && r.Next(); {
				switch string(r.Key()) {
				case "hits":
					f.read(&r, uuid, false)
				case "total":
					total = r.Value()
				}
			}
		case "docs":
			f.read(&r, uuid, true)
		case "_shards":
			shards = r.Value()
		case "timed_out": // a limit of the cluster's own, with which it answers what it has found so far
			late = string(r.Value()) == "true"
		case "pit_id":
			f.point, _ = jsonedit.Text(r.Value())
		}
	}
	if !r.Done() {
		return f, fmt.Errorf("a reply that is not understood: %.100q", body)
	}
	if late {
		return f, fmt.Errorf("it was not done within search.default_search_timeout: %w", adapters.ErrBusy)
	}
	members, _ := jsonedit.Members(shards) // a reply by ids has none
	if failed := number(jsonedit.Get(members, "failed")); failed > 0 {
		return f, fmt.Errorf("%d shards failed: run it again when the index is whole", failed)
	}
	members, _ = jsonedit.Members(total) // nor any total, as is not asked for everywhere
	f.total = max(0, int(number(jsonedit.Get(members, "value"))))
	return f, nil
}

// read reads a list of documents; byID says that they were asked for by their ids.
func (f *scanPage) read(r *jsonedit.Reader, uuid string, byID bool) {
	for in := r.Enter('['); in && r.Next(); {
		members, _ := jsonedit.Members(r.Value())
		get := func(key string) []byte { return jsonedit.Get(members, key) }
		id, _ := jsonedit.Text(get("_id"))
		if byID && string(get("found")) != "true" {
			none := absent{id: id}
			if failure := get("error"); failure != nil {
				of, _ := jsonedit.Members(failure) // what is no object has no type
				kind, _ := jsonedit.Text(jsonedit.Get(of, "type"))
				none.failed = kind + ": " + string(failure)
			}
			f.absent = append(f.absent, none)
			continue
		}
		v := version{uuid: uuid, seqNo: number(get("_seq_no")), primaryTerm: number(get("_primary_term")), number: number(get("_version"))}
		v.routing, _ = jsonedit.Text(get("_routing"))
		f.hits, f.sort = append(f.hits, adapters.Stored{ID: id, Source: get("_source"), Version: v}), get("sort")
	}
}

// versionOf returns the version of a document that a scan has read.
func versionOf(d adapters.Stored) version {
	v, _ := d.Version.(version)
	return v
}

// number reads a whole number, or returns -1.
func number(value []byte) int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		return -1
	}
	return n
}
