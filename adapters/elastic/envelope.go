package elastic

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// Refusal implements adapters.Search.
func (q *clientSearch) Refusal(requests []*adapters.Request, reply *adapters.Reply) error {
	any := func(is func(r *adapters.Request) bool) bool { return slices.ContainsFunc(requests, is) }
	err := refused(reply.Status)
	switch {
	case err == nil, q.header != nil:
		return err
	case !any(func(r *adapters.Request) bool { return !r.Own }): // it is the client's own search that the engine refuses
		return adapters.ErrRefused
	case reply.Status >= 500 && blames(reply.Body, q.asked.Scope.Deciding), any(func(r *adapters.Request) bool { return r.Raw }) && (blamesCollapse(reply) || q.asked.Counting != nil && breaks(reply)):
		return adapters.ErrWidened
	}
	return err
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

// envelope is what the client's reply is for a search with a filter_path, which we ask the engine without, or by a template.
type envelope struct {
	q        *clientSearch
	deadline rerank.Deadline
	template bool // in the reply the engine tells the status
}

// Body implements adapters.Envelope.
func (e *envelope) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
	body := results[0]
	if e.template {
		whole, err := withStatus(body.Bytes(), reply.Status)
		if err != nil {
			return nil, err
		}
		body = adapters.Pieces{whole}
	}
	return e.q.d.filtered(e.q.params, body, e.deadline)
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
