package elastic

import (
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// byTemplate is a search by template: the engine is asked to fill the template in, and the search that it returns is
// collapsed. It implements adapters.Ahead.
type byTemplate struct {
	d        Dialect
	request  *adapters.Request
	params   []adapters.Param
	members  []jsonedit.Member
	target   string
	controls adapters.Controls
	plan     adapters.Plan
}

func (d Dialect) template(
	c adapters.Class, plain *adapters.Request, controls adapters.Controls, p adapters.Plan,
) *adapters.Searches {
	s := &adapters.Searches{Plain: plain, Reason: format(plain)}
	if !d.OpenSearch && s.Reason == "" {
		s.Reason = "template" // no Elasticsearch with templates was at hand to test it on
	}
	q := &clientSearch{body: plain.Body, params: adapters.Params(plain.RawQuery)}
	q.controls = controls
	members, err := jsonedit.Members(plain.Body)
	if err != nil {
		s.Reason = "not_understood"
		return s
	}
	if members, err = q.takeControls(members); err != nil {
		s.Refusal = d.ErrorReply(plain, 400, err.Error())
		return s
	}
	plain.Body = q.body
	s.NamesOurs = rule.NamesOurs(q.body)
	switch {
	case s.Reason != "":
	case q.controls.Off:
		s.Reason = "off"
	case !p.Scope(c.Target).Configured:
		s.Reason = "unconfigured"
	default:
		if s.Reason = paramsReason(q.params); s.Reason == "" {
			t := &byTemplate{d: d, request: plain, params: q.params, members: members, target: c.Target, controls: q.controls, plan: p}
			s.Plan, s.Ahead = p, t
		}
	}
	return s
}

// Request implements adapters.Ahead.
func (t *byTemplate) Request() *adapters.Request {
	r := *t.request
	r.Method, r.Path, r.RawQuery, r.Ahead = "POST", "/_render/template", "", true
	return &r
}

// Searches implements adapters.Ahead.
func (t *byTemplate) Searches(reply *adapters.Reply) (*adapters.Searches, error) {
	switch {
	case reply.Status == 429 || reply.Status >= 500:
		return nil, adapters.ErrRefused
	case reply.Status >= 300: // it may grant the search and not this
		return nil, adapters.ErrWidened
	}
	body, err := t.filled(reply.Body)
	if err != nil {
		return nil, err
	}
	q, err := t.d.parseOne(t.target, t.params, body, t.controls, t.plan, "")
	switch {
	case err != nil, len(q.body) < len(body): // controls belong in the request, not in its template: the engine refuses them
		return nil, adapters.ErrWidened
	case q.asked.Reason == "" && q.after != nil:
		return nil, adapters.Alone{Reason: adapters.ReasonCursor}
	case q.asked.Reason == "" && q.piped.name != "":
		return nil, adapters.Alone{Reason: reasonPipeline}
	case q.asked.Reason != "":
		return nil, adapters.Alone{Reason: q.asked.Reason}
	}
	r := *t.request
	r.Path = strings.TrimSuffix(strings.TrimRight(r.Path, "/"), "/template")
	q.sent = &r
	e := &envelope{q: q, deadline: t.plan.Deadline, template: true}
	return &adapters.Searches{List: []adapters.Search{q}, Single: true, Envelope: e, Plan: t.plan}, nil
}

// filled returns the search that the engine filled in, with the other members of the request that it takes.
func (t *byTemplate) filled(reply []byte) ([]byte, error) {
	root, err := jsonedit.Members(reply)
	if err != nil {
		return nil, err
	}
	body := jsonedit.Get(root, "template_output")
	if body == nil {
		return nil, jsonedit.ErrMalformed
	}
	for _, key := range []string{"explain", "profile"} {
		if value := jsonedit.Get(t.members, key); string(value) == "true" {
			if body, err = jsonedit.Set(body, key, value); err != nil {
				return nil, err
			}
		}
	}
	return body, nil
}
