package elastic

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// multi is a multi-search: every round asks for what its searches still lack, in one request.
type multi struct {
	d       Dialect
	request *adapters.Request
	plan    adapters.Plan
	entries []*entry
	pending []*entry // asked last, in order
	base    *adapters.Reply
}

// entry is one search of a multi-search.
type entry struct {
	header, body []byte // the client's two lines, less our controls
	*collapse           // nil: asked as it is
	native       *attempt
	reason       adapters.Reason
	shown        bool
	target       string
	again        bool   // asked once more, as it is
	result       []byte // its element of the responses, when it is known
}

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
	m := &multi{d: d, request: plain, plan: p}
	if bytes.Count(plain.Body, []byte("\n")) > 2*adapters.MaxSearches {
		return d.bare(c, plain, controls, adapters.ReasonTooLarge)
	}
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
			return d.bare(c, plain, controls, adapters.ReasonDeadline)
		}
		e, cut, err := d.parseEntry(c.Target, header, body, controls, p)
		if err != nil {
			s.Refusal = d.ErrorReply(plain, 400, err.Error())
			return s
		}
		s.Shown = s.Shown || e.shown
		m.entries = append(m.entries, e)
		collapsing, stripped = collapsing || e.collapse != nil, stripped || cut
	}
	if stripped {
		plain.Body = m.lines(m.entries, func(e *entry) []byte { return e.body })
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
		s.Reason = m.reason()
		return s
	}
	s.Exchange = m
	return s
}

// reason is why none of the searches is collapsed. It is unconfigured only where all of them are.
func (m *multi) reason() adapters.Reason {
	reason := adapters.ReasonNotUnderstood
	for _, e := range m.entries {
		if reason = e.reason; reason != "unconfigured" {
			break
		}
	}
	return reason
}

// parseEntry reads the two lines of one search; stripped says that controls were taken out. An error is a bad control.
func (d Dialect) parseEntry(
	target string, header, body []byte, controls adapters.Controls, p adapters.Plan,
) (e *entry, stripped bool, err error) {
	e = &entry{header: header, body: body, reason: "not_understood"}
	if adapters.ManyMembers(header) {
		return e, false, nil
	}
	members, err := adapters.Members(header)
	if err != nil && len(bytes.TrimSpace(header)) > 0 {
		return e, false, nil
	}
	if named := targetOf(members); named != "" {
		target = named
	}
	e.target = target
	q, reason, err := parse(target, nil, body, controls)
	if err != nil {
		return nil, false, err
	}
	e.reason, e.shown = reason, q.shown
	if q.stripped {
		e.body = q.body
	}
	if reason != "" {
		return e, q.stripped, nil
	}
	scope := p.Scope(target)
	if !scope.Configured {
		e.reason = "unconfigured"
		return e, q.stripped, nil
	}
	if e.reason = q.leftAmong(scope); e.reason != "" {
		return e, q.stripped, nil
	}
	if e.collapse = newCollapse(d, q, p, scope); e.collapse == nil {
		e.reason = "not_understood"
		return e, q.stripped, nil
	}
	e.native = d.newAttempt(q, scope)
	return e, q.stripped, nil
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

// lines returns the body of a multi-search of the entries.
func (m *multi) lines(entries []*entry, body func(*entry) []byte) []byte {
	var out []byte
	for _, e := range entries {
		out = append(append(out, e.header...), '\n')
		// Bodies stand on one line; a line end inside one is white space.
		out = append(append(out, bytes.ReplaceAll(body(e), []byte("\n"), []byte(" "))...), '\n')
	}
	return out
}

// Next implements adapters.Exchange.
func (m *multi) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply != nil {
		if err := refused(reply.Status); err != nil {
			return nil, nil, err
		}
		if err := m.take(reply); err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
	}
	switch {
	case reply == nil && m.base != nil: // none came in time
		m.lately()
	case m.base == nil && m.plan.Struck():
		return nil, nil, adapters.ErrLate
	}
	asks := m.asks()
	if slices.ContainsFunc(m.entries, func(e *entry) bool { return e.reason == adapters.ReasonDeadline }) {
		m.lately() // for all of them: the others would ask now for what they can't take in the next round
		asks = m.asks()
	}
	if len(m.pending) > 0 {
		r := *m.request
		r.RawQuery = adapters.RawQuery(adapters.Params(r.RawQuery), func(name string) bool { return name != "filter_path" })
		r.Body = m.lines(m.pending, func(e *entry) []byte { return asks[e] })
		return &r, nil, nil
	}
	answer, err := m.answer()
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	return nil, answer, nil
}

