package elastic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

// A document never leaves its shard, and has a sequence number there that no other one shares, greater than all that were given
// before. So an index is read shard by shard, each in the order of these numbers: nothing comes twice or not at all, a number is
// where to go on, and what changes meanwhile is found behind it.

const (
	// pointHeld is how long a point in time is kept beyond each page. One that is lost is opened anew.
	pointHeld = "10m"
	// scanHeld is how long the engine keeps a scroll between two pages; a throttled job takes its time over one.
	scanHeld = 30 * time.Minute
	// pointTries is how many points in time are lost, without a page from them, before the scan fails.
	pointTries = 3
	// bySeqNo puts hits in the order of their numbers. An index that never had a document nor a mapping knows not even these.
	bySeqNo = `"sort":[{"_seq_no":{"unmapped_type":"long"}}]`
	// pointsAhead is how many points in time are held at once at most.
	pointsAhead = 20
)

// walk reads the documents of a part, or of all, page by page.
func (r *scan) walk(ctx context.Context) error {
	if r.sel.Part == "" && r.made.shards == 0 {
		made, err := r.s.made(ctx, r.index)
		if err != nil {
			return err
		}
		r.made.shards = made.shards
	}
	part, err := r.part()
	if err != nil {
		return err
	}
	settled := map[int]int64{}
	if part.open() {
		settled = r.s.settled(ctx, r.index) // as of before the refresh, which shows all of it
	}
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if r.total, err = r.count(ctx, part); err != nil {
		return err
	}
	return r.walks(ctx, part, settled)
}

