package elastic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// share is what of a shard's documents belongs to a part: those with a number from one up to, but not with, another. Without an
// end, to is -1.
type share struct {
	shard    int
	from, to int64
}

// preference returns the parameter that directs a search to the shard.
func (s share) preference() string { return "preference=_shards:" + strconv.Itoa(s.shard) }

// numbers returns the query for the share's documents among those of the shard, empty for all of them.
func (s share) numbers() string {
	var bounds []string
	if s.from > 0 {
		bounds = append(bounds, `"gte":`+strconv.FormatInt(s.from, 10))
	}
	if s.to >= 0 {
		bounds = append(bounds, `"lt":`+strconv.FormatInt(s.to, 10))
	}
	if len(bounds) == 0 {
		return ""
	}
	return `{"range":{"_seq_no":{` + strings.Join(bounds, ",") + `}}}`
}

// part is one share of an index, of one shard or several. As text it is a list such as 0:0-49999,1:50000- of shards and the first
// and the last number there.
type part []share

func (p part) String() string {
	var list []string
	for _, s := range p {
		text := strconv.Itoa(s.shard) + ":" + strconv.FormatInt(s.from, 10) + "-"
		if s.to >= 0 {
			text += strconv.FormatInt(s.to-1, 10)
		}
		list = append(list, text)
	}
	return strings.Join(list, ",")
}

func parsePart(text string) (p part, err error) {
	for item := range strings.SplitSeq(text, ",") {
		shard, numbers, _ := strings.Cut(item, ":")
		from, to, isRange := strings.Cut(numbers, "-")
		s := share{to: -1}
		var errs [3]error
		s.shard, errs[0] = strconv.Atoi(shard)
		s.from, errs[1] = strconv.ParseInt(from, 10, 64)
		if to != "" {
			s.to, errs[2] = strconv.ParseInt(to, 10, 64)
			s.to++
		}
		if errors.Join(errs[:]...) != nil || !isRange || s.shard < 0 || s.from < 0 || to != "" && s.to <= s.from {
			return nil, fmt.Errorf("part %q is none of an index: it is a list such as 0:0-49999,1:50000-", text)
		}
		p = append(p, s)
	}
	return p, nil
}

// open reports whether documents can come in later.
func (p part) open() bool { return slices.ContainsFunc(p, func(s share) bool { return s.to < 0 }) }

// after returns where each share goes on, at most where all is settled.
func (p part) after(settled map[int]int64) string {
	var list []string
	for _, s := range p {
		if limit, known := settled[s.shard]; known && s.to < 0 {
			s.from = min(s.from, limit)
		}
		list = append(list, strconv.FormatInt(s.from, 10))
	}
	return strings.Join(list, ",")
}

// from moves the shares on to where an earlier reading ended.
func (p part) from(after string) error {
	if after == "" {
		return nil
	}
	list := strings.Split(after, ",")
	if len(list) != len(p) {
		return fmt.Errorf("the mark %q is of another part than %s", after, p)
	}
	for i, text := range list {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("the mark %q is none of a reading", after)
		}
		p[i].from = max(p[i].from, n)
		if p[i].to >= 0 {
			p[i].from = min(p[i].from, p[i].to)
		}
	}
	return nil
}

// Split returns the names of parts of an index, at least n where it has documents enough: shares of these that are together all
// of them, each once. The last one is open, and holds what is stored later.
func Split(ctx context.Context, store adapters.Store, index string, n int) ([]string, error) {
	s, ok := store.(*Store)
	if !ok {
		return nil, errForeign
	}
	r := &scan{s: s, index: index}
	made, err := s.made(ctx, index)
	settled := s.settled(ctx, index)
	if err == nil {
		err = r.refresh(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("split %s: %w", index, err)
	}
	all := make([]held, made.shards)
	for i := range all {
		if all[i], err = r.held(ctx, i); err != nil {
			return nil, fmt.Errorf("split %s: %w", index, err)
		}
		if limit, known := settled[i]; known {
			all[i].end = min(all[i].end, limit)
		}
	}
	return parted(all, n), nil
}

// held is what one shard holds: so many documents, with numbers from begin up to, but not with, end.
type held struct {
	documents  int
	begin, end int64
	// at are the numbers at which each hundredth part of the documents begins, nil where they are evenly spread.
	at []int64
}

// number returns the number below which that portion of the documents lies.
func (h held) number(portion float64) int64 {
	if h.at != nil {
		return min(h.at[int(portion*float64(len(h.at)))], h.end)
	}
	return min(h.begin+int64(portion*float64(h.end-h.begin)), h.end)
}

// held asks what a shard holds.
func (r *scan) held(ctx context.Context, shard int) (held, error) {
	var reply struct {
		Hits struct {
			Total struct{ Value int }
		}
		Aggregations struct {
			Least, Most struct{ Value float64 }
			At          struct{ Values map[string]float64 }
		}
	}
	on := post(r.index+"/_search", share{shard: shard}.preference(), `{"size":0,"track_total_hits":true,"aggs":{`+
		`"least":{"min":{"field":"_seq_no"}},"most":{"max":{"field":"_seq_no"}}}}`)
	if err := r.s.do(ctx, on, &reply); err != nil || reply.Hits.Total.Value == 0 {
		return held{}, err
	}
	h := held{documents: reply.Hits.Total.Value, begin: int64(reply.Aggregations.Least.Value), end: int64(reply.Aggregations.Most.Value) + 1}
	if int64(h.documents)*5 > (h.end-h.begin)*4 {
		return h, nil
	}
	percents := make([]string, 100)
	for i := range percents {
		percents[i] = strconv.Itoa(i)
	}
	on.body = `{"size":0,"aggs":{"at":{"percentiles":{"field":"_seq_no","percents":[` + strings.Join(percents, ",") + `]}}}}`
	if err := r.s.do(ctx, on, &reply); err != nil {
		return held{}, err
	}
	for _, value := range slices.Sorted(maps.Values(reply.Aggregations.At.Values)) {
		h.at = append(h.at, int64(value))
	}
	return h, nil
}

// partDocuments is how many documents a part has at least where there are fewer parts than wanted for speed, and morePieces how many
// times as many parts there are where there are documents enough: the smaller, the sooner one is done that has to be done again.
const (
	partDocuments = 10000
	morePieces    = 8
	mostPieces    = 64
)

// parted names the parts.
func parted(all []held, n int) (names []string) {
	total := 0
	for _, h := range all {
		total += h.documents
	}
	closed := max(min(total/partDocuments, morePieces*n, mostPieces), min(n-1, total))
	var current part
	tail := make(part, len(all))
	done, next := 0, 1 // documents before the shard; the part under way
	for i, h := range all {
		from := int64(0)
		for next < closed && h.documents > 0 && next*total/closed < done+h.documents {
			portion := float64(next*total/closed-done) / float64(h.documents)
			if to := h.number(portion); to > from {
				current, from = append(current, share{i, from, to}), to
			}
			if next++; len(current) > 0 {
				names, current = append(names, current.String()), nil
			}
		}
		if closed > 0 && h.end > from {
			current, from = append(current, share{i, from, h.end}), h.end
		}
		tail[i] = share{i, from, -1}
		done += h.documents
	}
	if len(current) > 0 {
		names = append(names, current.String())
	}
	return append(names, tail.String())
}
