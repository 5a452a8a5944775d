package elastic

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// byTemplate is a search by template: the engine is asked to fill the template in, and the search that comes out of it is
// collapsed.
type byTemplate struct {
	d        Dialect
	request  *adapters.Request
	members  []adapters.Member
	target   string
	controls adapters.Controls
	plan     adapters.Plan
	scope    adapters.Scope
	search   *single // once the template is filled in
}

func (d Dialect) template(
	c adapters.Class, plain *adapters.Request, controls adapters.Controls, p adapters.Plan,
) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: format(plain)}
	if !d.OpenSearch && s.Reason == "" {
		s.Reason = "template" // no Elasticsearch with templates was at hand to test it on
	}
	q := &query{body: plain.Body, controls: controls, params: adapters.Params(plain.RawQuery)}
	members, err := adapters.Members(plain.Body)
	if err != nil {
		s.Reason = "not_understood"
		return s
	}
	if members, err = q.takeControls(members); err != nil {
		s.Refusal = d.ErrorReply(plain, 400, err.Error())
		return s
	}
	plain.Body = q.body
	s.Shown = adapters.NamesOurs(q.body)
	scope := p.Scope(c.Target)
	switch {
	case s.Reason != "":
	case q.controls.Off:
		s.Reason = "off"
	case !scope.Configured:
		s.Reason = "unconfigured"
	default:
		if s.Reason = paramsReason(q.params); s.Reason == "" {
			s.Exchange = &byTemplate{d: d, request: plain, members: members, target: c.Target, controls: q.controls, plan: p, scope: scope}
		}
	}
	return s
}

// Next implements adapters.Exchange.
func (t *byTemplate) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	switch {
	case t.search != nil:
		return t.searched(reply)
	case reply == nil:
		r := *t.request
		r.Method, r.Path, r.RawQuery, r.Ahead = "POST", "/_render/template", "", true
		return &r, nil, nil
	case reply.Status == 429 || reply.Status >= 500:
		return nil, nil, adapters.ErrRefused
	case reply.Status >= 300: // it may grant the search and not this
		return nil, nil, adapters.ErrWidened
	}
	body, err := t.filled(reply.Body)
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	q, reason, err := parse(t.target, adapters.Params(t.request.RawQuery), body, t.controls)
	switch {
	case err != nil, q.stripped: // controls stand in the request, not in its template: the engine says so
		return nil, nil, adapters.ErrWidened
	case reason == "":
		reason = q.leftAmong(t.scope)
	}
	if reason != "" {
		return nil, nil, adapters.NotUnderstood(adapters.Alone{Reason: reason})
	}
	r := *t.request
	r.RawQuery = adapters.RawQuery(q.params, func(name string) bool { return name != "filter_path" })
	q.params = adapters.Params(r.RawQuery)
	r.Path, r.Body = strings.TrimSuffix(strings.TrimRight(r.Path, "/"), "/template"), q.body
	c := newCollapse(t.d, q, t.plan, t.scope)
	if c == nil {
		return nil, nil, adapters.ErrNotUnderstood
	}
	t.search = &single{request: &r, collapse: c}
	return t.searched(nil)
}

// searched goes on with the search. The engine tells the status in the reply to a search by template, behind all else.
func (t *byTemplate) searched(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	ask, answer, err := t.search.Next(reply)
	if answer != nil {
		answer.Body, err = withStatus(answer.Body, answer.Status)
		if err == nil {
			answer.Body, err = t.d.filtered(adapters.Params(t.request.RawQuery), answer.Body, t.plan.Late)
		}
		if err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
	}
	return ask, answer, err
}

// withStatus returns a reply with its status told in it, in the reply's own style.
func withStatus(body []byte, status int) ([]byte, error) {
	if pretty, ok := bytes.CutSuffix(body, []byte("\n}\n")); ok {
		return fmt.Appendf(nil, "%s,\n  \"status\" : %d\n}\n", pretty, status), nil
	}
	return adapters.Set(body, "status", strconv.AppendInt(nil, int64(status), 10))
}

// filled returns the search that came out of the template, with what stands beside the template in the request.
func (t *byTemplate) filled(reply []byte) ([]byte, error) {
	root, err := adapters.Members(reply)
	if err != nil {
		return nil, err
	}
	body := adapters.Get(root, "template_output")
	if body == nil {
		return nil, adapters.ErrMalformed
	}
	for _, key := range []string{"explain", "profile"} {
		if value := adapters.Get(t.members, key); string(value) == "true" {
			if body, err = adapters.Set(body, key, value); err != nil {
				return nil, err
			}
		}
	}
	return body, nil
}
