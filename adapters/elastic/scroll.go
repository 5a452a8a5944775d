package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// scrolls reports whether the search opens a scroll.
func (q *query) scrolls() bool {
	_, ok := adapters.Last(q.params, "scroll")
	return ok
}

// unscrolled returns the search's parameters but that which opens a scroll.
func (q *query) unscrolled() []adapters.Param {
	return slices.DeleteFunc(slices.Clone(q.params), func(p adapters.Param) bool { return p.Name == "scroll" })
}

// scrolled is a page of a scroll that is collapsed as it stands: what is folded makes it shorter. What a scroll was begun with
// can't be changed by its later pages, so the first page asks for all that is needed of each hit, and has every hit of every page
// marked.
type scrolled struct {
	d       Dialect
	plan    adapters.Plan
	request *adapters.Request
	params  []adapters.Param // of the client
	target  string
	// begins says that the page is the first, asked what opens the scroll; otherwise it has to be found out whether the scroll is
	// collapsed.
	begins bool
	asked  []byte
	known  bool // what was shown before is known
	walk   *rerank.Walk
	outer  adapters.Controls // of a later page's request
	rounds int
	first  *scrollMarks // what the first page was begun with
	raw    adapters.Outcome
}

// maxFolded is for how many pages in a row, of which every hit is folded, the next is asked for within one answer. Of the
// last of them one hit is shown again: clients do not wait for ever, and what the engine sends them meanwhile would be gone.
const maxFolded = 16

// beginScroll returns the first page of a scroll.
func (d Dialect) beginScroll(
	asked *adapters.Request, q *query, p adapters.Plan, scope adapters.Scope,
) (adapters.Exchange, string) {
	marks, body, err := d.marked(q, p, scope)
	switch {
	case errors.Is(err, errCollides):
		return nil, "cursor"
	case err != nil:
		return nil, "not_understood"
	}
	return &scrolled{
		d: d, plan: p, request: asked, params: q.params, target: q.target,
		begins: true, asked: body, known: true, walk: new(rerank.Walk), first: marks,
	}, ""
}

// scroll returns a later page of a scroll, of which the request does not tell whether it is collapsed. It can be asked for once
// alone.
func (d Dialect) scroll(plain *adapters.Request, controls adapters.Controls, p adapters.Plan) adapters.ParsedSearch {
	s := adapters.ParsedSearch{Plain: plain, Reason: format(plain), Once: scrollMark}
	if s.Reason != "" {
		return s
	}
	if len(p.Rules) == 0 {
		s.Reason = "unconfigured"
		return s
	}
	params := adapters.Params(plain.RawQuery)
	id, body := scrollID(plain, params)
	if body != nil {
		plain.Body = body
	}
	switch {
	case controls.Off:
		s.Reason = "off"
	case !d.filters(params):
		s.Reason = "filter_path"
	}
	if s.Reason != "" {
		return s
	}
	page := &scrolled{d: d, plan: p, request: plain, params: params, outer: controls}
	if p.Cursors != nil && id != "" {
		page.walk, page.known = p.Cursors.Get(scrollKey(id))
	}
	s.Exchange, s.Reason = page, "export"
	return s
}

// scrollID returns the id that a request for a page of a scroll names: in its body, its query or its path. The body comes back
// less our controls, nil if there is nothing to change in it.
func scrollID(r *adapters.Request, params []adapters.Param) (id string, body []byte) {
	if members, err := adapters.Members(r.Body); err == nil {
		if id, ok := adapters.Text(adapters.Get(members, "scroll_id")); ok {
			if slices.ContainsFunc(members, func(m adapters.Member) bool { return adapters.IsControl(m.Key) }) {
				body, _ = adapters.Cut(r.Body, adapters.IsControl) // it was read
			}
			return id, body
		}
	}
	if id, ok := adapters.Last(params, "scroll_id"); ok {
		return id, nil
	}
	if path := segments(r.Path); len(path) == 3 {
		return path[2], nil
	}
	return "", nil
}

func scrollKey(id string) string { return "scroll " + id }

