package groups

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/localpage"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cleanup"
)

//go:embed assets
var assets embed.FS

// mostListed is how many groups one page of the list holds. mostShown is how many documents of a group are shown, mostPassages how many passages of
// boilerplate, and mostLetters how much of each.
const mostListed, mostShown, mostPassages, mostLetters = 50, 200, 100, 300

// Options say what the page shows.
type Options struct {
	Job jobs.Job
	// Place is the index that decisions are stored for. By is who decides.
	Place decided.Place
	By    string
	// Dir is where the temporary file goes; empty for the system's directory.
	Dir string
	// Plan is the head of the clean-up plan. New fills in its counts.
	Plan cleanup.Plan
	// Decided is how many pairs were decided before.
	Decided int
	// Passages are the boilerplate of the index.
	Passages []boilerplate.Passage
}

// Groups are the groups of an index, as the page shows them.
type Groups struct {
	Options
	spool  *spool
	log    *decided.Log
	marker *boilerplate.Marker

	mu sync.Mutex // locked while a request is answered
	// made are the decisions of this page about the document that stays in a group and another one, the last one at the end, by group and id.
	made map[int]map[string][]made
	// out are the groups that a person left out of the plan.
	out map[int]bool
	// chosen caches the groups of the last filter and order.
	chosen []uint32
	filter Filter
	order  Order
}

// made is a decision of this page, and the earlier one, which undo stores again.
type made struct {
	verdict decided.Verdict
	before  decided.Pair
}

// New collects the groups that find yields. find returns the counts of the plan.
func New(o Options, find func(yield func(cleanup.Group) error) (cleanup.Counts, error)) (*Groups, error) {
	s, err := newSpool(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.Plan.Counts, err = find(s.add); err != nil {
		s.close()
		return nil, err
	}
	g := &Groups{Options: o, spool: s, log: decided.Open(o.Job.Store.Journal()), made: map[int]map[string][]made{}, out: map[int]bool{}}
	g.marker = boilerplate.NewMarker(o.Job.Rule.Sketcher, o.Passages)
	slices.Sort(s.fields)
	return g, nil
}

// Close frees the temporary file.
func (g *Groups) Close() { g.spool.close() }

// state is what the page shows above the list.
type state struct {
	Plan      cleanup.Plan `json:"plan"`
	Threshold float64      `json:"threshold"`
	DateField string       `json:"date_field"`
	Fields    []string     `json:"fields"`
	Groups    int          `json:"groups"`
	Decided   int          `json:"decided"`
	// Apart is how many documents stay after all, because a person decided that they differ.
	Apart int `json:"apart"`
	// Passages are the first of the boilerplate, AllPassages is how many there are.
	Passages    []contained `json:"passages"`
	AllPassages int         `json:"all_passages"`
}

// Page returns the page that shows the groups.
func (g *Groups) Page() localpage.Page {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		localpage.Answer(w, g.state())
	})
	post(mux, g, "list", g.listed)
	post(mux, g, "group", g.shown)
	post(mux, g, "decide", g.decide)
	post(mux, g, "leave", g.leave)
	mux.HandleFunc("GET /api/export", g.export)
	mux.HandleFunc("GET /api/plan", g.plan)
	files, _ := fs.Sub(assets, "assets") // never fails: the name is valid
	return localpage.Page{Files: files, API: mux}
}

