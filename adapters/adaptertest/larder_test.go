package adaptertest_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
)

// larder is the dialect of an engine that was made up, with little more than what the contract asks for: the place to begin a
// new one.
//
//	PUT, PATCH, GET /docs/<index>/<id>   one document: store it, merge into it, show it; the first two answer it as stored
//	POST, GET /docs/<index>              one on each line: store them (merge into them with ?merge), show all
//	POST /find/<index>                   {"from":0,"count":10} is answered {"total":…,"items":[{"id":…,"doc":{…}}]}
//
// Errors are {"problem":…}.
type larder struct{}

// What Class.Form says.
const (
	oneDocument = "document"
	onEachLine  = "lines"
	search      = "find"
)

func (larder) Classify(r *adapters.Request) adapters.Class {
	path := strings.Split(strings.Trim(r.Path, "/"), "/")
	_, merges := adapters.Last(adapters.Params(r.RawQuery), "merge")
	endpoint := fmt.Sprint(r.Method, " ", path[0], " ", len(path))
	c := adapters.Class{Form: oneDocument, Params: merges || r.Method == "PATCH", CleanWrite: true}
	switch endpoint {
	case "PUT docs 3", "PATCH docs 3":
		c.Kind = adapters.Write
	case "GET docs 3":
		c.Kind = adapters.Read
	case "POST docs 2":
		c.Kind, c.Form = adapters.Write, onEachLine
	case "GET docs 2":
		c.Kind, c.Form = adapters.Read, onEachLine
	case "POST find 2":
		c.Kind, c.Form = adapters.Search, search
	default:
		return adapters.Class{}
	}
	c.Target = path[1]
	return c
}

func (larder) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, e *adapters.Enricher) error {
	partial, _ := c.Params.(bool)
	enrich := func(document []byte) []byte {
		if len(bytes.TrimSpace(document)) == 0 {
			return document
		}
		if !e.Start(adapters.Operation{Form: c.Form, Index: c.Target}) { // which stays out of the write
			return nil
		}
		return e.Append(nil, c.Target, document, partial)
	}
	if c.Form == onEachLine {
		return adapters.EditLines(dst, src, enrich)
	}
	return adapters.EditWhole(dst, src, enrich)
}

func (larder) CleanReply(c adapters.Class, dst io.Writer, src io.Reader) error {
	depth := 1
	if c.Form == search {
		depth = 3 // items, doc, our field
	}
	return adapters.Clean(dst, src, adapters.Cuts{Drop: func(path []string) bool {
		return len(path) == depth && adapters.Our(path[depth-1]) && (depth == 1 || path[0] == "items" && path[1] == "doc")
	}})
}

func (larder) ErrorReply(_ *adapters.Request, status int, reason string) *adapters.Reply {
	body := append(adapters.AppendString([]byte(`{"problem":`), reason), '}')
	return &adapters.Reply{Status: status, Header: adapters.Header{"Content-Type": {"application/json"}}, Body: body}
}

func (d larder) Search(c adapters.Class, r *adapters.Request, p adapters.Plan) adapters.ParsedSearch {
	controls, plain, err := adapters.TakeControls(r)
	s := adapters.ParsedSearch{Plain: plain, Reason: "not_understood"}
	members, malformed := adapters.Members(plain.Body)
	narrow, _, wrong := adapters.MemberControls(members)
	if err = errors.Join(err, wrong); err != nil {
		s.Refusal = d.ErrorReply(r, 400, err.Error())
		return s
	}
	controls = controls.Merge(narrow)
	if malformed != nil {
		return s
	}
	if bare, err := adapters.Cut(plain.Body, adapters.IsControl); err == nil && len(bare) < len(plain.Body) {
		plain.Body = bare
	}
	from, size := number(members, "from", 0), number(members, "count", 10)
	scope := p.Scope(c.Target)
	switch {
	case controls.Off:
		s.Reason = "off"
	case !scope.Configured:
		s.Reason = "unconfigured"
	case from >= 0 && size > 0:
		x := &finding{plain: plain, target: c.Target, judge: adapters.NewJudge(p.Rules, controls)}
		x.page, x.show = p.Page(from, size, scope, controls, 0), scope.Show(controls)
		x.pager = rerank.NewPager(x.page)
		s.Reason, s.Exchange = "", x
	}
	return s
}

// number reads a member of plain digits; -1 is what only the engine can judge.
func number(members []adapters.Member, key string, otherwise int) int {
	value := adapters.Get(members, key)
	if value == nil {
		return otherwise
	}
	if n, err := strconv.Atoi(string(value)); err == nil && n < 1e9 {
		return max(n, -1)
	}
	return -1
}

