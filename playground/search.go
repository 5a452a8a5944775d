package playground

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
)

// found is the answer to a search.
type found struct {
	// Total is the engine's count of hits, -1 where it gave none.
	Total int   `json:"total"`
	Hits  []hit `json:"hits"`
	// Pairs are those of pairsOf.
	Pairs   [][]float64 `json:"pairs"`
	Rule    shown       `json:"rule"`
	Curve   curve       `json:"curve"`
	Sidecar collapsed   `json:"sidecar"`
	Timing  timing      `json:"timing"`
	YAML    string      `json:"yaml"`
}

// hit is one rank of the engine's list.
type hit struct {
	Rank  int    `json:"rank"`
	ID    string `json:"id"`
	Index string `json:"index"`
	// Score is null where the engine gave none.
	Score json.RawMessage `json:"score"`
	Title string          `json:"title"`
	// Fields are the sketched texts as they are compared, without markup; Cut says that one is longer than what is shown.
	Fields map[string]string `json:"fields"`
	Cut    bool              `json:"cut"`
	// Sketch is where the sketch is from: stored, computed or none.
	Sketch string `json:"sketch"`
	// Stale says that what is stored is the sketch of another text: the document was changed past the sidecar.
	Stale    bool   `json:"stale,omitempty"`
	Shingles uint32 `json:"shingles"`
	// Order is that of ordersOf.
	Order  int  `json:"order"`
	Pinned bool `json:"pinned,omitempty"`
}

// shown is the rule that is looked at.
type shown struct {
	Match     string   `json:"match"`
	Fields    []string `json:"fields"`
	Threshold float64  `json:"threshold"`
	// Window is what was collapsed over: no more than MaxRanks.
	Window int `json:"window"`
	// MaxWindow is the largest that can be asked for.
	MaxWindow      int      `json:"max_window"`
	Preset         string   `json:"preset"`
	Keep           int      `json:"keep"`
	Transitive     bool     `json:"transitive"`
	MinShingles    int      `json:"min_shingles"`
	Measure        string   `json:"measure"`
	Representative string   `json:"representative"`
	Conditions     []string `json:"conditions"`
	K              int      `json:"k"`
	Bits           int      `json:"bits"`
	Family         string   `json:"family"`
}

// collapsed is what the sidecar itself answers to the same search.
type collapsed struct {
	Outcome string `json:"outcome"`
	// IDs are the documents that it shows of the ranks looked at, in its order.
	IDs    []string `json:"ids"`
	Status int      `json:"status"`
	Error  string   `json:"error,omitempty"`
}

// timing is in milliseconds. Plain is the engine's own search, the others are of the search that was collapsed.
type timing struct {
	Engine float64 `json:"engine_ms"`
	Plain  float64 `json:"plain_ms"`
	Own    float64 `json:"own_ms"`
	Total  float64 `json:"total_ms"`
}

// titles are the fields that may say in short what a document is.
var titles = []string{"title", "name", "headline", "subject", "heading", "label"}

// looking is one search of a user.
type looking struct {
	engine *Engine
	view   *View
	look   adapters.Look
	// threshold and window are those of the sidecar's search.
	threshold float64
	window    int
}

// looking returns what a question asks for, or what is wrong with it.
func (a *asked) looking(e *Engine) (*looking, error) {
	rule := e.Match(a.Index)
	switch {
	case a.Index == "":
		return nil, Wrong("no index is named", "Choose one.")
	case rule < 0:
		return nil, Wrong("no rule matches "+short(a.Index), "Add one to indices in the configuration, or let sidecar init write it.")
	case a.Threshold != 0 && !(a.Threshold >= least && a.Threshold <= 1):
		return nil, Wrong(fmt.Sprintf("threshold: %v is out of range", a.Threshold), fmt.Sprintf("Use a number from %v to 1.", least))
	case a.Window < 0:
		return nil, Wrong(fmt.Sprintf("window: %d is out of range", a.Window), "Use a number of at least 1.")
	case !utf8.ValidString(a.Query):
		return nil, Wrong("query: it is no text", "Type words.")
	}
	view, err := e.View(rule, a.Preset)
	if err != nil {
		return nil, err
	}
	l := &looking{engine: e, view: view, threshold: cmp.Or(a.Threshold, view.Rule.Profile.Threshold)}
	l.window = min(cmp.Or(a.Window, view.Rule.Window), view.MaxWindow, MaxRanks)
	l.look = adapters.Look{
		Index: a.Index, Words: strings.TrimSpace(a.Query), Size: MaxRanks, Header: e.Authorize(a.Credentials),
		Fields: view.Rule.Fields, Titles: titles, Deciding: view.Rule.Deciding(),
	}
	return l, nil
}

// search answers a search: the engine's list, how far its hits agree, and what the sidecar makes of it.
func (h *Handler) search(ctx context.Context, e *Engine, a *asked) (any, error) {
	l, err := a.looking(e)
	if err != nil {
		return nil, err
	}
	var plain, whole proxy.Times
	list, err := l.plain(proxy.WithTimes(ctx, &plain))
	if err != nil {
		return nil, err
	}
	hits, all := l.judged(ctx, list)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var shingles []uint32
	for _, hit := range hits {
		if hit.Sketch != nil {
			shingles = append(shingles, hit.Sketch.Shingles)
		}
	}
	f := &found{
		Total: list.Total, Hits: all, Pairs: pairsOf(hits), Rule: l.rule(), YAML: l.view.YAML,
		Curve: curveOf(l.view.Rule.Sketcher.Scheme(), l.view.Rule.Profile.Measure, shingles),
	}
	f.Sidecar, err = l.collapsed(proxy.WithTimes(ctx, &whole), list, a.Credentials)
	if err != nil {
		return nil, err
	}
	f.Timing = timing{
		Engine: milliseconds(whole.Engine), Own: milliseconds(whole.Own), Total: milliseconds(whole.Total),
		Plain: milliseconds(plain.Engine),
	}
	return f, nil
}

