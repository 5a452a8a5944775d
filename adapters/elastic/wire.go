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

// wire carries the queries of one search, each in a request of its own.
type wire struct {
	q       *clientSearch
	request *adapters.Request // but for its body
	plan    adapters.Plan
	// template says that it is a search by template, in whose reply the engine tells the status.
	template bool
}

var _ adapters.Wire = &wire{}

// Join implements adapters.Wire.
func (w *wire) Join(queries []adapters.Query) (requests []*adapters.Request, parts [][]adapters.Query, err error) {
	for part := range slices.Chunk(queries[:min(len(queries), adapters.MaxAtOnce)], 1) {
		requests, parts = append(requests, w.requestFor(&part[0])), append(parts, part)
	}
	return requests, parts, nil
}

// requestFor returns the client's request with another body and less the URL parameters that it makes void.
func (w *wire) requestFor(asked *adapters.Query) *adapters.Request {
	r := *w.request
	r.Body = asked.Body
	r.RawQuery = adapters.RawQuery(w.q.params, func(name string) bool { return !slices.Contains(asked.Void, name) })
	if asked.JudgingOnly { // to compress sketches takes the engine as long as to read them, and only halves them
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	if len(w.request.Body) == 0 { // whatever the client says of a body that it does not send
		r.Header = w.q.d.withType(r.Header)
	}
	return &r
}

// result is the engine's result of one query.
type result []byte

// Raw implements adapters.QueryResult.
func (r result) Raw() []byte { return r }

// Split implements adapters.Wire.
func (w *wire) Split(queries []adapters.Query, reply *adapters.Reply) ([]adapters.QueryResult, error) {
	any := func(is func(q adapters.Query) bool) bool { return slices.ContainsFunc(queries, is) }
	err := refused(reply.Status)
	switch {
	case err == nil:
		return []adapters.QueryResult{result(reply.Body)}, nil
	case !any(func(q adapters.Query) bool { return !q.Own }): // it is the client's own search that the engine refuses
		return nil, adapters.ErrRefused
	case reply.Status >= 500 && blames(reply.Body, w.q.asked.Scope.Deciding), any(func(q adapters.Query) bool { return q.Raw }) && blamesCollapse(reply):
		return nil, adapters.ErrWidened
	}
	return nil, err
}

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

// Body implements adapters.Wire.
func (w *wire) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
	body := results[0]
	if w.template {
		whole, err := withStatus(body.Bytes(), reply.Status)
		if err != nil {
			return nil, err
		}
		body = adapters.Pieces{whole}
	}
	return w.q.d.filtered(w.q.params, body, w.plan.Deadline)
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