// asks returns what the entries ask next, which are then pending.
func (m *multi) asks() map[*entry][]byte {
	m.pending = m.pending[:0]
	asks := map[*entry][]byte{}
	for _, e := range m.entries {
		if body, more := e.ask(); more {
			m.pending = append(m.pending, e)
			asks[e] = body
		}
	}
	return asks
}

// ask returns what the entry asks next, or false when its result is known. A search that can't be collapsed is asked as it is.
func (e *entry) ask() (body []byte, more bool) {
	if e.result != nil {
		return nil, false
	}
	if e.collapse == nil {
		return e.body, true
	}
	if body, _ = e.native.asks(); body != nil {
		return body, true
	}
	body, _, more, err := e.next()
	if err == nil && !more {
		e.result, err = e.collapse.result()
	}
	switch {
	case adapters.IsLate(err):
		e.lately()
		return e.body, e.result == nil
	case err != nil:
		e.leave(adapters.ReasonOf(err))
		return e.body, true
	}
	return body, more
}

func (e *entry) leave(reason adapters.Reason) { e.collapse, e.reason, e.again = nil, reason, true }

// take hands every pending entry its element of the responses.
func (m *multi) take(reply *adapters.Reply) error {
	root, err := adapters.Members(reply.Body)
	if err != nil {
		return err
	}
	elements, err := adapters.Elements(adapters.Get(root, "responses"))
	if err != nil {
		return err
	}
	if len(elements) != len(m.pending) {
		return adapters.ErrNotUnderstood
	}
	if m.base == nil {
		m.base = reply
	}
	for i, e := range m.pending {
		e.takeElement(elements[i])
	}
	return nil
}

func (e *entry) takeElement(element []byte) {
	if e.collapse == nil {
		e.result = element
		return
	}
	if e.native.open() {
		e.takeNative(element)
		return
	}
	members, err := adapters.Members(element)
	if err != nil {
		e.leave("not_understood")
		return
	}
	if adapters.Get(members, "error") != nil {
		status := string(adapters.Get(members, "status"))
		asked := e.collapse
		e.leave("refused")
		widened := status == "400" || status == "" || blames(element, asked.deciding)
		if asked.plain || !widened { // it is the answer
			e.result, e.again = element, false
		}
		return
	}
	switch err := e.take(&adapters.Reply{Body: element}); {
	case adapters.IsLate(err):
		e.lately()
	case errors.Is(err, adapters.ErrWidened):
		e.leave("refused")
	case err != nil:
		e.leave("not_understood")
	}
}

// answer puts the results into the first reply.
func (m *multi) answer() (*adapters.Answer, error) {
	answer := &adapters.Answer{Reply: *m.base}
	results := make([][]byte, len(m.entries))
	for i, e := range m.entries {
		results[i] = e.result
		outcome := adapters.Outcome{Target: e.target, Reason: e.reason, Again: e.again}
		if e.collapse != nil {
			outcome = e.collapsedOutcome()
		} else if !e.shown {
			results[i] = adapters.Cleaned(e.result, inDocument)
		}
		answer.Outcomes = append(answer.Outcomes, outcome)
	}
	root, err := adapters.Members(m.base.Body)
	if err != nil {
		return nil, err
	}
	answer.Body, err = adapters.Set(m.base.Body, "responses", joinLike(adapters.Get(root, "responses"), results))
	if err == nil {
		answer.Body, err = m.d.filtered(adapters.Params(m.request.RawQuery), answer.Body, m.plan.Late)
	}
	return answer, err
}