// Next implements adapters.Exchange.
func (s *scrolled) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if reply == nil {
		return s.ask(), nil, nil
	}
	if s.begins && s.rounds == 0 {
		if err := refused(reply.Status); err != nil {
			return nil, nil, err
		}
	} else if reply.Status >= 300 { // the answer, for there is no asking again
		return nil, nil, adapters.Alone{Reason: "export"}
	}
	s.rounds++
	list, total, err := hitsOf(reply.Body)
	switch {
	case err != nil && s.begins:
		return nil, nil, adapters.NotUnderstood(err)
	case err != nil:
		return nil, nil, adapters.Alone{Reason: "export"}
	}
	marks := s.first
	if marks == nil {
		marks = marksOf(list, s.plan.MaxWindow)
	}
	if s.known && len(list) == 0 { // its end
		marks = new(scrollMarks)
	}
	if marks == nil {
		return nil, nil, adapters.Alone{Reason: "export"}
	}
	id := replyScroll(reply.Body)
	shown, err := s.take(list, marks, total)
	switch {
	case err != nil:
		return nil, nil, adapters.NotUnderstood(err)
	case len(shown) > 0 || len(list) == 0:
	case id != "" && s.rounds < maxFolded && !s.plan.Struck():
		return s.more(id), nil, nil
	default: // an empty page would be taken for the end
		shown, s.raw.CursorLost, s.raw.Exact = []int{0}, true, false
	}
	if s.known && s.plan.Cursors != nil && id != "" && len(list) > 0 && s.raw.Reason == "" {
		s.plan.Cursors.Put(scrollKey(id), s.walk)
	}
	return s.answer(reply, list, shown, marks)
}

// ask returns the request for the page: the client's own but for what a first page is marked with.
func (s *scrolled) ask() *adapters.Request {
	r := *s.request
	filters := func(name string) bool { return name != "filter_path" }
	switch {
	case s.begins:
		void := ofSource
		r.Body = s.asked
		r.RawQuery = adapters.Query(s.params, func(name string) bool {
			return filters(name) && !(s.first.texts().filter != nil && slices.Contains(void, name))
		})
		if len(s.request.Body) == 0 {
			r.Header = s.d.withType(r.Header)
		}
	case s.known: // a scroll of which our marks are to be seen
		r.RawQuery = adapters.Query(s.params, filters)
	}
	return &r
}

// more returns the request for the page behind one of which every hit is folded.
func (s *scrolled) more(id string) *adapters.Request {
	r := *s.request
	body := adapters.AppendString([]byte(`{"scroll_id":`), id)
	if alive := s.keepAlive(); alive != nil {
		body = append(append(body, `,"scroll":`...), alive...)
	}
	r.Method, r.Path, r.Body = "POST", "/_search/scroll", append(body, '}')
	r.RawQuery = adapters.Query(s.params, func(name string) bool {
		return slices.Contains([]string{"rest_total_hits_as_int", "pretty", "human", "error_trace", "typed_keys"}, name)
	})
	r.Header = s.d.withType(r.Header)
	return &r
}

// keepAlive returns for how long the client wants the scroll kept, as it stands in JSON, nil if it does not say.
func (s *scrolled) keepAlive() []byte {
	if members, err := adapters.Members(s.request.Body); err == nil && !s.begins {
		if alive := adapters.Get(members, "scroll"); alive != nil {
			return alive
		}
	}
	if alive, ok := adapters.Last(s.params, "scroll"); ok {
		return adapters.AppendString(nil, alive)
	}
	return nil
}

