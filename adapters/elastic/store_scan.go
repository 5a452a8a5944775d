package elastic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// This file holds the ordinary scan, of a part of an index or of all of it, and how a reply's documents are read; store_select.go holds the others.
//
// A document never leaves its shard, and has a sequence number there that no other one shares, greater than all that were given
// before. So an index is read shard by shard, each in the order of these numbers: nothing comes twice or not at all, a number is
// where to go on, and what changes meanwhile comes after it.

const (
	// scanFirst is how many documents the first page of a scan holds, scanMost how many any page holds at most.
	scanFirst, scanMost = 100, 1000
	// scanBytes is how large a reply is meant to be, and scanLimit how large it may be at all: a larger one is not read to its end,
	// but asked for again in smaller pages.
	scanBytes, scanLimit = 4 << 20, 64 << 20
	// pointHeld is how long a point in time is kept beyond each page. One that is lost is opened again.
	pointHeld = "10m"
	// pointTries is how many points in time are lost, without a page from them, before the scan fails.
	pointTries = 3
	// bySeqNo puts hits in the order of their numbers. An index that never had a document nor a mapping knows not even these.
	bySeqNo = `"sort":[{"_seq_no":{"unmapped_type":"long"}}]`
)

// scan is one reading of documents under way.
type scan struct {
	s      *Store
	index  string
	sel    adapters.Selection
	yield  func(adapters.Page) error
	query  string // for what is selected, beside the part
	source string // which part of the documents is read, as a member of a body, or empty for all of it
	uuid   string // of the index
	shards int    // how many it has
	// vectors says that vectors are shown only where they are asked for.
	vectors bool
	// settled has for each shard the number below which every change is stored in all copies. The mark of an open range never goes beyond it.
	settled map[int]int64
	total   int
	left    int  // how much of a limit is left
	size    int  // how many documents the next page holds
	live    bool // the engine grants no points in time
}

// Scan implements adapters.Store. Ordinarily it reads a part of an index, each shard in a point in time (readShards). Without a part or ids it sees what
// was stored before it began, and nothing later. Chosen by ids, documents are read as they are at that moment; chosen by bands, with a limit that one
// search can serve, as of the engine's last refresh.
func (s *Store) Scan(ctx context.Context, index string, _ *rule.Rule, sel adapters.Selection, yield func(adapters.Page) error) error {
	var stopped error // by yield
	r := &scan{s: s, index: index, sel: sel, left: sel.Limit, size: scanFirst, yield: func(p adapters.Page) error {
		stopped = yield(p)
		return stopped
	}}
	if sel.Brief {
		r.source = `"_source":` + string(stringsOf(append(slices.Clone(rule.OurFields), sel.Fields...))) + `,`
	}
	err := r.prepare(ctx)
	if err == nil {
		switch {
		case sel.Random:
			err = r.readSample(ctx)
		case sel.IDs != nil:
			err = r.readByIDs(ctx, sel.IDs)
		case r.bandsInOneSearch():
			err = r.readByBands(ctx)
		default:
			err = r.readShards(ctx)
		}
	}
	switch {
	case err == nil, errors.Is(err, adapters.ErrEnough):
		return nil
	case stopped != nil:
		return stopped
	}
	return fmt.Errorf("scan %s: %w", index, err)
}

// prepare sets the query, and reads the index's UUID, its number of shards and whether it hides vectors. It fails if the index can't be written to.
func (r *scan) prepare(ctx context.Context) error {
	if err := r.filter(ctx); err != nil {
		return err
	}
	quick := r.sel.Random || r.sel.Part != "" || r.sel.IDs != nil || r.bandsInOneSearch()
	if r.sel.Brief && quick { // nothing of it will be written, and some of it has to be quick
		return nil
	}
	is, err := r.s.traitsOf(ctx, r.index)
	if err == nil && !r.sel.Brief && is.partial != "" {
		err = is.writable()
	}
	r.uuid, r.shards, r.vectors = is.uuid, is.shards, is.vectors
	return err
}

// filter sets the query of what is selected, beside the part.
func (r *scan) filter(ctx context.Context) error {
	var filters []string
	if q := strings.TrimSpace(r.sel.Query); q != "" {
		if members, err := jsonedit.Members([]byte(q)); err != nil || len(members) == 0 {
			return fmt.Errorf(`the query %q is no query in JSON, such as {"term":{"language":"en"}}`, q)
		}
		filters = append(filters, q)
	}
	if r.sel.Bands != nil {
		filters = append(filters, anyBand(r.sel.Bands))
	}
	if r.sel.Marked {
		list, err := r.s.Resolve(ctx, r.index)
		if err != nil {
			return err
		}
		if len(list) == 1 && list[0].Mapped { // else the engine can't tell which documents have the field
			exist := `{"exists":{"field":"` + strings.Join(rule.OurFields, `"}},{"exists":{"field":"`) + `"}}`
			filters = append(filters, `{"bool":{"should":[`+exist+`]}}`)
		}
	}
	r.query = allOf(filters...)
	return nil
}

