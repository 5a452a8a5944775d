package embedded

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

func searchShards(n int) string {
	return fmt.Sprintf(`{"total":%d,"successful":%d,"skipped":0,"failed":0}`, n, n)
}

// page renders the hits from the given rank on as the reply to a search.
func (s *searchRequest) page(all found, from int, scrollID string, start time.Time) []byte {
	b := []byte{'{'}
	if scrollID != "" {
		b = append(appendJSON(append(b, `"_scroll_id":`...), scrollID), ',')
	}
	b = fmt.Appendf(b, `"took":%d,"timed_out":false,"_shards":%s,"hits":{`, time.Since(start).Milliseconds(), searchShards(all.shards))
	if n := len(all.hits); s.track >= 0 && n > s.track {
		b = fmt.Appendf(b, `"total":{"value":%d,"relation":"gte"},`, s.track)
	} else if s.track >= 0 {
		b = fmt.Appendf(b, `"total":{"value":%d,"relation":"eq"},`, n)
	}
	hits := all.hits[min(from, len(all.hits)):]
	hits = hits[:min(s.size, len(hits))]
	b = append(b, `"max_score":`...)
	if all.shards > 0 && (s.sorted() && !s.trackScores || len(hits) == 0) {
		b = append(b, "null"...)
	} else {
		b = appendScore(b, all.maxScore)
	}
	b = append(b, `,"hits":[`...)
	for i, h := range hits {
		if i > 0 {
			b = append(b, ',')
		}
		b = s.appendHit(b, h)
	}
	return append(b, "]}}"...)
}

// sorted says whether hits come in another order than that of their scores alone.
func (s *searchRequest) sorted() bool {
	return len(s.sort) > 1 || len(s.sort) == 1 && (s.sort[0].field != "_score" || !s.sort[0].desc)
}

