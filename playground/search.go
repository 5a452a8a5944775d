package playground

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/try"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
)

// searchReply is the reply to api/search.
type searchReply struct {
	// Total is the engine's count of hits, -1 if it gave none.
	Total int   `json:"total"`
	Hits  []hit `json:"hits"`
	// Pairs are those of pairsOf.
	Pairs [][]float64 `json:"pairs"`
	Apart []apart     `json:"apart"`
	Rule  ruleInfo    `json:"rule"`
	// Errors are those of errorsOf.
	Errors  []float64     `json:"errors"`
	Sidecar collapsedPage `json:"sidecar"`
	Timing  timing        `json:"timing"`
	YAML    string        `json:"yaml"`
}

// hit is one rank of the engine's list.
type hit struct {
	Rank  int    `json:"rank"`
	ID    string `json:"id"`
	Index string `json:"index"`
	// Score is null if the engine gave none.
	Score json.RawMessage `json:"score"`
	Title string          `json:"title"`
	// Fields are the texts that are compared, without markup; Cut says that one of them is longer than what is shown.
	Fields map[string]string `json:"fields"`
	Cut    bool              `json:"cut"`
	// Sketch is stored, computed or none.
	Sketch string `json:"sketch"`
	// Stale says that the stored sketch is that of another text: the document was changed without the sidecar.
	Stale    bool   `json:"stale,omitempty"`
	Shingles uint32 `json:"shingles"`
	// Words is 0 where they do not count.
	Words uint32 `json:"words"`
	// Order is that of ordersOf.
	Order  int  `json:"order"`
	Pinned bool `json:"pinned,omitempty"`
}

// ruleInfo is the rule of the search.
type ruleInfo struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Threshold float64  `json:"threshold"`
	// Window is the one that was asked for, or else the configured one. Of more than MaxRanks, MaxRanks are compared.
	Window int `json:"window"`
	// MaxWindow is the largest that a user can choose.
	MaxWindow      int      `json:"max_window"`
	Preset         string   `json:"preset"`
	Keep           int      `json:"keep"`
	Transitive     bool     `json:"transitive"`
	MinShingles    int      `json:"min_shingles"`
	MinWords       int      `json:"min_words"`
	Numbers        string   `json:"numbers"`
	Measure        string   `json:"measure"`
	Representative string   `json:"representative"`
	Conditions     []string `json:"conditions"`
	K              int      `json:"k"`
	Bits           int      `json:"bits"`
	Family         string   `json:"family"`
}

// collapsedPage is the sidecar's reply to the same search.
type collapsedPage struct {
	Outcome string `json:"outcome"`
	// IDs are the hits that it shows, among those that were compared.
	IDs    []string `json:"ids"`
	Status int      `json:"status"`
	Error  string   `json:"error,omitempty"`
}

// timing is that of the collapsed search, in milliseconds.
type timing struct {
	Engine float64 `json:"engine_ms"`
	Own    float64 `json:"own_ms"`
	Total  float64 `json:"total_ms"`
}

// titles are fields that may contain a document's title.
var titles = []string{"title", "name", "headline", "subject", "heading", "label"}

// search is one search of a user.
type search struct {
	engine *Engine
	view   *View
	look   adapters.Look
	// threshold and window are those of the collapsed search.
	threshold float64
	window    int
}