// take walks over the hits of a page and returns the places of those that are shown.
func (s *scrolled) take(list [][]byte, marks *scrollMarks, total int) (shown []int, err error) {
	switch {
	case !s.known:
		s.walk = new(rerank.Walk)
	case s.rounds == 1: // other requests can go on from what is remembered
		s.walk = s.walk.Clone()
	}
	controls := adapters.Controls{Threshold: marks.Threshold, Keep: marks.Keep}
	judge, before := adapters.NewJudge(s.plan.Rules, controls), s.walk.Folded()
	judge.Late = s.plan.Late
	for i, raw := range list {
		if i%adapters.BetweenLooks == 0 && s.plan.Struck() || judge.Lacking > 0 && s.plan.Struck() {
			return s.whole(list), nil
		}
		hit, err := s.d.scrolledHit(raw, judge, marks)
		if err != nil {
			return nil, err
		}
		if s.walk.Take(&hit, marks.Window) {
			shown = append(shown, i)
		}
	}
	if judge.Lacking > 0 && s.plan.Struck() {
		return s.whole(list), nil
	}
	o := &s.raw
	o.Target, o.Window, o.CursorLost, o.DryRun = s.target, marks.Window, !s.known, marks.DryRun || s.outer.DryRun
	o.Raw, o.Read, o.Without = max(o.Raw, total), o.Read+len(list), o.Without+judge.Lacking
	o.Folded += s.walk.Folded() - before
	o.Sketches = o.Sketches.Plus(judge.Sketches())
	beyond := s.walk.Ranks() >= marks.Window
	if o.Exact = s.known && (beyond || len(list) == 0); beyond {
		s.walk.Forget()
	}
	if o.DryRun {
		shown = shown[:0]
		for i := range list {
			shown = append(shown, i)
		}
	}
	return shown, nil
}

// whole shows all hits of a page for which the time is over. It comes but once.
func (s *scrolled) whole(list [][]byte) (shown []int) {
	for i := range list {
		shown = append(shown, i)
	}
	s.raw = adapters.LateOutcome(s.target)
	return shown
}

// scrolledHit returns what is compared of a hit.
func (d Dialect) scrolledHit(raw []byte, judge *adapters.Judge, marks *scrollMarks) (rerank.Hit, error) {
	members, err := adapters.Members(raw)
	if err != nil {
		return rerank.Hit{}, err
	}
	index, ok1 := adapters.Text(adapters.Get(members, "_index"))
	id, ok2 := adapters.Text(adapters.Get(members, "_id"))
	if !ok1 || !ok2 {
		return rerank.Hit{}, errors.New("a hit without _index or _id")
	}
	fields, _ := adapters.Members(adapters.Get(members, "fields")) // none where none has a value
	return judge.Hit(adapters.Seen{
		Index: d.ruleName(index), ID: id, Stored: storedSketch(fields), Values: valuesIn(fields),
		Document: func(*adapters.Rule) []byte {
			if !marks.Texts {
				return nil
			}
			return sourceIn(members)
		},
	}), nil
}

// answer returns the reply less the hits that are folded and all that only we asked for.
func (s *scrolled) answer(
	reply *adapters.Reply, list [][]byte, shown []int, marks *scrollMarks,
) (*adapters.Request, *adapters.Answer, error) {
	hits := make([][]byte, len(shown))
	var err error
	for i, place := range shown {
		if hits[i], err = marks.bare(list[place]); err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
	}
	body, err := withHits(reply.Body, hits)
	if err == nil && !marks.Shown {
		body = adapters.Cleaned(body, inDocument)
	}
	if err == nil {
		body, err = s.d.filtered(s.params, body, s.plan.Late)
	}
	if err != nil {
		return nil, nil, adapters.NotUnderstood(err)
	}
	s.raw.Rounds = s.rounds
	answer := &adapters.Answer{Reply: *reply, Outcomes: []adapters.Outcome{s.raw}}
	answer.Body = body
	return nil, answer, nil
}

// replyScroll returns the id under which the scroll goes on.
func replyScroll(reply []byte) string {
	root, err := adapters.Members(reply)
	if err != nil {
		return ""
	}
	id, _ := adapters.Text(adapters.Get(root, "_scroll_id"))
	return id
}

// marksOf returns what the scroll was begun with that a page's hits are of, nil if we did not begin it. Whoever begins one
// can name a query like ours and so write any marks; the window stays bounded.
func marksOf(list [][]byte, maxWindow int) *scrollMarks {
	if len(list) == 0 {
		return nil
	}
	members, err := adapters.Members(list[0])
	if err != nil {
		return nil
	}
	for _, name := range queryNames(adapters.Get(members, "matched_queries")) {
		text, ours := bytes.CutPrefix([]byte(name), []byte(scrollMark))
		var marks scrollMarks
		if ours && json.Unmarshal(text, &marks) == nil {
			marks.Window = min(marks.Window, maxWindow)
			return &marks
		}
	}
	return nil
}