func (s *searchRequest) appendHit(b []byte, h hit) []byte {
	b = appendJSON(append(b, `{"_index":`...), h.index.name)
	b = appendJSON(append(b, `,"_id":`...), h.id)
	if s.version {
		b = fmt.Appendf(b, `,"_version":%d`, h.version)
	}
	if s.seqNo {
		b = fmt.Appendf(b, `,"_seq_no":%d,"_primary_term":1`, h.seqNo)
	}
	b = append(b, `,"_score":`...)
	if scored := !s.sorted() || s.trackScores || slices.ContainsFunc(s.sort, func(k sortKey) bool { return k.field == "_score" }); scored {
		b = appendScore(b, h.score)
	} else {
		b = append(b, "null"...)
	}
	if len(h.ignored) > 0 {
		b = appendJSON(append(b, `,"_ignored":`...), h.ignored)
	}
	if !s.source.off {
		b = append(append(b, `,"_source":`...), s.source.apply(h.source)...)
	}
	if fields := s.fieldsOf(h); len(fields) > 0 {
		b = appendJSON(append(b, `,"fields":`...), fields)
	}
	if s.sorted() {
		b = append(b, `,"sort":[`...)
		for i, k := range s.sort {
			if i > 0 {
				b = append(b, ',')
			}
			b = k.appendValue(b, h)
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// fieldsOf gathers what docvalue_fields and fields ask for.
func (s *searchRequest) fieldsOf(h hit) map[string][]any {
	out := map[string][]any{}
	add := func(name string, values []any) {
		f := h.index.lookup(name)
		shown := make([]any, len(values))
		for i, v := range values {
			shown[i] = f.show(v)
		}
		if len(shown) > 0 {
			out[name] = shown
		}
	}
	for _, name := range h.index.names(s.fields...) {
		add(name, h.document.fields[name])
	}
	for _, name := range h.index.names(s.docValues...) {
		if f := h.index.lookup(name); f.docValues() { // sorted, and keywords once each
			values := slices.SortedFunc(slices.Values(h.document.fields[name]), compare)
			if f.kind() == "keyword" {
				values = slices.Compact(values)
			}
			add(name, values)
			if f.Type == "date" && slices.Contains(s.millis, name) {
				for i, v := range values {
					out[name][i] = text(v)
				}
			}
		}
	}
	return out
}

// appendValue appends a hit's sort value, for a missing number the value that Elasticsearch uses.
func (k sortKey) appendValue(b []byte, h hit) []byte {
	v := k.of(h)
	f := h.index.lookup(k.field)
	switch {
	case k.field == "_score":
		return appendScore(b, h.score)
	case v == nil && f != nil && f.kind() != "keyword":
		low := k.desc != k.missingFirst
		switch {
		case f.kind() == "double" && low:
			return append(b, `"-Infinity"`...)
		case f.kind() == "double":
			return append(b, `"Infinity"`...)
		case low:
			return strconv.AppendInt(b, math.MinInt64, 10)
		}
		return strconv.AppendInt(b, math.MaxInt64, 10)
	case v == true:
		v = 1
	case v == false:
		v = 0
	}
	return appendJSON(b, v)
}

// appendScore writes a score with its point, as Elasticsearch does.
func appendScore(b []byte, score float32) []byte {
	s := strconv.FormatFloat(float64(score), 'f', -1, 32)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return append(b, s...)
}

// scroll is a search that is being read page by page. It keeps the documents as they were when it began.
type scroll struct {
	*searchRequest
	all     found
	from    int
	expires time.Time
}

const maxScrolls = 500

// keepAlive reads how long a scroll is kept.
func keepAlive(s string) (time.Duration, error) {
	unit := strings.TrimLeft(s, "0123456789")
	n, err := strconv.Atoi(strings.TrimSuffix(s, unit))
	of := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[unit]
	if err != nil || of == 0 || n > math.MaxInt32 {
		return 0, illegal("failed to parse setting [scroll] with value [%s] as a time value", s)
	}
	return min(time.Duration(n)*of, 24*time.Hour), nil
}

func (e *Engine) startScroll(r *request, s *searchRequest, list []*index) (int, any, error) {
	keep, err := keepAlive(r.params.Get("scroll"))
	switch {
	case err != nil:
		return 0, nil, err
	case s.from > 0:
		return 0, nil, invalid("using [from] is not allowed in a scroll context")
	case s.size == 0:
		return 0, nil, invalid("[size] cannot be [0] in a scroll context")
	}
	all, err := s.find(list)
	if err != nil {
		return 0, nil, err
	}
	for id, c := range e.scrolls {
		if time.Now().After(c.expires) {
			delete(e.scrolls, id)
		}
	}
	if len(e.scrolls) >= maxScrolls {
		return 0, nil, fail(http.StatusTooManyRequests, "too_many_scroll_contexts_exception", "Trying to create too many scroll contexts. "+
			"Must be less than or equal to: [%d].", maxScrolls)
	}
	id := rand.Text()
	if s.track < math.MaxInt {
		s.track = math.MaxInt // a scroll always counts all
	}
	e.scrolls[id] = &scroll{s, all, s.size, time.Now().Add(keep)}
	return http.StatusOK, s.page(all, 0, id, r.start), nil
}

// scrollIDs reads which scrolls a request is about.
func scrollIDs(r *request) (ids []string, keep string, err error) {
	var body struct {
		ID     json.RawMessage `json:"scroll_id"`
		Scroll string          `json:"scroll"`
	}
	if len(r.body) > 0 {
		if err = decode(r.body, &body); err == nil && body.ID != nil {
			ids, err = stringList(body.ID)
		}
	}
	for _, id := range []string{r.params.Get("scroll_id"), r.PathValue("id")} {
		if id != "" {
			ids = strings.Split(id, ",")
		}
	}
	if r.params.Has("scroll") {
		body.Scroll = r.params.Get("scroll")
	}
	return ids, body.Scroll, err
}

func (e *Engine) nextScroll(r *request) (int, any, error) {
	ids, keep, err := scrollIDs(r)
	if err != nil {
		return 0, nil, err
	}
	if len(ids) != 1 {
		return 0, nil, invalid("scrollId is missing")
	}
	c := e.scrolls[ids[0]]
	if c == nil || time.Now().After(c.expires) {
		f := fail(http.StatusNotFound, "search_context_missing_exception", "No search context found for id [%s]", ids[0])
		f.shard = "_na_"
		return 0, nil, f
	}
	if keep != "" {
		d, err := keepAlive(keep)
		if err != nil {
			return 0, nil, err
		}
		c.expires = time.Now().Add(d)
	}
	from := c.from
	c.from = min(from+c.size, len(c.all.hits))
	return http.StatusOK, c.page(c.all, from, ids[0], r.start), nil
}

func (e *Engine) clearScroll(r *request) (int, any, error) {
	ids, _, err := scrollIDs(r)
	if err != nil {
		return 0, nil, err
	}
	if len(ids) == 0 {
		return 0, nil, invalid("no scroll ids specified")
	}
	before := len(e.scrolls)
	for _, id := range ids {
		delete(e.scrolls, id)
		if id == "_all" {
			clear(e.scrolls)
		}
	}
	status, freed := http.StatusOK, before-len(e.scrolls)
	if freed == 0 && ids[0] != "_all" {
		status = http.StatusNotFound
	}
	return status, fmt.Appendf(nil, `{"succeeded":true,"num_freed":%d}`, freed), nil
}