// search checks a request, and returns the search that it asks for.
func (a *request) search(e *Engine) (*search, error) {
	rule := e.Match(a.Index)
	switch {
	case a.Index == "":
		return nil, Wrong("no index is named", "Choose one.")
	case rule < 0:
		return nil, Wrong("no rule matches "+short(a.Index), "Add one to indices in the configuration, or let sidecar init write it.")
	case a.Threshold != 0 && !(a.Threshold >= minThreshold && a.Threshold <= 1):
		return nil, Wrong(fmt.Sprintf("threshold: %v is out of range", a.Threshold), fmt.Sprintf("Use a number from %v to 1.", minThreshold))
	case a.Window < 0:
		return nil, Wrong(fmt.Sprintf("window: %d is out of range", a.Window), "Use a number of at least 1.")
	case !utf8.ValidString(a.Query):
		return nil, Wrong("query: it is not text", "Type words.")
	}
	view, err := e.View(rule, a.Preset)
	if err != nil {
		return nil, err
	}
	s := &search{engine: e, view: view, threshold: cmp.Or(a.Threshold, view.Rule.Profile.Threshold)}
	s.window = min(cmp.Or(a.Window, view.Rule.Window), view.MaxWindow)
	header := e.Authorize(a.Credentials)
	header["User-Agent"] = []string{"neardup-playground"}
	shown := titles
	if view.Rule.Vector != "" {
		shown = append(slices.Clone(titles), view.Rule.Vector)
	}
	s.look = adapters.Look{
		Index: a.Index, Words: strings.TrimSpace(a.Query), Size: MaxRanks, Header: header,
		Fields: view.Rule.TextFields(), Titles: shown, Deciding: view.Rule.Deciding(),
	}
	q, err := e.ReadQuery(s.look.Words)
	if err != nil {
		what, ours := strings.CutPrefix(err.Error(), "it ")
		if !ours {
			what = "cannot be read: " + what
		}
		return nil, Wrong("the query "+short(what), "Correct it. Words to search for may not begin with {.")
	}
	s.look.Search = q.Search
	return s, nil
}

// search answers a search: the engine's hits, their agreements, and the page that the sidecar returns.
func (h *Handler) search(ctx context.Context, e *Engine, a *request) (any, error) {
	s, err := a.search(e)
	if err != nil {
		return nil, err
	}
	list, err := s.plain(ctx)
	if err != nil {
		return nil, err
	}
	hits, all := s.judge(ctx, list)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var shingles []uint32
	for _, hit := range hits {
		if hit.Sketch != nil {
			shingles = append(shingles, hit.Sketch.Shingles)
		}
	}
	pairs, kept := compared(hits, all)
	reply := &searchReply{
		Total: list.Total, Hits: all, Pairs: pairs, Apart: kept, Rule: s.rule(), YAML: s.view.YAML,
		Errors: errorsOf(s.view.Rule.Sketcher.Scheme(), s.view.Rule.Profile.Measure, shingles),
	}
	var times proxy.Times
	reply.Sidecar, err = s.collapsed(proxy.WithTimes(ctx, &times), list, a.Credentials)
	if err != nil {
		return nil, err
	}
	reply.Timing = timing{try.Milliseconds(times.Engine), try.Milliseconds(times.Own), try.Milliseconds(times.Total)}
	return reply, nil
}

// plain returns the engine's own hits.
func (s *search) plain(ctx context.Context) (adapters.Looked, error) {
	look := s.look
	look.Judged = true
	ask, err := s.engine.LookFor(look)
	if err != nil {
		return adapters.Looked{}, Wrong(short(err.Error()), "Change the query, or choose another index.")
	}
	reply, err := try.Call(ctx, s.view.Handler, ask, "off")
	if err != nil {
		return adapters.Looked{}, err
	}
	list, err := s.engine.LookedAt(look, reply)
	list.Hits = list.Hits[:min(len(list.Hits), MaxRanks)] // an engine may return more
	return list, err
}

// contextDeadline is a deadline that has passed when the context has ended.
type contextDeadline struct{ context.Context }

// Late implements rerank.Deadline.
func (d contextDeadline) Late() bool { return d.Err() != nil }

// judge returns the hits for the comparison and for the reply.
func (s *search) judge(ctx context.Context, list adapters.Looked) (hits []rerank.Hit, all []hit) {
	judge := rule.NewJudge(s.view.Rules, 0, 0)
	judge.Doubting, judge.Deadline = list.Doubting, contextDeadline{ctx}
	if s.view.Decided != nil {
		judge.Decided = s.view.Decided()
	}
	all = []hit{}
	for i, seen := range list.Hits {
		seen.Seen.Document = seen.ID
		before := judge.Sketches()
		judged := judge.Hit(seen.Seen)
		after := judge.Sketches()
		h := hit{
			Rank: i, ID: seen.ID, Index: seen.Name, Score: seen.Score, Sketch: "none", Stale: after.Stale > before.Stale,
			Pinned: seen.Pinned, Fields: map[string]string{},
		}
		if judged.Sketch != nil {
			h.Sketch, h.Shingles, h.Words = "computed", judged.Sketch.Shingles, judged.Sketch.Words
			if after.Stored > before.Stored {
				h.Sketch = "stored"
			}
		}
		texts := s.view.Rule.FieldTexts(seen.Document)
		for n, field := range s.view.Rule.TextFields() {
			text, cut := cutAt(s.content(texts[n]), MaxText)
			h.Fields[field], h.Cut = text, h.Cut || cut
		}
		h.Title = s.title(seen.Document, h.Fields)
		hits, all = append(hits, judged), append(all, h)
	}
	for i, order := range ordersOf(hits) {
		all[i].Order = order
	}
	return hits, all
}