// milliseconds returns a time to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// plain returns the engine's own list.
func (l *looking) plain(ctx context.Context) (adapters.Looked, error) {
	look := l.look
	look.Judged = true
	ask, err := l.engine.LookFor(look)
	if err != nil {
		return adapters.Looked{}, Wrong(err.Error(), "Choose another index, or type other words.")
	}
	reply, err := call(ctx, l.view.Handler, ask, "off")
	if err != nil {
		return adapters.Looked{}, err
	}
	list, err := l.engine.LookedAt(look, reply)
	list.Hits = list.Hits[:min(len(list.Hits), MaxRanks)] // whatever was asked for: each is compared with all before it
	return list, err
}

// ended is a deadline that comes when a context ends.
type ended struct{ context.Context }

// Late implements rerank.Deadline.
func (e ended) Late() bool { return e.Err() != nil }

// judged returns the hits as they are compared and as they are answered.
func (l *looking) judged(ctx context.Context, list adapters.Looked) (hits []rerank.Hit, all []hit) {
	judge := rule.NewJudge(l.view.Rules, 0, 0)
	judge.Doubting, judge.Deadline = list.Doubting, ended{ctx}
	all = []hit{}
	for i, seen := range list.Hits {
		before := judge.Sketches()
		judged := judge.Hit(seen.Seen)
		after := judge.Sketches()
		h := hit{
			Rank: i, ID: seen.ID, Index: seen.Name, Score: seen.Score, Sketch: "none", Stale: after.Stale > before.Stale,
			Pinned: seen.Pinned, Fields: map[string]string{},
		}
		if judged.Sketch != nil {
			h.Sketch, h.Shingles = "computed", judged.Sketch.Shingles
			if after.Stored > before.Stored {
				h.Sketch = "stored"
			}
		}
		texts := l.view.Rule.FieldTexts(seen.Document)
		for n, field := range l.view.Rule.Fields {
			text, cut := cutAt(l.compared(texts[n]), MaxText)
			h.Fields[field], h.Cut = text, h.Cut || cut
		}
		h.Title = l.title(seen.Document, h.Fields)
		hits, all = append(hits, judged), append(all, h)
	}
	for i, order := range ordersOf(hits) {
		all[i].Order = order
	}
	return hits, all
}

// compared returns a field's texts as one, as they are compared: without markup, where that does not count.
func (l *looking) compared(texts []string) string {
	plain := make([]string, len(texts))
	for i, text := range texts {
		plain[i] = l.view.Rule.Sketcher.Content(text)
	}
	return strings.Join(plain, "\n")
}

// title returns what a document is called, or else how its text begins.
func (l *looking) title(document []byte, fields map[string]string) string {
	const most = 160
	members, _ := jsonedit.Members(document)
	for _, name := range titles {
		if text, ok := jsonedit.Text(jsonedit.Get(members, name)); ok && strings.TrimSpace(text) != "" {
			text, _ = cutAt(strings.TrimSpace(text), most)
			return text
		}
	}
	for _, field := range l.view.Rule.Fields {
		if words := strings.Fields(fields[field]); len(words) > 0 {
			text, _ := cutAt(strings.Join(words[:min(len(words), 24)], " "), most)
			return text
		}
	}
	return ""
}

// cutAt returns a text of at most so many bytes, and whether it was longer.
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

// rule returns the rule as it is answered.
func (l *looking) rule() shown {
	r := l.view.Rule
	scheme := r.Sketcher.Scheme()
	return shown{
		Match: r.Match, Fields: r.Fields, Threshold: r.Profile.Threshold, Preset: l.view.Preset,
		Window: l.window, MaxWindow: min(l.view.MaxWindow, MaxRanks),
		Keep: max(r.Profile.Keep, 1), Transitive: r.Transitive, MinShingles: r.Profile.MinShingles,
		Measure:    string(cmp.Or(r.Profile.Measure, rerank.Resemblance)),
		Conditions: append([]string{}, l.view.Conditions...), Representative: l.view.Representative,
		K: scheme.Positions, Bits: scheme.Bits, Family: string(scheme.Family),
	}
}

// collapsed asks the sidecar for the same search, collapsed over the window at the threshold. The engine may refuse what it
// granted a moment before: that is said, and the list is shown.
func (l *looking) collapsed(ctx context.Context, list adapters.Looked, c Credentials) (collapsed, error) {
	out := collapsed{IDs: []string{}}
	ask, err := l.engine.LookFor(l.look)
	if err != nil {
		return out, err
	}
	reply, err := call(ctx, l.view.Handler, ask, fmt.Sprintf("on; threshold=%v; window=%d", l.threshold, l.window))
	if err != nil {
		return out, err
	}
	out.Status = reply.Status
	if lines := reply.Header[http.CanonicalHeaderKey(adapters.OutcomeHeader)]; len(lines) > 0 {
		out.Outcome = lines[0]
	}
	answer, err := l.engine.LookedAt(l.look, reply)
	if err != nil {
		out.Error = explained(ctx, err, c).What
		return out, nil
	}
	for _, seen := range answer.Hits {
		out.IDs = append(out.IDs, seen.ID)
	}
	// A page goes on behind the ranks that are looked at, to be full.
	held := func(id string) bool {
		return slices.ContainsFunc(list.Hits, func(h adapters.LookedHit) bool { return h.ID == id })
	}
	for len(out.IDs) > 0 && !held(out.IDs[len(out.IDs)-1]) {
		out.IDs = out.IDs[:len(out.IDs)-1]
	}
	return out, nil
}