// post registers a function that answers POST requests.
func post[T any](mux *http.ServeMux, g *Groups, name string, of func(context.Context, T) (any, error)) {
	mux.HandleFunc("/api/"+name, func(w http.ResponseWriter, r *http.Request) {
		var body T
		if !localpage.Read(w, r, &body) {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		value, err := of(r.Context(), body)
		if err != nil {
			localpage.Refuse(w, http.StatusConflict, err)
			return
		}
		localpage.Answer(w, value)
	})
}

func (g *Groups) state() state {
	s := state{
		Plan: g.Plan, Threshold: g.Job.Rule.Profile.Threshold, DateField: g.Job.Rule.DateField, Fields: g.spool.fields, Groups: len(g.spool.list), Decided: g.Decided,
		Passages: []contained{}, AllPassages: len(g.Passages),
	}
	for n := range min(len(g.Passages), mostPassages) {
		s.Passages = append(s.Passages, g.contained(n))
	}
	for n := range g.made {
		s.Apart += g.apart(n)
	}
	return s
}

// wanted says which part of the list the page asks for.
type wanted struct {
	Filter
	Order Order `json:"order"`
	From  int   `json:"at"`
}

// list is the reply: a part of the list, and how many groups pass the filter.
type list struct {
	Total  int      `json:"total"`
	Groups []listed `json:"groups"`
	// Stay and Go are the counts of a plan for the groups that pass the filter.
	Stay int `json:"stay"`
	Go   int `json:"go"`
}

// listed is a group in the list.
type listed struct {
	Number int     `json:"number"`
	Size   int     `json:"size"`
	Least  float32 `json:"least"`
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Host   string  `json:"host"`
	Apart  int     `json:"apart"`
	Out    bool    `json:"out"`
}

func (g *Groups) listed(_ context.Context, w wanted) (any, error) {
	w.DateField = g.Job.Rule.DateField
	for _, day := range []string{w.Filter.From, w.Filter.To} {
		if _, ok := cleanup.Milliseconds(day); day != "" && !ok {
			return nil, fmt.Errorf("%q is not a date: write one such as 2024-05-01", day)
		}
	}
	if g.chosen == nil || g.filter != w.Filter || g.order != w.Order {
		chosen := []uint32{}
		if w.Filter.empty() {
			for n := range g.spool.list {
				chosen = append(chosen, uint32(n))
			}
		} else if err := g.spool.each(w.Filter, func(n int, _ cleanup.Group) error { chosen = append(chosen, uint32(n)); return nil }); err != nil {
			return nil, err
		}
		g.spool.sorted(chosen, w.Order)
		g.chosen, g.filter, g.order = chosen, w.Filter, w.Order
	}
	l := list{Total: len(g.chosen), Groups: []listed{}}
	for _, n := range g.chosen {
		if goes := int(g.spool.list[n].size) - 1 - g.apart(int(n)); goes > 0 && !g.out[int(n)] {
			l.Stay++
			l.Go += goes
		}
	}
	from := min(max(0, w.From), len(g.chosen))
	for _, n := range g.chosen[from:min(from+mostListed, len(g.chosen))] {
		e := g.spool.list[n]
		group, err := g.spool.read(int(n))
		if err != nil {
			return nil, err
		}
		l.Groups = append(l.Groups, listed{int(n), int(e.size), e.least, group.Stays.ID, group.Stays.Title, group.Stays.Host, g.apart(int(n)), g.out[int(n)]})
	}
	return l, nil
}

// group is a group with its texts.
type group struct {
	Number  int      `json:"number"`
	Cluster string   `json:"cluster"`
	Why     string   `json:"why"`
	Out     bool     `json:"out"`     // of the plan
	Members []member `json:"members"` // the one that stays first
	// More is how many members are not shown.
	More int `json:"more"`
}

// member is a document of a group as it is now.
type member struct {
	ID        string          `json:"id"`
	Title     string          `json:"title"`
	Host      string          `json:"host"`
	Agreement float64         `json:"agreement"`
	Fields    []cleanup.Field `json:"fields"`
	Text      string          `json:"text"`
	Cut       bool            `json:"cut"`
	// State is gone or changed since the groups were made; empty if neither.
	State string `json:"state"`
	// Verdict is what was decided on this page about it and the one that stays.
	Verdict decided.Verdict `json:"verdict"`
	// Passages are those that the text contains. Marks are where: from one UTF-16 unit of the text to before another.
	Passages []contained `json:"passages"`
	Marks    [][2]int    `json:"marks"`
}

// contained is a passage of boilerplate, as the page shows it.
type contained struct {
	Number    int    `json:"number"` // from 1
	Documents int    `json:"documents"`
	Text      string `json:"text"` // its beginning
}

// contained returns the passage at a place of the list.
func (g *Groups) contained(n int) contained {
	p, letters := &g.Passages[n], 0
	c := contained{n + 1, p.Documents, p.Text}
	for at := range p.Text {
		if letters == mostLetters {
			c.Text = p.Text[:at] + " …"
			break
		}
		letters++
	}
	return c
}

// mark fills in the passages of a member's text.
func (g *Groups) mark(m *member) {
	passages, marks := g.marker.Find(m.Text)
	for _, n := range passages {
		m.Passages = append(m.Passages, g.contained(n))
	}
	at, units := 0, 0
	place := func(to int) int {
		for _, r := range m.Text[at:to] {
			units += utf16.RuneLen(r)
		}
		at = to
		return units
	}
	for _, mark := range marks {
		m.Marks = append(m.Marks, [2]int{place(mark.From), place(mark.To)})
	}
}

// which names a group.
type which struct {
	Number int `json:"number"`
}

var errNoGroup = errors.New("there is no such group")

func (g *Groups) shown(ctx context.Context, w which) (any, error) {
	if w.Number < 0 || w.Number >= len(g.spool.list) {
		return nil, errNoGroup
	}
	found, err := g.spool.read(w.Number)
	if err != nil {
		return nil, err
	}
	all := append([]cleanup.Member{found.Stays}, found.Goes...)
	made := group{Number: w.Number, Cluster: found.Cluster, Why: found.Why, Out: g.out[w.Number], More: max(0, len(all)-mostShown)}
	var ids []string
	for _, m := range all[:min(mostShown, len(all))] {
		ids = append(ids, m.ID)
		made.Members = append(made.Members, member{
			ID: m.ID, Title: m.Title, Host: m.Host, Agreement: m.Agreement, Fields: m.Fields, State: "gone", Verdict: g.verdict(w.Number, m.ID),
		})
	}
	err = adapters.ReadByID(ctx, g.Job.Store, g.Job.Index, g.Job.Rule, ids, []string{adapters.AllFields}, func(d adapters.Stored) error {
		i := slices.Index(ids, d.ID)
		if i < 0 {
			return nil
		}
		m := &made.Members[i]
		if digest, _ := cleanup.Digest(d.Source); digest == all[i].Digest {
			m.State = ""
		} else {
			m.State = "changed"
		}
		members, _ := jsonedit.Members(d.Source)
		m.Fields = cleanup.Short(members)
		m.Text, m.Cut = localpage.Cut(strings.Join(g.Job.Rule.Readable(d.Source), "\n\n"))
		g.mark(m)
		return nil
	})
	return made, err
}

// verdict returns what this page decided about the document that stays in a group and another one; Forgotten if nothing.
func (g *Groups) verdict(group int, id string) decided.Verdict {
	if list := g.made[group][id]; len(list) > 0 {
		return list[len(list)-1].verdict
	}
	return decided.Forgotten
}

// apart returns how many documents of a group differ from the one that stays, as this page decided.
func (g *Groups) apart(group int) (n int) {
	for id := range g.made[group] {
		if g.verdict(group, id) == decided.Different {
			n++
		}
	}
	return n
}

// decision is a verdict on the document that stays in a group and one that goes. Forgotten undoes the last one of this page.
type decision struct {
	Number  int             `json:"number"`
	ID      string          `json:"id"`
	Verdict decided.Verdict `json:"verdict"`
}

// decidedNow is the state after a decision. Verdict is what holds on this page, Stored what is stored: after an undo it may be older than the page.
type decidedNow struct {
	state
	Verdict decided.Verdict `json:"verdict"`
	Stored  decided.Verdict `json:"stored"`
}

func (g *Groups) decide(ctx context.Context, d decision) (any, error) {
	if d.Number < 0 || d.Number >= len(g.spool.list) {
		return nil, errNoGroup
	}
	if d.Verdict != decided.Same && d.Verdict != decided.Different && d.Verdict != decided.Forgotten {
		return nil, fmt.Errorf("%q is not a verdict", d.Verdict)
	}
	found, err := g.spool.read(d.Number)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(found.Goes, func(m cleanup.Member) bool { return m.ID == d.ID }) {
		return nil, fmt.Errorf("document %s does not go in this group", d.ID)
	}
	list, stored := g.made[d.Number][d.ID], d.Verdict
	if d.Verdict == decided.Forgotten {
		if len(list) == 0 {
			return nil, fmt.Errorf("nothing was decided here about document %s", d.ID)
		}
		before := list[len(list)-1].before
		if _, err := g.log.Decide(ctx, g.By, before); err != nil {
			return nil, err
		}
		list, stored = list[:len(list)-1], before.Verdict
	} else {
		pair := decided.Pair{Index: g.Place.PairIndex(), A: found.Stays.ID, B: d.ID, Verdict: d.Verdict}
		pairs, missing, err := decided.Find(ctx, g.Job.Store, []decided.Place{g.Place}, pair)
		if err != nil || len(missing) > 0 {
			return nil, errors.Join(append(missing, err)...)
		}
		before, err := g.log.Decide(ctx, g.By, pairs[0])
		if err != nil {
			return nil, err
		}
		list = append(list, made{d.Verdict, before})
	}
	if g.made[d.Number] == nil {
		g.made[d.Number] = map[string][]made{}
	}
	g.made[d.Number][d.ID] = list
	return decidedNow{g.state(), g.verdict(d.Number, d.ID), stored}, nil
}

// leaving leaves a group out of the plan, or puts it back.
type leaving struct {
	Number int  `json:"number"`
	Out    bool `json:"out"`
}

func (g *Groups) leave(_ context.Context, l leaving) (any, error) {
	if l.Number < 0 || l.Number >= len(g.spool.list) {
		return nil, errNoGroup
	}
	if delete(g.out, l.Number); l.Out {
		g.out[l.Number] = true
	}
	return g.state(), nil
}
