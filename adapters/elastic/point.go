package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// pointed is a search that goes on in a point in time of its own where it has to: when two readings show that the list has moved
// in between, and when it needs ranks beyond those that the engine lets one read at once, which are then read by a cursor. Where
// the engine grants no point in time, it goes on without.
type pointed struct {
	d       Dialect
	request *adapters.Request
	q       *query
	again   func(limit int) (adapters.Exchange, *collapse) // begins the search anew; limit is how many ranks can be read

	inner  adapters.Exchange
	c      *collapse
	state  pointState
	point  string            // the point in time, when there is one
	wanted *adapters.Request // what was to be asked when it was opened
	short  *adapters.Answer  // or the answer, which the engine's limit cuts short
	failed error             // or why the search could not go on
	deep   *deepReading      // under way
	rounds int               // requests beside those of the search
}

type pointState int

const (
	pointReads   pointState = iota // without a point in time
	pointOpens                     // one is asked for
	pointHolds                     // all is read in it
	pointForgoes                   // the engine grants none
)

// keepPoint is for how long the engine is to keep a point in time beyond each reading, if it is never closed.
const keepPoint = "1m"

// opening are the parameters of a search's URL that are of its indices: with a point in time, they are told when that is opened.
var opening = []string{"routing", "preference", "expand_wildcards"}

// pointless are parameters that engines refuse beside a point in time, or whose meaning changes.
var pointless = []string{
	"index", "ccs_minimize_roundtrips", "ignore_throttled", "allow_no_indices", "ignore_unavailable", "request_cache",
	"terminate_after", "search_type",
}

// points reports whether a search can be made in a point in time and its reply be told from the client's own.
func (d Dialect) points(asked *adapters.Request, q *query) bool {
	path := segments(asked.Path)
	switch {
	case len(path) != 2 || path[1] != "_search" || strings.HasPrefix(path[0], "_") || remote(path[0]),
		q.after != nil || q.limit != maxResultWindow,
		q.has("pit", "retriever", "knn", "rescore", "terminate_after", "profile", "indices_boost", "slice"):
		return false
	}
	return !slices.ContainsFunc(q.params, func(p adapters.Param) bool { return slices.Contains(pointless, p.Name) })
}

// Next implements adapters.Exchange.
func (s *pointed) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply == nil && s.rounds+s.c.rounds > 0 { // none came in time
		return s.lately()
	}
	switch s.state {
	case pointOpens:
		if reply.Status >= 300 {
			return s.forgo()
		}
		if s.point = pointOf(reply.Body); s.point == "" {
			return s.forgo()
		}
		s.state, reply = pointHolds, nil
		if s.rounds += s.c.rounds; s.wanted != nil { // which is never sent
			s.rounds--
		}
		s.begin(0)
	case pointHolds:
		var ask *adapters.Request
		var err error
		switch err = refused(reply.Status); {
		case err != nil && (s.short != nil || reply.Status < 429): // the point in time is gone, or not for us
			return s.forgo()
		case err != nil:
			return nil, nil, err
		}
		if reply, ask, err = s.arrived(reply); err != nil {
			return s.forgo()
		} else if ask != nil && s.c.struck() {
			return s.lately()
		} else if ask != nil {
			s.rounds++
			return ask, nil, nil
		}
	}
	before := s.c.pager.Moved()
	ask, answer, err := s.inner.Next(reply)
	moved := s.c.pager.Moved() > before || errors.Is(err, errMoved) || errors.Is(err, rerank.ErrUnsettled)
	limited := answer != nil && answer.Outcomes[0].Limited
	if s.state == pointReads && (moved || limited) && s.c.struck() {
		if answer != nil {
			return s.through(nil, answer, nil)
		}
		return s.lately()
	}
	if s.state == pointReads && (moved || limited) {
		s.wanted, s.short, s.failed = ask, answer, err
		return s.open()
	}
	return s.through(ask, answer, err)
}

// begin begins the search anew. What the client's own page can be cut from stays.
func (s *pointed) begin(limit int) {
	own := s.c.ownPage
	s.inner, s.c = s.again(limit)
	s.c.ownPage = own
}

// lately ends a search for which the time is over.
func (s *pointed) lately() (*adapters.Request, *adapters.Answer, error) {
	if s.short != nil { // what there is up to the engine's limit
		return s.through(nil, s.short, nil)
	}
	return s.through((&single{request: s.request, collapse: s.c}).lately())
}

// open asks for a point in time.
func (s *pointed) open() (*adapters.Request, *adapters.Answer, error) {
	s.state = pointOpens
	s.rounds++
	r := *s.request
	r.Method, r.Body = "POST", nil
	r.Path = strings.TrimSuffix(strings.TrimRight(r.Path, "/"), "_search") + "_pit"
	if s.d.OpenSearch {
		r.Path = strings.TrimSuffix(r.Path, "_pit") + "_search/point_in_time"
	}
	query := adapters.RawQuery(s.q.params, func(name string) bool { return slices.Contains(opening, name) })
	r.RawQuery = strings.TrimPrefix(query+"&keep_alive="+keepPoint, "&")
	return &r, nil, nil
}

// forgo goes on without a point in time, from where the search was.
func (s *pointed) forgo() (*adapters.Request, *adapters.Answer, error) {
	began := s.state == pointHolds
	s.state, s.deep = pointForgoes, nil
	if s.short != nil {
		return s.through(nil, s.short, nil)
	}
	if !began {
		return s.wanted, nil, s.failed
	}
	s.begin(s.q.limit)
	ask, answer, err := s.inner.Next(nil)
	return s.through(ask, answer, err)
}

