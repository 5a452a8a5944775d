package elastic

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Targets implements adapters.Dialect.
func (Dialect) Targets(c adapters.Class, r *adapters.Request) iter.Seq[string] {
	return func(yield func(string) bool) {
		if c.Form != formMulti {
			yield(c.Target)
			return
		}
		for lines := r.Body; len(lines) > 0; {
			var header []byte
			header, lines, _ = bytes.Cut(lines, []byte("\n"))
			_, lines, _ = bytes.Cut(lines, []byte("\n"))
			members, _ := jsonedit.Members(header) // without a name where there are none
			if !yield(cmp.Or(targetOf(members), c.Target)) {
				return
			}
		}
	}
}

// Search implements adapters.Dialect.
func (d Dialect) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
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
	if s.Reason = q.under(d, p); s.Reason != "" {
		return s
	}
	q.request, q.plan = asked, p
	if q.points(segments(asked.Path)) {
		q.asked.Point = q
	}
	ranked := q.asked.From == 0 && !q.asked.Scope.Chooses && !q.asked.Scope.Transitive && q.raised == nil
	q.walks = q.after != nil || ranked && q.sorted()
	s.Searches = &adapters.Searches{List: []adapters.Search{q}, Single: true, Wire: &single{q: q, request: asked}, Plan: p}
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
