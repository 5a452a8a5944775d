package elastic

import (
	"bytes"
	"cmp"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// Search implements adapters.Dialect.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	s := d.search(c, r, p)
	if s.Refusal != nil && !concerned(c, r, p) { // what looks like a control is none of ours, and the engine's to refuse
		return adapters.ParsedSearch{Plain: r, Reason: "unconfigured"}
	}
	return s
}

// concerned reports whether a search is sent to an index of a rule, whatever is wrong with it.
func concerned(c adapters.Class, r *adapters.Request, p adapters.Plan) bool {
	if c.Form != formMulti {
		return p.Scope(c.Target).Configured
	}
	seen := map[string]bool{}
	for lines := r.Body; len(lines) > 0; {
		var header []byte
		header, lines, _ = bytes.Cut(lines, []byte("\n"))
		_, lines, _ = bytes.Cut(lines, []byte("\n"))
		members, _ := adapters.Members(header) // without a name where there are none
		target := cmp.Or(targetOf(members), c.Target)
		if !seen[target] && (p.Scope(target).Configured || p.Struck()) {
			return true
		}
		seen[target] = true
	}
	return false
}

func (d Dialect) search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	controls, plain, err := adapters.TakeControls(r)
	if err != nil {
		return adapters.ParsedSearch{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	switch c.Form {
	case formMulti:
		return d.multi(c, plain, controls, p)
	case formTemplate:
		return d.template(c, plain, controls, p)
	}
	asked := unpacked(plain)
	if reason := format(asked); reason != "" {
		return adapters.ParsedSearch{Plain: plain, Reason: reason}
	}
	q, reason, err := parse(c.Target, adapters.Params(asked.RawQuery), asked.Body, controls)
	if err != nil {
		return adapters.ParsedSearch{Plain: plain, Refusal: d.ErrorReply(r, 400, err.Error())}
	}
	switch {
	case asked != plain && q.stripped:
		plain.RawQuery = withSource(plain.RawQuery, q.body)
	case len(plain.Body) > 0:
		plain.Body = q.body
	}
	if reason == "" && !d.filters(q.params) {
		reason = "filter_path"
	}
	s := adapters.ParsedSearch{Plain: plain, Reason: reason, Shown: q.shown}
	if reason != "" {
		return s
	}
	scope := p.Scope(c.Target)
	if !scope.Configured {
		s.Reason = "unconfigured"
		return s
	}
	if s.Reason = q.left(scope); s.Reason == "" {
		s.Exchange, s.Reason = d.exchange(asked, q, p, scope)
		s.Exchange = d.natively(asked, q, p, scope, s.Exchange)
	}
	return s
}

// unpacked returns a search whose body stands in its URL, for clients that can't send one otherwise, with the body where it
// belongs; any other as it is.
func unpacked(r *adapters.Request) *adapters.Request {
	params := adapters.Params(r.RawQuery)
	source, ok1 := adapters.Last(params, "source")
	kind, ok2 := adapters.Last(params, "source_content_type")
	if !ok1 || !ok2 || len(r.Body) > 0 {
		return r
	}
	out := *r
	out.Body = []byte(source)
	out.RawQuery = adapters.RawQuery(params, func(name string) bool { return name != "source" && name != "source_content_type" })
	out.Header = maps.Clone(r.Header)
	out.Header["Content-Type"] = []string{kind}
	return &out
}

// withSource returns the query of such a search with another body.
func withSource(query string, body []byte) string {
	rest := adapters.RawQuery(adapters.Params(query), func(name string) bool { return name != "source" })
	return strings.TrimPrefix(rest+"&source="+url.QueryEscape(string(body)), "&")
}

// format returns "format" for a search whose body or reply is not JSON. The engines answer in another format if it is all that is
// accepted, and with JSON for any type that they can't write and for a list of several (measured, `TestAcceptOfSearches`).
func format(r *adapters.Request) adapters.Reason {
	for _, value := range r.Header["Content-Type"] {
		if lower := strings.ToLower(value); value != "" && !strings.Contains(lower, "json") && !strings.Contains(lower, "*/*") {
			return "format"
		}
	}
	for _, value := range r.Header["Accept"] {
		lower := strings.ToLower(value)
		other := slices.ContainsFunc([]string{"yaml", "cbor", "smile"}, func(name string) bool { return strings.Contains(lower, name) })
		if other && (len(r.Header["Accept"]) > 1 || !strings.Contains(value, ",")) {
			return "format"
		}
	}
	if adapters.Signed(r.Header, r.RawQuery) {
		return "signed"
	}
	return ""
}

// single is a search with a request of its own.
type single struct {
	request *adapters.Request
	*collapse
}

// Next implements adapters.Exchange.
func (s *single) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply == nil && s.rounds > 0 { // none came in time
		return s.lately()
	}
	ask, answer, err := s.step(reply)
	if adapters.IsLate(err) {
		return s.lately()
	}
	return ask, answer, err
}

func (s *single) step(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply != nil {
		if err := s.refused(reply); err != nil {
			return nil, nil, err
		}
		if err := s.take(reply); errors.Is(err, adapters.ErrWidened) {
			return nil, nil, err
		} else if err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
	}
	body, void, more, err := s.next()
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	if more {
		return s.ask(body, void), nil, nil
	}
	final, err := s.result()
	if err == nil {
		final, err = s.d.filtered(s.q.params, final, s.late)
	}
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	answer := &adapters.Answer{Reply: *s.baseReply, Outcomes: []adapters.Outcome{s.outcome()}}
	answer.Body, answer.Header = final, s.coded(answer.Header)
	return nil, answer, nil
}

// ask returns the client's request with another body and less the URL parameters that it makes void.
func (s *single) ask(body []byte, void []string) *adapters.Request {
	r := *s.request
	r.Body = body
	drop := map[string]bool{}
	for _, name := range void {
		drop[name] = true
	}
	r.RawQuery = adapters.RawQuery(s.q.params, func(name string) bool { return !drop[name] })
	if s.span.SketchOnly { // to compress sketches takes the engine as long as to read them, and only halves them
		r.Header = maps.Clone(r.Header)
		delete(r.Header, "Accept-Encoding")
	}
	if len(s.request.Body) == 0 { // whatever the client says of a body that it does not send
		r.Header = s.d.withType(r.Header)
	}
	return &r
}

// coded returns a reply's header with the content coding of the engine's last reply that was asked for as the client would
// have it.
func (s *single) coded(header adapters.Header) adapters.Header {
	header = maps.Clone(header)
	if delete(header, "Content-Encoding"); s.coding != nil {
		header["Content-Encoding"] = s.coding
	}
	return header
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