// content returns the part of a field's texts that is compared: without markup, unless that counts.
func (s *search) content(texts []string) string {
	plain := make([]string, len(texts))
	for i, text := range texts {
		plain[i] = s.view.Rule.Sketcher.Content(text)
	}
	return strings.Join(plain, "\n")
}

// title returns a document's title, or the beginning of its text.
func (s *search) title(document []byte, fields map[string]string) string {
	const most = 160
	members, _ := jsonedit.Members(document)
	for _, name := range titles {
		if text, ok := jsonedit.Text(jsonedit.Get(members, name)); ok && strings.TrimSpace(text) != "" {
			text, _ = cutAt(strings.TrimSpace(text), most)
			return text
		}
	}
	for _, field := range s.view.Rule.TextFields() {
		if words := strings.Fields(fields[field]); len(words) > 0 {
			text, _ := cutAt(strings.Join(words[:min(len(words), 24)], " "), most)
			return text
		}
	}
	return ""
}

// cutAt cuts a text to a number of bytes, and reports whether it was longer.
func cutAt(text string, most int) (string, bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text, false
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}

// rule returns the rule for the reply.
func (s *search) rule() ruleInfo {
	r := s.view.Rule
	scheme := r.Sketcher.Scheme()
	return ruleInfo{
		Match: r.Match, Fields: r.TextFields(), Threshold: r.Profile.Threshold, Preset: s.view.Preset,
		Window: s.window, MaxWindow: s.view.MaxWindow,
		Keep: max(r.Profile.Keep, 1), Transitive: r.Transitive, MinShingles: r.Profile.MinShingles,
		MinWords: r.Profile.MinWords, Numbers: string(cmp.Or(r.Profile.Numbers, rerank.CountNumbers)),
		Measure:    string(cmp.Or(r.Profile.Measure, rerank.Resemblance)),
		Conditions: append([]string{}, s.view.Conditions...), Representative: s.view.Representative,
		K: scheme.Positions, Bits: scheme.Bits, Family: string(scheme.Family),
	}
}

// collapsed sends the same search through the sidecar, collapsed with the window and threshold. If the engine refuses it, the page shows the
// error along with the engine's own hits.
func (s *search) collapsed(ctx context.Context, list adapters.Looked, c Credentials) (collapsedPage, error) {
	out := collapsedPage{IDs: []string{}}
	ask, err := s.engine.LookFor(s.look)
	if err != nil {
		return out, err
	}
	reply, err := try.Call(ctx, s.view.Handler, ask, fmt.Sprintf("on; threshold=%v; window=%d", s.threshold, min(s.window, MaxRanks)))
	if err != nil {
		return out, err
	}
	out.Status = reply.Status
	if lines := reply.Header[http.CanonicalHeaderKey(adapters.OutcomeHeader)]; len(lines) > 0 {
		out.Outcome = lines[0]
	}
	answer, err := s.engine.LookedAt(s.look, reply)
	if err != nil {
		out.Error = failureOf(ctx, err, c).What
		return out, nil
	}
	for _, seen := range answer.Hits {
		out.IDs = append(out.IDs, seen.ID)
	}
	// To be full, the page may end with hits beyond those that were compared.
	wasCompared := func(id string) bool {
		return slices.ContainsFunc(list.Hits, func(h adapters.LookedHit) bool { return h.ID == id })
	}
	for len(out.IDs) > 0 && !wasCompared(out.IDs[len(out.IDs)-1]) {
		out.IDs = out.IDs[:len(out.IDs)-1]
	}
	return out, nil
}