// readShards reads the documents of a part, or of all, page by page. For an open part all points in time are opened before the first page, as far as
// the engine grants them, so that this scan shows nothing that is written later.
func (r *scan) readShards(ctx context.Context) error {
	p, err := r.part()
	if err != nil {
		return err
	}
	if p.open() {
		r.settled = r.s.settled(ctx, r.index) // as of before the refresh, which shows all of it
	}
	if err := r.s.refresh(ctx, r.index); err != nil {
		return err
	}
	if r.sel.Part == "" && r.sel.After == "" {
		all, err := r.search(ctx, post(r.index+"/_search", "", `{"size":0,"track_total_hits":true,"query":`+r.query+`}`))
		if err != nil {
			return err
		}
		r.total = all.total
	}
	defer func() {
		for i := range p {
			r.closePoint(ctx, &p[i])
		}
	}()
	for i := range p {
		if p[i].to < 0 && r.sel.Part != "" && len(p) > 1 {
			_ = r.openPoint(ctx, &p[i]) // else it is opened when its turn comes
		}
	}
	for i, s := range p {
		if s.to >= 0 && s.next >= s.to { // read before
			continue
		}
		if err := r.readShard(ctx, p, i); err != nil {
			return err
		}
		r.closePoint(ctx, &p[i])
	}
	return nil
}

// part returns what is to be read, from where it goes on.
func (r *scan) part() (p part, err error) {
	if r.sel.Part != "" {
		if p, err = parsePart(r.sel.Part); err != nil {
			return nil, err
		}
	}
	for shard := 0; r.sel.Part == "" && shard < r.shards; shard++ {
		p = append(p, shardRange{shard: shard, to: -1})
	}
	return p, p.moveOn(r.sel.After)
}

// readShard reads a range of one shard, page by page.
func (r *scan) readShard(ctx context.Context, p part, i int) error {
	for {
		hits, last, err := r.nextPage(ctx, &p[i])
		if err == nil {
			err = r.yieldHits(p, i, hits, last)
		}
		if err != nil || last {
			return err
		}
	}
}

// nextPage reads the next page of a range, and reports whether it is the last. It reads in a point in time. If there is no point yet, or the engine has
// lost it, it opens one. If a reply is too long, it asks for fewer documents. If the engine grants no point, each page shows the shard as it is at that
// moment, so a document that changes between two pages may come twice.
func (r *scan) nextPage(ctx context.Context, s *shardRange) (hits []adapters.Stored, last bool, err error) {
	for lost := 0; ; {
		if s.point == "" && !r.live {
			switch err := r.openPoint(ctx, s); {
			case err == nil:
			case !refusedBy(err), lostBy(err), errors.Is(err, adapters.ErrBusy):
				return nil, false, err
			default:
				r.live = true
			}
		}
		n := r.want()
		hits, point, err := r.page(ctx, *s, n)
		switch {
		case errors.Is(err, errTooLong) && n > 1:
			r.size = n / 2
		case missing(err) && s.point != "" && lost < pointTries:
			s.point, lost = "", lost+1
		case err != nil:
			return nil, false, err
		default:
			s.point = cmp.Or(point, s.point)
			return hits, len(hits) < n, nil
		}
	}
}

// want is how many documents to ask for.
func (r *scan) want() int {
	if r.sel.Limit > 0 {
		return min(r.size, r.left)
	}
	return r.size
}

// page reads the next n documents of a range, in its point in time if there is one. The point that is returned, if any, is to be used from
// then on.
func (r *scan) page(ctx context.Context, s shardRange, n int) (hits []adapters.Stored, point string, err error) {
	body := `{"size":` + strconv.Itoa(n) + `,` + r.source + bySeqNo + `,"seq_no_primary_term":true,"track_total_hits":false`
	if s.next > 0 {
		body += `,"search_after":[` + strconv.FormatInt(s.next-1, 10) + `]`
	}
	body += `,"query":` + allOf(r.query, s.beforeEnd())
	request := post(r.index+"/_search", s.preference(), body+`}`)
	if s.point != "" {
		body += `,"pit":{"id":` + string(jsonedit.AppendString(nil, s.point)) + `,"keep_alive":"` + pointHeld + `"}}`
		request = raw{http.MethodPost, "/_search", "", body}
	}
	found, err := r.search(ctx, request)
	return found.hits, found.point, err
}

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

// search asks for documents, with their vectors if they are to be written again, and chooses the size of the next page by the reply's length. It
// fails where it was not answered for all that it concerns.
func (r *scan) search(ctx context.Context, request raw) (found scanPage, err error) {
	if r.vectors && !r.sel.Brief {
		request.query = strings.TrimPrefix(request.query+"&"+withVectors, "&")
	}
	body, err := r.s.body(ctx, request, scanLimit)
	if err == nil {
		found, err = readScanPage(body, r.uuid)
	}
	if n := len(found.hits); err == nil && n > 0 {
		r.size = min(max(scanBytes/(len(body)/n+1), 1), 2*r.size, scanMost)
	}
	return found, err
}

