package elastic

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// result is the engine's result of one query.
type result []byte

// Raw implements adapters.QueryResult.
func (r result) Raw() []byte { return r }

// single carries the queries of one search, each in a request of its own.
type single struct {
	q       *query
	request *adapters.Request // but for its body
	// template says that it is a search by template, in whose reply the engine tells the status.
	template bool
}

var (
	_ adapters.Wire = &single{}
	_ adapters.Wire = &multi{}
)

// Join implements adapters.Wire.
func (w *single) Join(queries []adapters.Query) (list []adapters.Joined, err error) {
	for i := range queries[:min(len(queries), adapters.MaxAtOnce)] {
		list = append(list, adapters.Joined{Request: w.requestFor(&queries[i]), Queries: 1, Bare: queries[i].Bare})
	}
	return list, nil
}

// requestFor returns the client's request with another body and less the URL parameters that it makes void.
func (w *single) requestFor(asked *adapters.Query) *adapters.Request {
	r := *w.request
	r.Body = asked.Body
	r.RawQuery = adapters.RawQuery(w.q.params, func(name string) bool { return !slices.Contains(asked.Void, name) })
	if asked.Bare { // to compress sketches takes the engine as long as to read them, and only halves them
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	if len(w.request.Body) == 0 { // whatever the client says of a body that it does not send
		r.Header = w.q.d.withType(r.Header)
	}
	return &r
}

// Split implements adapters.Wire.
func (w *single) Split(queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	any := func(is func(q adapters.Query) bool) bool { return slices.ContainsFunc(queries, is) }
	err := refused(reply.Status)
	switch {
	case err == nil:
		return []adapters.QueryResult{result(reply.Body)}, nil
	case !any(func(q adapters.Query) bool { return !q.Own }): // it is the client's own search that the engine refuses
		return nil, adapters.ErrRefused
	case reply.Status >= 500 && blames(reply.Body, w.q.deciding), any(func(q adapters.Query) bool { return q.Raw }) && blamesCollapse(reply):
		return nil, adapters.ErrWidened
	}
	return nil, err
}

// Body implements adapters.Wire.
func (w *single) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
	body := results[0]
	if w.template {
		whole, err := withStatus(body.Bytes(), reply.Status)
		if err != nil {
			return nil, err
		}
		body = adapters.Pieces{whole}
	}
	return w.q.d.filtered(w.q.params, body, w.q.plan.Deadline)
}

// Declined implements adapters.Wire. Such a search is declined by the status of its reply alone.
func (w *single) Declined(reply *adapters.Reply, _ *adapters.Declined) *adapters.Reply { return reply }

// multi carries queries as the searches of one multi-search.
type multi struct {
	d        Dialect
	request  *adapters.Request // but for its body
	params   []adapters.Param
	deadline rerank.Deadline
}

// Join implements adapters.Wire.
func (w *multi) Join(queries []adapters.Query) ([]adapters.Joined, error) {
	r := *w.request
	r.Body = nil
	for i := range queries {
		r.Body = append(r.Body, queries[i].Body...)
	}
	r.RawQuery = adapters.RawQuery(w.params, func(name string) bool { return name != "filter_path" })
	return []adapters.Joined{{Request: &r, Queries: len(queries)}}, nil
}

// Split implements adapters.Wire.
func (w *multi) Split(_ []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	if err := refused(reply.Status); err != nil {
		return nil, err
	}
	root, err := jsonedit.Members(reply.Body)
	if err != nil {
		return nil, err
	}
	elements, err := jsonedit.Elements(jsonedit.Get(root, "responses"))
	if err != nil {
		return nil, err
	}
	results := make([]adapters.QueryResult, len(elements))
	for i, element := range elements {
		results[i] = result(element)
	}
	return results, nil
}

// Body implements adapters.Wire.
func (w *multi) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
	root, err := jsonedit.Members(reply.Body)
	if err != nil {
		return nil, err
	}
	list := make([][]byte, len(results))
	for i, r := range results {
		list[i] = r.Bytes()
	}
	body, err := jsonedit.Set(reply.Body, "responses", joinLike(jsonedit.Get(root, "responses"), list))
	if err != nil {
		return nil, err
	}
	return w.d.filtered(w.params, adapters.Pieces{body}, w.deadline)
}

// Declined implements adapters.Wire.
func (w *multi) Declined(reply *adapters.Reply, _ *adapters.Declined) *adapters.Reply { return reply }

// refused sorts the engine's refusals by whose fault they can be.
func refused(status int) error {
	switch {
	case status < 300:
		return nil
	case status == 401 || status == 403 || status == 404 || status == 408 || status == 429 || status >= 500:
		return adapters.ErrRefused
	}
	return adapters.ErrWidened
}

// filtered returns an answer with the filter_path of the request, which we ask the engine without. Of a large one it gives up with ErrLate
// when the deadline comes.
func (d Dialect) filtered(params []adapters.Param, body adapters.Pieces, deadline rerank.Deadline) (adapters.Pieces, error) {
	path, _ := adapters.Last(params, "filter_path")
	if path == "" {
		return body, nil
	}
	f, ok := parseFilter(path, d.OpenSearch)
	if !ok {
		return nil, adapters.Alone{Reason: "filter_path", Searched: true}
	}
	filtered, err := f.filter(body.Bytes(), deadline)
	return adapters.Pieces{filtered}, err
}

// withStatus returns a reply with its status as a member, in the reply's own style.
func withStatus(body []byte, status int) ([]byte, error) {
	if pretty, ok := bytes.CutSuffix(body, []byte("\n}\n")); ok {
		return fmt.Appendf(nil, "%s,\n  \"status\" : %d\n}\n", pretty, status), nil
	}
	return jsonedit.Set(body, "status", strconv.AppendInt(nil, int64(status), 10))
}

// joinLike returns an array of the elements with the white space of the array that they stood in, so that a pretty-printed reply
// stays one.
func joinLike(array []byte, elements [][]byte) []byte {
	f := listing{reply: array, array: span(0, len(array))}
	old, _ := jsonedit.Elements(array)
	for i, e := range old {
		from := cap(array) - cap(e) // elements share the array's memory
		switch f.last = span(from, from+len(e)); i {
		case 0:
			f.first = f.last
		case 1:
			f.second = f.last
		}
	}
	return f.with(elements, nil)
}