// finding is a search in progress.
type finding struct {
	plain  *adapters.Request
	target string
	page   rerank.Page
	pager  *rerank.Pager
	judge  *adapters.Judge
	span   rerank.Span // what is being read
	reply  *adapters.Reply
	items  [][]byte // of the last reply
	total  int
	show   adapters.Show
	dry    bool // the client's own search is asked
}

func (x *finding) Next(reply *adapters.Reply) (*adapters.Request, *adapters.Answer, error) {
	if x.dry {
		answer := &adapters.Answer{Reply: *reply, Outcomes: []adapters.Outcome{x.outcome()}}
		answer.Body = adapters.Cleaned(reply.Body, inItems)
		return nil, answer, nil
	}
	if reply != nil {
		if err := x.take(reply); err != nil {
			return nil, nil, err
		}
	}
	span, more := x.pager.Next()
	if x.dry = !more && x.show.DryRun; x.dry {
		return x.plain, nil, nil
	}
	if !more {
		answer, err := x.answer()
		return nil, answer, err
	}
	x.span = span
	r := *x.plain
	for _, m := range []struct {
		key   string
		value int
	}{{"from", span.From}, {"count", span.To - span.From}} {
		body, err := adapters.Set(r.Body, m.key, strconv.AppendInt(nil, int64(m.value), 10))
		if err != nil {
			return nil, nil, adapters.NotUnderstood(err)
		}
		r.Body = body
	}
	return &r, nil, nil
}

// take reads the engine's reply and judges its hits.
func (x *finding) take(reply *adapters.Reply) error {
	switch s := reply.Status; {
	case s >= 500, s == 401, s == 403, s == 429:
		return adapters.ErrRefused
	case s >= 400:
		return adapters.ErrWidened
	}
	root, err := adapters.Members(reply.Body)
	if err != nil {
		return adapters.NotUnderstood(err)
	}
	items, err := adapters.Elements(adapters.Get(root, "items"))
	total := number(root, "total", -1)
	if err != nil || total < 0 || len(items) > x.span.To-x.span.From {
		return adapters.NotUnderstood(errors.New("no list of items as it was asked for"))
	}
	if x.span.From == 0 { // later spans are the page's own hits, which are known
		x.judge.Reset()
	}
	hits := make([]rerank.Hit, len(items))
	for i, item := range items {
		members, _ := adapters.Members(item)
		id, ok := adapters.Text(adapters.Get(members, "id"))
		document := adapters.Get(members, "doc")
		inside, err := adapters.Members(document)
		if !ok || err != nil {
			return adapters.NotUnderstood(errors.New("an item without id or doc"))
		}
		stored, _ := adapters.Text(adapters.Get(inside, adapters.SketchField))
		hits[i] = x.judge.Hit(adapters.Seen{
			Index: x.target, ID: id, Stored: []byte(stored), Document: func(*adapters.Rule) []byte { return document },
		})
	}
	x.reply, x.items, x.total = reply, items, total
	x.pager.Take(x.span, hits)
	return nil
}

// inItem cuts our field out of an item's document.
var inItem = adapters.Cuts{Drop: func(path []string) bool { return slices.Equal(path, []string{"doc", adapters.SketchField}) }}

// inItems cuts our field out of the documents of a reply.
var inItems = adapters.Cuts{Drop: func(path []string) bool {
	return slices.Equal(path, []string{"items", "doc", adapters.SketchField})
}}

func (x *finding) outcome() adapters.Outcome {
	o := adapters.OutcomeOf(x.target, x.page, x.pager.Stats(), x.judge.Lacking, x.total)
	o.DryRun = x.show.DryRun
	return o
}

// answer puts the page's hits into the engine's last reply.
func (x *finding) answer() (*adapters.Answer, error) {
	ranks, err := x.pager.Ranks()
	if err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	page := make([][]byte, len(ranks))
	for i, rank := range ranks {
		at := rank - x.span.From
		if at < 0 || at >= len(x.items) {
			return nil, adapters.NotUnderstood(errors.New("the list moved while it was read"))
		}
		page[i] = adapters.Cleaned(x.items[at], inItem)
	}
	list := append(append([]byte{'['}, bytes.Join(page, []byte{','})...), ']')
	answer := &adapters.Answer{Reply: *x.reply}
	if answer.Body, err = adapters.Set(x.reply.Body, "items", list); err != nil {
		return nil, adapters.NotUnderstood(err)
	}
	answer.Outcomes = []adapters.Outcome{x.outcome()}
	return answer, nil
}