// through hands on what the search asks or answers, within the point in time if there is one.
func (s *pointed) through(
	ask *adapters.Request, answer *adapters.Answer, err error,
) (*adapters.Request, *adapters.Answer, error) {
	if answer != nil {
		answer.Outcomes[0].Rounds += s.rounds
		if s.point != "" {
			answer.After = s.closing()
		}
	}
	if err != nil || ask == nil || s.state != pointHolds {
		return ask, answer, err
	}
	if s.deep = deepOf(ask.Body); s.deep != nil {
		if ask, err = s.deep.next(s, ask); err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
	}
	held, err := s.within(ask)
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	return held, nil, nil
}

// within returns a request of the search as one in the point in time.
func (s *pointed) within(ask *adapters.Request) (*adapters.Request, error) {
	r := *ask
	r.Path = "/_search"
	r.RawQuery = adapters.RawQuery(adapters.Params(r.RawQuery), func(name string) bool { return !slices.Contains(opening, name) })
	pit := append(adapters.AppendString([]byte(`{"id":`), s.point), `,"keep_alive":"`+keepPoint+`"}`...)
	body, err := adapters.Set(r.Body, "pit", pit)
	if err == nil && s.byScore() && (s.deep == nil || !s.deep.sorts()) {
		// In a point in time such a sort would have hits come with their sort values and without the best score.
		body, err = adapters.Cut(body, func(key string) bool { return key == "sort" })
		r.RawQuery = adapters.RawQuery(adapters.Params(r.RawQuery), func(name string) bool { return name != "sort" })
	}
	r.Body = body
	return &r, err
}

// byScore reports whether the list is in the order of scores alone, in which hits come without sort values.
func (s *pointed) byScore() bool {
	if value, ok := adapters.Last(s.q.params, "sort"); ok {
		return value == "_score" || value == "_score:desc" || value == ""
	}
	var sort bytes.Buffer
	_ = json.Compact(&sort, adapters.Get(s.q.members, "sort")) // it was read; without one nothing is written
	switch strings.TrimSuffix(strings.TrimPrefix(sort.String(), "["), "]") {
	case ``, `"_score"`, `{"_score":"desc"}`, `{"_score":{"order":"desc"}}`, `{"_score":{}}`:
		return true
	}
	return false
}

// arrived takes a reply from within the point in time and returns it as the engine gives it outside, or what is to be asked
// before it is whole.
func (s *pointed) arrived(reply *adapters.Reply) (*adapters.Reply, *adapters.Request, error) {
	if s.deep != nil {
		whole, ask, err := s.deep.take(s, reply)
		if err != nil || ask == nil {
			s.deep = nil
			return whole, nil, err
		}
		ask, err = s.within(ask)
		return nil, ask, err
	}
	plain, err := s.outside(reply)
	return plain, nil, err
}

// outside returns a reply as the engine gives it without a point in time.
func (s *pointed) outside(reply *adapters.Reply) (*adapters.Reply, error) {
	list, _, err := hitsOf(reply.Body)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, hit := range list {
		plain, err := s.unpointed(hit)
		if err != nil {
			return nil, err
		}
		changed = changed || len(plain) != len(hit)
		list[i] = plain
	}
	out := *reply
	if changed {
		if out.Body, err = withHits(out.Body, list); err != nil {
			return nil, err
		}
	}
	out.Body, err = adapters.Cut(out.Body, func(key string) bool { return key == "pit_id" })
	return &out, err
}

// unpointed returns a hit with the sort values that it has without a point in time: in one, Elasticsearch adds another to tell
// ties apart.
func (s *pointed) unpointed(hit []byte) ([]byte, error) {
	sort := sortOf(hit)
	switch {
	case sort == nil:
		return hit, nil
	case s.byScore():
		return adapters.Cut(hit, func(key string) bool { return key == "sort" })
	case s.d.OpenSearch:
		return hit, nil
	}
	values, err := adapters.Elements(sort)
	if err != nil || len(values) == 0 {
		return hit, err
	}
	return adapters.Set(hit, "sort", joinLike(sort, values[:len(values)-1]))
}

// closing returns the request that gives the point in time back.
func (s *pointed) closing() *adapters.Request {
	r := *s.request
	r.Method, r.Path, r.RawQuery = "DELETE", "/_pit", ""
	r.Body = append(adapters.AppendString([]byte(`{"id":`), s.point), '}')
	if s.d.OpenSearch {
		r.Path = "/_search/point_in_time"
		r.Body = append(adapters.AppendString([]byte(`{"pit_id":[`), s.point), `]}`...)
	}
	r.Header = s.d.withType(r.Header)
	return &r
}

// pointOf returns the name of a point in time that was opened.
func pointOf(reply []byte) string {
	root, err := adapters.Members(reply)
	if err != nil {
		return ""
	}
	for _, key := range []string{"id", "pit_id"} {
		if id, ok := adapters.Text(adapters.Get(root, key)); ok {
			return id
		}
	}
	return ""
}

// numberIn returns a number in a body, or instead.
func numberIn(body []byte, key string, instead int) int {
	members, err := adapters.Members(body)
	if err != nil {
		return instead
	}
	if n, err := strconv.Atoi(string(adapters.Get(members, key))); err == nil {
		return n
	}
	return instead
}
