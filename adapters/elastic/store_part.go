package elastic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// This file holds the parts that an index is read in: their names, how far each is read, and how an index is split into them.

// shardRange is what is left to read of a shard's documents that belong to a part: those with a number from next up to, but not with, to.
// Without an end, to is -1.
type shardRange struct {
	shard    int
	next, to int64
	point    string // a point in time of the shard, while it is read
}

// preference returns the parameter that directs a search to the shard.
func (s shardRange) preference() string { return "preference=_shards:" + strconv.Itoa(s.shard) }

// beforeEnd returns the query for the documents before the range's end, empty for all of them. A cursor says where it goes on: alike on all
// pages, the query can be cached.
func (s shardRange) beforeEnd() string {
	if s.to < 0 {
		return ""
	}
	return fmt.Sprintf(`{"range":{"_seq_no":{"gte":0,"lt":%d}}}`, s.to)
}

// part is some of an index, of one shard or several. As text it is a list such as 0:0-49999,1:50000- of shards and the first
// and the last number there.
type part []shardRange

func (p part) String() string {
	var list []string
	for _, s := range p {
		text := strconv.Itoa(s.shard) + ":" + strconv.FormatInt(s.next, 10) + "-"
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
		s := shardRange{to: -1}
		var errs [3]error
		s.shard, errs[0] = strconv.Atoi(shard)
		s.next, errs[1] = strconv.ParseInt(from, 10, 64)
		if to != "" {
			s.to, errs[2] = strconv.ParseInt(to, 10, 64)
			s.to++
		}
		if errors.Join(errs[:]...) != nil || !isRange || s.shard < 0 || s.next < 0 || to != "" && s.to <= s.next {
			return nil, fmt.Errorf("%q is no part of an index: a part is a list such as 0:0-49999,1:50000-", text)
		}
		p = append(p, s)
	}
	return p, nil
}

// open reports whether documents can come in later.
func (p part) open() bool { return slices.ContainsFunc(p, func(s shardRange) bool { return s.to < 0 }) }

// mark returns where each range goes on. An open range is marked no further than its settled number: below it, every change is in all copies.
func (p part) mark(settled map[int]int64) string {
	var list []string
	for _, s := range p {
		if limit, known := settled[s.shard]; known && s.to < 0 {
			s.next = min(s.next, limit)
		}
		list = append(list, strconv.FormatInt(s.next, 10))
	}
	return strings.Join(list, ",")
}

// moveOn moves the ranges on to where an earlier reading ended.
func (p part) moveOn(after string) error {
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
			return fmt.Errorf("%q does not say where a scan goes on", after)
		}
		p[i].next = max(p[i].next, n)
		if p[i].to >= 0 {
			p[i].next = min(p[i].next, p[i].to)
		}
	}
	return nil
}

// Split implements adapters.JobStore. The last part is open, and holds what is stored later.
func (s *Store) Split(ctx context.Context, index, query string, n int) (parts []string, documents int, err error) {
	r := &scan{s: s, index: index, sel: adapters.Selection{Query: query}}
	if err = r.filter(ctx); err != nil {
		return nil, 0, err
	}
	traits, err := s.traitsOf(ctx, index)
	settled := s.settled(ctx, index)
	if err == nil {
		err = r.s.refresh(ctx, r.index)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("split %s: %w", index, err)
	}
	all, counts := make(part, traits.shards), make([]int, traits.shards)
	for i := range all {
		if all[i], counts[i], err = r.numbersOf(ctx, i); err != nil {
			return nil, 0, fmt.Errorf("split %s: %w", index, err)
		}
		documents += counts[i]
		if limit, known := settled[i]; known {
			all[i].to = min(all[i].to, limit)
		}
	}
	return parted(all, counts, n), documents, nil
}

// settled returns for each shard the number below which every change is stored in all copies; none where the engine won't tell.
// A change with a greater number may become visible after one with a number that is greater still.
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
	_ = s.do(ctx, r, &stats)
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

// numbersOf returns how many documents a shard holds, and from which sequence number to which.
func (r *scan) numbersOf(ctx context.Context, shard int) (all shardRange, documents int, err error) {
	var reply struct {
		Hits struct {
			Total struct{ Value int }
		}
		Aggregations struct {
			Least, Most struct{ Value float64 }
		}
	}
	all.shard = shard
	err = r.s.do(ctx, post(r.index+"/_search", all.preference(), `{"size":0,"query":`+r.query+`,"track_total_hits":true,`+
		`"aggs":{"least":{"min":{"field":"_seq_no"}},"most":{"max":{"field":"_seq_no"}}}}`), &reply)
	if documents = reply.Hits.Total.Value; err == nil && documents > 0 {
		all.next, all.to = int64(reply.Aggregations.Least.Value), int64(reply.Aggregations.Most.Value)+1
	}
	return all, documents, err
}

// partDocuments is how many documents a part has at least where there are fewer parts than wanted for speed, and morePieces how many
// times as many parts there are where there are documents enough: the smaller, the sooner one is done that has to be done again. No more
// than mostPieces are asked for; each shard rounds up.
const (
	partDocuments = 10000
	morePieces    = 8
	mostPieces    = 64
)

// parted returns the names of the parts of shards, each with its number of documents: stretches of each shard, in proportion to its
// documents, and one part for what follows them in any.
func parted(all part, documents []int, n int) (names []string) {
	total := 0
	for _, count := range documents {
		total += count
	}
	closed := max(min(total/partDocuments, morePieces*n, mostPieces), min(n-1, total))
	tail := make(part, len(all))
	for i, s := range all {
		tail[i] = shardRange{shard: i, to: -1}
		pieces := int64((closed*documents[i] + total - 1) / max(1, total))
		for k := range pieces {
			if to := s.next + (s.to-s.next)*(k+1)/pieces; to > tail[i].next {
				names = append(names, part{{shard: i, next: tail[i].next, to: to}}.String())
				tail[i].next = to
			}
		}
	}
	return append(names, tail.String())
}
