package elastic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// pointed is a search that is made in a point in time of ours.
type pointed struct {
	clientSearch
	id string
	// scored says that the list is in the order of scores alone, in which hits come without sort values.
	scored bool
}

// keepPoint is for how long the engine is to keep a point in time beyond each reading, if it is never closed.
const keepPoint = "1m"

// opening are the parameters of a search's URL that concern its indices: they go into the request that opens a point in time.
var opening = []string{"routing", "preference", "expand_wildcards"}

// pointless are parameters that engines refuse beside a point in time, or whose meaning changes.
var pointless = []string{
	"index", "ccs_minimize_roundtrips", "ignore_throttled", "allow_no_indices", "ignore_unavailable", "request_cache",
	"terminate_after", "search_type",
}

// allowsPoint reports whether a search can be made in a point in time, with a reply like that of the client's own.
func (q *clientSearch) allowsPoint(path []string) bool {
	switch {
	case len(path) != 2 || path[1] != "_search" || strings.HasPrefix(path[0], "_") || remote(path[0]),
		q.after != nil || q.asked.Limit != maxResultWindow || q.raised != nil || q.fused != nil || q.asked.Scope.DryRun,
		q.has("pit", "retriever", "knn", "rescore", "terminate_after", "profile", "indices_boost", "slice"):
		return false
	}
	return !q.hasParam(pointless...)
}

// Open implements adapters.Point.
func (q *clientSearch) Open() *adapters.Request {
	r := *q.sent
	r.Method, r.Body = "POST", nil
	r.Path = strings.TrimSuffix(strings.TrimRight(r.Path, "/"), "_search") + "_pit"
	if q.d.OpenSearch {
		r.Path = strings.TrimSuffix(r.Path, "_pit") + "_search/point_in_time"
	}
	query := adapters.RawQuery(q.params, func(name string) bool { return slices.Contains(opening, name) })
	r.RawQuery = strings.TrimPrefix(query+"&keep_alive="+keepPoint, "&")
	if q.d.OpenSearch { // else, near its limit, it opens it for some of the shards, and a search in it tells nothing of the others
		r.RawQuery += "&allow_partial_pit_creation=false"
	}
	r.Undo = func(reply *adapters.Reply) *adapters.Request {
		_, giveBack := q.In(reply)
		return giveBack
	}
	return &r
}

// In implements adapters.Point.
func (q *clientSearch) In(reply *adapters.Reply) (in adapters.Search, giveBack *adapters.Request) {
	root, err := jsonedit.Members(reply.Body)
	if err != nil {
		return nil, nil
	}
	id, ok := jsonedit.Text(jsonedit.Get(root, "id"))
	if !ok {
		id, ok = jsonedit.Text(jsonedit.Get(root, "pit_id"))
	}
	if !ok || id == "" {
		return nil, nil
	}
	p, request, last := &pointed{*q, id, q.byScore()}, *q.sent, *q.sent
	p.asked.Limit, p.asked.Point = 0, nil
	p.sent, request.Path = &request, "/_search"
	last.Method, last.Path, last.RawQuery, last.Unanswered = "DELETE", "/_pit", "", true
	last.Body = append(jsonedit.AppendString([]byte(`{"id":`), id), '}')
	if q.d.OpenSearch {
		last.Path = "/_search/point_in_time"
		last.Body = append(jsonedit.AppendString([]byte(`{"pit_id":[`), id), `]}`...)
	}
	last.Header = q.d.withType(last.Header)
	return p, &last
}

// Requests implements adapters.Search: several requests, one after the other, for a reading that goes beyond the engine's limit.
func (q *pointed) Requests(r *adapters.Reading, replies []*adapters.Reply) ([]*adapters.Request, error) {
	if r.AsWritten {
		return q.clientSearch.Requests(r, replies)
	}
	if len(replies) == 0 && r.Ranks != nil {
		if err := q.pick(r); err != nil {
			return nil, err
		}
	}
	switch {
	case deep(r):
		return q.requestDeep(r, replies)
	case len(replies) > 0:
		return nil, nil
	}
	return q.request(r, nil, false)
}