// walks reads one share after the other, those of an open part as of before the first page, where the engine grants so many points
// in time: what is written once that is there is found behind them.
func (r *scan) walks(ctx context.Context, p part, settled map[int]int64) error {
	var all []*shardWalk
	defer func() {
		for _, w := range all {
			w.close(ctx)
		}
	}()
	for i := range p {
		if p[i].to >= 0 && p[i].from >= p[i].to { // read before
			continue
		}
		w := &shardWalk{scan: r, share: &p[i], part: p, settled: settled}
		if p[i].to < 0 && r.sel.Part != "" && len(all) > 0 && len(all) < pointsAhead {
			_ = w.open(ctx) // else it is opened when its turn comes
		}
		all = append(all, w)
	}
	for _, w := range all {
		if err := w.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// part returns what is to be read, from where it goes on.
func (r *scan) part() (part, error) {
	if r.sel.Part == "" {
		all := make(part, r.made.shards)
		for i := range all {
			all[i] = share{shard: i, to: -1}
		}
		return all, all.from(r.sel.After)
	}
	p, err := parsePart(r.sel.Part)
	if err != nil {
		return nil, err
	}
	return p, p.from(r.sel.After)
}

// refresh makes what was stored visible to searches.
func (r *scan) refresh(ctx context.Context) (err error) {
	r.d, err = r.s.ask(ctx, esapi.IndicesRefreshRequest{Index: []string{url.PathEscape(r.index)}}, nil)
	return err
}

// count returns how many documents are selected.
func (r *scan) count(ctx context.Context, p part) (total int, err error) {
	if r.sel.Part == "" && r.sel.After == "" {
		p = part{{shard: -1, to: -1}}
	}
	for _, s := range p {
		query := ""
		if s.shard >= 0 {
			query = s.preference()
		}
		body := `{"size":0,"track_total_hits":true,"query":` + r.within(s) + `}`
		found, err := r.search(ctx, post(r.index+"/_search", query, body), 0)
		if err != nil {
			return 0, err
		}
		total += found.total
	}
	return total, nil
}

// within returns the query for what is selected in a share.
func (r *scan) within(s share) string {
	switch numbers := s.numbers(); {
	case numbers == "" && r.query == "":
		return `{"match_all":{}}`
	case numbers == "":
		return r.query
	case r.query == "":
		return numbers
	default:
		return `{"bool":{"filter":[` + r.query + `,` + numbers + `]}}`
	}
}

// settled returns for each shard the number below which every change is stored in all copies; none where the engine won't tell.
// What has a greater number may not be there yet when something behind it is.
func (s *Store) settled(ctx context.Context, index string) map[int]int64 {
	var stats struct {
		Indices map[string]struct {
			Shards map[string][]struct {
				Routing struct{ Primary bool }
				Numbers struct {
					Checkpoint int64 `json:"global_checkpoint"`
				} `json:"seq_no"`
			}
		}
	}
	const shown = "indices.*.shards.*.routing.primary,indices.*.shards.*.seq_no.global_checkpoint"
	r := raw{http.MethodGet, "/" + url.PathEscape(index) + "/_stats/docs", "level=shards&filter_path=" + shown, ""}
	all := map[int]int64{}
	if s.do(ctx, r, &stats) != nil {
		return all
	}
	for _, one := range stats.Indices {
		for name, copies := range one.Shards {
			for _, c := range copies {
				if shard, err := strconv.Atoi(name); err == nil && c.Routing.Primary {
					all[shard] = c.Numbers.Checkpoint + 1
				}
			}
		}
	}
	return all
}

// shardWalk reads a share of one shard, in points in time or, where the engine grants none, by scroll.
type shardWalk struct {
	*scan
	share   *share // from moves on
	part    part
	settled map[int]int64
	point   string
	lost    int // points in time, since the last page
}

func (w *shardWalk) run(ctx context.Context) error {
	begin := w.share.from
	defer func() { w.close(ctx) }()
	for {
		if w.point == "" {
			if err := w.open(ctx); err != nil {
				if !refusedBy(err) || missing(err) && !noSuchPath(err) || errors.Is(err, adapters.ErrBusy) {
					return err
				}
				return w.scroll(ctx, begin)
			}
		}
		n := w.want()
		found, err := w.page(ctx, n)
		switch {
		case tooLong(err) && n > 1:
			w.size = n / 2
			continue
		case missing(err) && w.lost < pointTries:
			w.point, w.lost = "", w.lost+1
			continue
		case err != nil:
			return err
		}
		w.lost = 0
		if found.cursor != "" {
			w.point = found.cursor
		}
		last := len(found.hits) < n
		if err := w.take(found, last, begin); err != nil || last {
			return err
		}
	}
}

// take hands on a page.
func (w *shardWalk) take(found foundHits, last bool, begin int64) error {
	before := w.part.after(w.settled)
	for _, d := range found.hits {
		if d.seqNo < w.share.from { // an index can be without them
			return fmt.Errorf("document %s has no sequence number, or no new one (%d): it can't be read in parts", d.id, d.seqNo)
		}
		w.share.from = d.seqNo + 1
	}
	if settled, known := w.settled[w.share.shard]; known && last && w.share.to < 0 {
		w.share.from = max(w.share.from, settled)
	}
	after := w.part.after(w.settled)
	if len(found.hits) == 0 && after != before && w.share.from > begin {
		return w.moved(after)
	}
	return w.give(found.hits, after, found.length)
}

// moved tells of no documents but where to go on.
func (w *shardWalk) moved(after string) error {
	if err := w.yield(adapters.Page{Total: w.total, After: after}); err != nil {
		return &yieldError{err}
	}
	return nil
}

// noSuchPath reports whether err says that the engine has no points in time, rather than that the index is not there.
func noSuchPath(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && !strings.HasPrefix(r.reason, "index_not_found_exception")
}

// open opens a point in time of the shard.
func (w *shardWalk) open(ctx context.Context) error {
	var reply struct {
		ID    string
		PitID string `json:"pit_id"`
	}
	endpoint := "/_pit"
	if w.d.OpenSearch {
		endpoint = "/_search/point_in_time"
	}
	err := w.s.do(ctx, post(w.index+endpoint, "keep_alive="+pointHeld+"&"+w.share.preference(), ""), &reply)
	w.point = reply.ID + reply.PitID
	if err == nil && w.point == "" {
		err = errors.New("the engine opened a point in time and named none")
	}
	return err
}

// close gives the point in time back.
func (w *shardWalk) close(ctx context.Context) {
	if w.point == "" {
		return
	}
	name := string(adapters.AppendString(nil, w.point))
	w.point = ""
	if w.d.OpenSearch {
		w.s.after(ctx, raw{http.MethodDelete, "/_search/point_in_time", "", `{"pit_id":[` + name + `]}`})
		return
	}
	w.s.after(ctx, raw{http.MethodDelete, "/_pit", "", `{"id":` + name + `}`})
}

// page reads the next documents of the point in time.
func (w *shardWalk) page(ctx context.Context, n int) (foundHits, error) {
	behind := ""
	if w.share.from > 0 {
		behind = `"search_after":[` + strconv.FormatInt(w.share.from-1, 10) + `],`
	}
	whole := *w.share
	whole.from = 0 // told by the cursor; alike on all pages, the query can be kept
	body := `{"pit":{"id":` + string(adapters.AppendString(nil, w.point)) + `,"keep_alive":"` + pointHeld + `"},"size":` +
		strconv.Itoa(n) + `,` + w.source + behind + bySeqNo + `,"seq_no_primary_term":true,"track_total_hits":false,"query":` +
		w.within(whole) + `}`
	return w.search(ctx, raw{http.MethodPost, "/_search", w.s.shared.past(w.index), body}, scanLimit)
}

// scroll reads the share by scroll.
func (w *shardWalk) scroll(ctx context.Context, begin int64) error {
	body := `{"size":` + strconv.Itoa(scanFirst) + `,` + w.source + bySeqNo + `,"seq_no_primary_term":true,"query":` +
		w.within(*w.share) + `}`
	found, err := w.search(ctx, post(w.index+"/_search", scrolling+"&"+w.share.preference(), body), 0)
	if err != nil {
		return err
	}
	err = w.scrolled(ctx, found, func(found foundHits) error { return w.take(found, false, begin) })
	if err != nil {
		return err
	}
	return w.take(foundHits{}, true, begin)
}