// readScanPage reads a reply of documents. It reads each document's bytes twice; by jsonedit.Members alone, four times. uuid is that of the index.
func readScanPage(body []byte, uuid string) (f scanPage, err error) {
	var total, shards []byte
	late := false
	d := jsonedit.NewReader(body)
	for in := d.Enter('{'); in && d.Next(); {
		switch string(d.Key()) {
		case "hits":
			for in := d.Enter('{'); in && d.Next(); {
				switch string(d.Key()) {
				case "hits":
					f.read(&d, uuid, false)
				case "total":
					total = d.Value()
				}
			}
		case "docs":
			f.read(&d, uuid, true)
		case "_shards":
			shards = d.Value()
		case "timed_out": // a limit of the cluster's own, with which it answers what it has found so far
			late = string(d.Value()) == "true"
		case "pit_id":
			f.point, _ = jsonedit.Text(d.Value())
		}
	}
	if !d.Done() {
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
func (f *scanPage) read(d *jsonedit.Reader, uuid string, byID bool) {
	for in := d.Enter('['); in && d.Next(); {
		members, _ := jsonedit.Members(d.Value())
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
		routing, _ := jsonedit.Text(get("_routing"))
		f.hits, f.sort = append(f.hits, adapters.Stored{ID: id, Routing: routing, Source: get("_source"), Version: v}), get("sort")
	}
}

// version is the state of a document that a patch must meet.
type version struct {
	seqNo, primaryTerm int64
	// number is the document's version; known of those that were read by their ids alone.
	number int64
	// uuid is the index's.
	uuid string
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

// yieldHits yields a page of a shard; last says that there is no more.
func (r *scan) yieldHits(p part, i int, hits []adapters.Stored, last bool) error {
	before, s := p.mark(r.settled), &p[i]
	for _, d := range hits {
		seqNo := versionOf(d).seqNo
		if seqNo < s.next { // an index can keep no sequence numbers
			return fmt.Errorf("document %s has no sequence number, or no new one (%d): it can't be read in parts", d.ID, seqNo)
		}
		s.next = seqNo + 1
	}
	if settled, known := r.settled[s.shard]; known && last && s.to < 0 {
		s.next = max(s.next, settled)
	}
	after := p.mark(r.settled)
	if len(hits) == 0 && after != before {
		return r.yield(adapters.Page{Total: r.total, After: after})
	}
	return r.yieldDocuments(hits, after)
}

// yieldDocuments yields documents of one reply.
func (r *scan) yieldDocuments(documents []adapters.Stored, after string) error {
	if len(documents) == 0 {
		return nil
	}
	if r.sel.Limit > 0 {
		documents = documents[:min(len(documents), r.left)]
		r.left -= len(documents)
	}
	if err := r.yield(adapters.Page{Total: r.total, Documents: documents, After: after}); err != nil {
		return err
	}
	if r.sel.Limit > 0 && r.left == 0 {
		return adapters.ErrEnough
	}
	return nil
}

// openPoint opens a point in time of a shard.
func (r *scan) openPoint(ctx context.Context, s *shardRange) error {
	var reply struct {
		ID    string
		PitID string `json:"pit_id"`
	}
	endpoint := "/_pit"
	if r.s.dialect().OpenSearch {
		endpoint = "/_search/point_in_time"
	}
	err := r.s.do(ctx, post(r.index+endpoint, "keep_alive="+pointHeld+"&"+s.preference(), ""), &reply)
	if s.point = reply.ID + reply.PitID; err == nil && s.point == "" {
		err = errors.New("the engine opened a point in time and named none")
	}
	return err
}

// closePoint closes the point in time of a range, if there is one.
func (r *scan) closePoint(ctx context.Context, s *shardRange) {
	switch name := string(jsonedit.AppendString(nil, s.point)); {
	case s.point == "":
	case r.s.dialect().OpenSearch:
		r.s.tidyUp(ctx, raw{http.MethodDelete, "/_search/point_in_time", "", `{"pit_id":[` + name + `]}`})
	default:
		r.s.tidyUp(ctx, raw{http.MethodDelete, "/_pit", "", `{"id":` + name + `}`})
	}
	s.point = ""
}

// refresh makes what was stored visible to searches.
func (s *Store) refresh(ctx context.Context, index string) error {
	return s.do(ctx, esapi.IndicesRefreshRequest{Index: []string{url.PathEscape(index)}}, nil)
}

// allOf returns the query for documents that all of some queries find; an empty one does not count.
func allOf(queries ...string) string {
	queries = slices.DeleteFunc(queries, func(q string) bool { return q == "" })
	return `{"bool":{"filter":[` + strings.Join(queries, ",") + `]}}`
}
