package elastic

import (
	"bytes"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// multi takes a multi-search apart.
func (d Dialect) multi(
	c adapters.Class, plain *adapters.Request, controls adapters.Controls, p adapters.Plan,
) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: format(plain)}
	if s.Reason != "" {
		return s
	}
	if d.OpenSearch && bytes.HasPrefix(plain.Body, []byte("\n")) { // OpenSearch skips it, and warns
		s.Reason = "not_understood"
		return s
	}
	if bytes.Count(plain.Body, []byte("\n")) > 2*adapters.MaxSearches {
		return d.unread(c, plain, controls, adapters.ReasonTooLarge)
	}
	var list []*query
	collapsing, stripped := false, false
	for lines := plain.Body; len(lines) > 0; {
		var header, body []byte
		header, lines, _ = bytes.Cut(lines, []byte("\n"))
		ended := false
		body, lines, ended = bytes.Cut(lines, []byte("\n"))
		if blank := len(bytes.TrimSpace(body)) == 0; !ended || blank { // the engine says so
			s.Reason = "not_understood"
			return s
		}
		if p.Struck() {
			return d.unread(c, plain, controls, adapters.ReasonDeadline)
		}
		q, err := d.entry(c.Target, header, body, controls, p)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		s.Shown = s.Shown || q.shown
		list = append(list, q)
		collapsing, stripped = collapsing || q.asked.Reason == "", stripped || q.stripped
	}
	if stripped {
		plain.Body = nil
		for _, q := range list {
			plain.Body = append(plain.Body, q.line(q.body)...)
		}
	}
	params := adapters.Params(plain.RawQuery)
	if s.Reason = paramsReason(params); s.Reason != "" {
		return s
	}
	if !d.filters(params) {
		s.Reason = "filter_path"
		return s
	}
	if !collapsing {
		s.Reason = reasonOf(list)
		return s
	}
	s.Searches = &adapters.Searches{Wire: &multi{d: d, request: plain, params: params, late: p.Late}, Plan: p}
	for _, q := range list {
		s.Searches.List = append(s.Searches.List, q)
	}
	return s
}

// reasonOf is why none of the searches is collapsed. It is unconfigured only where all of them are.
func reasonOf(list []*query) adapters.Reason {
	reason := adapters.ReasonNotUnderstood
	for _, q := range list {
		if reason = q.asked.Reason; reason != adapters.ReasonUnconfigured {
			break
		}
	}
	return reason
}

// entry reads the two lines of one search. An error is a bad control.
func (d Dialect) entry(target string, header, body []byte, controls adapters.Controls, p adapters.Plan) (q *query, err error) {
	unknown := &query{header: header[:len(header):len(header)], body: body}
	if unknown.asked.Reason = adapters.ReasonNotUnderstood; adapters.ManyMembers(header) {
		return unknown, nil
	}
	members, err := adapters.Members(header)
	if err != nil && len(bytes.TrimSpace(header)) > 0 {
		return unknown, nil
	}
	if named := targetOf(members); named != "" {
		target = named
	}
	q, reason, err := parse(target, nil, body, controls)
	if err != nil {
		return nil, err
	}
	if q.header = unknown.header; reason == "" {
		reason = q.under(d, p)
	}
	if reason == "" && q.after != nil {
		reason = "cursor"
	}
	q.asked.Reason = reason
	return q, nil
}

// targetOf returns the index or indices that the header line of a search names.
func targetOf(members []adapters.Member) string {
	for _, key := range []string{"index", "indices"} {
		value := adapters.Get(members, key)
		if text, ok := adapters.Text(value); ok {
			return text
		}
		var names []string
		elements, _ := adapters.Elements(value)
		for _, element := range elements {
			if name, ok := adapters.Text(element); ok {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			return strings.Join(names, ",")
		}
	}
	return ""
}

// unread leaves a multi-search alone for the reason: all that is done to it is to take our controls out.
func (d Dialect) unread(c adapters.Class, plain *adapters.Request, controls adapters.Controls, reason adapters.Reason) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: reason}
	out := make([]byte, 0, len(plain.Body))
	for lines := plain.Body; len(lines) > 0; {
		header, rest, parted := bytes.Cut(lines, []byte("\n"))
		body, rest, ended := bytes.Cut(rest, []byte("\n"))
		lines = rest
		q, _, err := parse(c.Target, nil, body, controls)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		if s.Shown = s.Shown || q.shown; q.stripped {
			body = bytes.ReplaceAll(q.body, []byte("\n"), []byte(" "))
		}
		if out = append(out, header...); parted {
			out = append(out, '\n')
		}
		if out = append(out, body...); ended {
			out = append(out, '\n')
		}
	}
	plain.Body = out
	return s
}