// Listing implements adapters.Search: the replies are made one that the engine would give without the point in time.
func (q *pointed) Listing(r *adapters.Reading, replies []*adapters.Reply) (*adapters.Listing, error) {
	if r.AsWritten {
		return q.clientSearch.Listing(r, replies)
	}
	reply, err := replies[0].Body, error(nil)
	if deep(r) {
		if reply, err = joinedDeep(r, replies); err != nil {
			return nil, err
		}
	}
	if reply, err = q.outside(reply); err != nil {
		return nil, err
	}
	return q.clientSearch.Listing(r, []*adapters.Reply{{Body: reply}})
}

// Narrowed implements adapters.Search: it stays in the point in time.
func (q *pointed) Narrowed(err error) adapters.Search {
	if q.clientSearch.Narrowed(err) == nil {
		return nil
	}
	named := *q
	named.numbers = false
	return &named
}

// request returns the request of a reading, made in the point in time, after what edits changes in its body. sorted says that hits are to come with
// their sort values.
func (q *pointed) request(r *adapters.Reading, edits []jsonedit.Member, sorted bool) ([]*adapters.Request, error) {
	requests, err := q.clientSearch.Requests(r, nil)
	if err != nil {
		return nil, err
	}
	request, void := requests[0], slices.Clone(opening)
	set := func(key string, value []byte) {
		if err == nil {
			request.Body, err = jsonedit.Set(request.Body, key, value)
			void = append(void, key)
		}
	}
	for _, edit := range edits {
		set(edit.Key, edit.Value)
	}
	set("pit", append(jsonedit.AppendString([]byte(`{"id":`), q.id), `,"keep_alive":"`+keepPoint+`"}`...))
	if err == nil && q.scored && !sorted {
		// In a point in time such a sort would have hits come with their sort values and without the best score.
		request.Body, err = jsonedit.Cut(request.Body, func(key string) bool { return key == "sort" })
		void = append(void, "sort")
	}
	if sorted {
		void = append(void, "rest_total_hits_as_int")
	}
	if err != nil {
		return nil, err
	}
	request.RawQuery = adapters.RawQuery(adapters.Params(request.RawQuery), func(name string) bool { return !slices.Contains(void, name) })
	return requests, nil
}

// byScore reports whether the list is in the order of scores alone, in which hits come without sort values.
func (q *clientSearch) byScore() bool {
	if value, ok := adapters.Last(q.params, "sort"); ok {
		return value == "_score" || value == "_score:desc" || value == ""
	}
	var sort bytes.Buffer
	_ = json.Compact(&sort, jsonedit.Get(q.members, "sort")) // it was read; without one nothing is written
	switch strings.TrimSuffix(strings.TrimPrefix(sort.String(), "["), "]") {
	case ``, `"_score"`, `{"_score":"desc"}`, `{"_score":{"order":"desc"}}`, `{"_score":{}}`:
		return true
	}
	return false
}

// outside returns a reply as the engine gives it without a point in time.
func (q *pointed) outside(reply []byte) ([]byte, error) {
	list, err := hitsOf(reply)
	if err != nil {
		return nil, err
	}
	changed := false
	for i, hit := range list {
		plain, err := q.unpointed(hit)
		if err != nil {
			return nil, err
		}
		changed = changed || len(plain) != len(hit)
		list[i] = plain
	}
	if changed {
		if reply, err = withHits(reply, list); err != nil {
			return nil, err
		}
	}
	return jsonedit.Cut(reply, func(key string) bool { return key == "pit_id" })
}

// unpointed returns a hit with the sort values that it has without a point in time: in one, Elasticsearch adds another to tell
// ties apart.
func (q *pointed) unpointed(hit []byte) ([]byte, error) {
	sort := sortOf(hit)
	switch {
	case sort == nil:
		return hit, nil
	case q.scored:
		return jsonedit.Cut(hit, func(key string) bool { return key == "sort" })
	case q.d.OpenSearch:
		return hit, nil
	}
	values, err := jsonedit.Elements(sort)
	if err != nil || len(values) == 0 {
		return hit, err
	}
	return jsonedit.Set(hit, "sort", joinLike(sort, values[:len(values)-1]))
}
