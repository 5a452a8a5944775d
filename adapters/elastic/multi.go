package elastic

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
)

// multi parses a multi-search.
func (d Dialect) multi(c adapters.Class, plain *adapters.Request, controls adapters.Controls, p adapters.Plan) *adapters.Searches {
	s := &adapters.Searches{Plain: plain, Reason: format(plain)}
	if s.Reason != "" {
		return s
	}
	if d.OpenSearch && bytes.HasPrefix(plain.Body, []byte("\n")) { // OpenSearch skips it, and warns
		s.Reason = "not_understood"
		return s
	}
	var left adapters.Reason // for which all are left alone: all that is done is to take our controls out
	if bytes.Count(plain.Body, []byte("\n")) > 2*adapters.MaxSearches {
		left = adapters.ReasonTooLarge
	}
	var list []*clientSearch
	var out []byte
	collapsing, copied, read := false, 0, 0
	for read < len(plain.Body) {
		header, lines, _ := bytes.Cut(plain.Body[read:], []byte("\n"))
		body, lines, ended := bytes.Cut(lines, []byte("\n"))
		from := read + len(header) + 1
		read = len(plain.Body) - len(lines)
		switch {
		case left != "":
		case !ended || len(bytes.TrimSpace(body)) == 0: // the engine says so
			s.Reason = adapters.ReasonNotUnderstood
			return s
		case p.Late():
			left = adapters.ReasonDeadline
		}
		q, err := d.entry(c.Target, header, body, controls, p, left)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		s.NamesOurs, collapsing = s.NamesOurs || q.namesOurs, collapsing || q.asked.Reason == ""
		if len(q.body) < len(body) { // controls were taken out
			out = append(append(out, plain.Body[copied:from]...), oneLine(q.body)...)
			copied = from + len(body)
		}
		if left == "" {
			list = append(list, q)
		}
	}
	if copied > 0 {
		plain.Body = append(out, plain.Body[copied:]...)
	}
	if s.Reason = left; left != "" {
		return s
	}
	params := adapters.Params(plain.RawQuery)
	if s.Reason = paramsReason(params); s.Reason == "" && slices.ContainsFunc(params, func(p adapters.Param) bool { return p.Name == "search_pipeline" }) {
		s.Reason = reasonPipeline
	}
	if s.Reason != "" {
		return s
	}
	if !d.canFilter(params) {
		s.Reason = "filter_path"
		return s
	}
	if !collapsing {
		s.Reason = reasonOf(list)
		return s
	}
	w := &multiWire{d: d, request: plain, params: params, deadline: p.Deadline}
	s.Wire, s.Envelope, s.Plan = w, w, p
	for _, q := range list {
		s.List = append(s.List, q)
	}
	return s
}

// reasonOf is why none of the searches is collapsed. It is unconfigured only where all of them are.
func reasonOf(list []*clientSearch) adapters.Reason {
	reason := adapters.ReasonNotUnderstood
	for _, q := range list {
		if reason = q.asked.Reason; reason != adapters.ReasonUnconfigured {
			break
		}
	}
	return reason
}

// entry reads the two lines of one search, or what is to be taken out of it where it is left alone. An error is a bad control.
func (d Dialect) entry(
	target string, header, body []byte, controls adapters.Controls, p adapters.Plan, left adapters.Reason,
) (q *clientSearch, err error) {
	var members []jsonedit.Member
	if left == "" {
		unknown := &clientSearch{header: header, body: body}
		unknown.asked.Reason = adapters.ReasonNotUnderstood
		if members, err = jsonedit.FewMembers(header); err != nil && len(bytes.TrimSpace(header)) > 0 {
			return unknown, nil
		}
	}
	if q, err = d.parseOne(cmp.Or(targetOf(members), target), nil, body, controls, p, left); err != nil {
		return nil, err
	}
	switch q.header = header; {
	case q.asked.Reason != "":
	case q.after != nil:
		q.asked.Reason = adapters.ReasonCursor
	case q.piped.name != "":
		q.asked.Reason = reasonPipeline
	}
	return q, nil
}

// targetOf returns the index or indices that the header line of a search names.
func targetOf(members []jsonedit.Member) string {
	for _, key := range []string{"index", "indices"} {
		names, _ := fieldNames(jsonedit.Get(members, key))
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
		if len(names) > 0 {
			return strings.Join(names, ",")
		}
	}
	return ""
}

// multiWire joins requests as the searches of one multi-search.
type multiWire struct {
	d        Dialect
	request  *adapters.Request // but for its body
	params   []adapters.Param
	deadline rerank.Deadline
}

var _ adapters.Wire = &multiWire{}

// Join implements adapters.Wire.
func (w *multiWire) Join(requests []*adapters.Request) ([]*adapters.Request, [][]*adapters.Request, error) {
	r := *w.request
	r.Body = nil
	for _, search := range requests {
		r.Body = append(r.Body, search.Body...)
	}
	r.RawQuery = adapters.RawQuery(w.params, func(name string) bool { return name != "filter_path" })
	return []*adapters.Request{&r}, [][]*adapters.Request{requests}, nil
}

// Split implements adapters.Wire.
func (w *multiWire) Split(_ []*adapters.Request, reply *adapters.Reply) ([]*adapters.Reply, error) {
	root, err := jsonedit.Members(reply.Body)
	if err != nil {
		return nil, err
	}
	elements, err := jsonedit.Elements(jsonedit.Get(root, "responses"))
	if err != nil {
		return nil, err
	}
	results := make([]*adapters.Reply, len(elements))
	for i, element := range elements {
		results[i] = &adapters.Reply{Status: reply.Status, Body: element}
	}
	return results, nil
}

// Body implements adapters.Envelope.
func (w *multiWire) Body(reply *adapters.Reply, results []adapters.Pieces) (adapters.Pieces, error) {
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
