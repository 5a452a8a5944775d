package adapters

import (
	"cmp"
	"slices"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// Plan is what a dialect needs to know for a search.
type Plan struct {
	Rules rule.Rules
	// Scope tells what is known of a target (an index, alias, pattern or list, as the client wrote it).
	Scope func(target string) Scope
	// MaxWindow caps the window that a request may ask for.
	MaxWindow int
	// Deadline, if not nil, is when the time for collapsing the search is over.
	Deadline rerank.Deadline
	// Cursors remembers, for this client alone, what pages of a cursor have shown. It is nil where nothing is remembered.
	Cursors Cursors
}

// Cursors remembers what a client's cursors have shown, bounded and for a time: anything in it can be gone at any moment. What is in it is
// never changed. Safe for concurrent use.
type Cursors interface {
	// Get returns what was put last under the key.
	Get(key string) (walk *rerank.Walk, ok bool)
	// Put takes a walk, which the caller does not change any more.
	Put(key string, walk *rerank.Walk)
}

// Scope is what is known of a search's target under the client's credentials. Of a default rule (config.Preset.Start) only Configured, Window,
// VectorWindow and Texts are set: it groups by leaders and shows these, expand is off, no field decides, it is no dry run, and missing sketches are
// computed.
type Scope struct {
	// Configured says that a rule matches an index of the target, or may do so.
	Configured bool
	// Window is the largest window of the rules that match indices of the target.
	Window int
	// VectorWindow is the number of neighbours that a search by vectors asks for at least, where hits fold.
	VectorWindow int
	// Chooses says that a rule shows other members than the first-ranked. It takes the whole window.
	Chooses bool
	// Transitive says that a rule groups by connected components. It takes the whole window.
	Transitive bool
	// CollapsedTotals, Expand and DryRun are those of the rules, the farthest-reaching of several; but DryRun only where all say so.
	CollapsedTotals bool
	Expand          rule.Expand
	DryRun          bool
	// Threshold and Keep, if above 0, replace those of the rules. Explains says that hits come with the reason why they were folded or shown.
	Threshold float64
	Keep      int
	Explains  bool
	// Deciding are the fields whose values are needed of each hit, Texts the sketched ones of the rules that compute missing sketches.
	Deciding []rule.Deciding
	Texts    []string
	// Widening is what recent searches of the target have shown.
	rerank.Widening
	// Lacking says that recent searches found hits without a sketch.
	Lacking bool
	// Piped says that an index of the target has the engine change what it finds there: see [Index].
	Piped bool
	// Native is the rule by whose clusters the engine may collapse a search itself, the one rule of all indices of the target; nil if there
	// is none. Fell, if not empty, says why it may not for a while: see [Outcome].
	Native *rule.Rule
	Fell   Reason
}

// Add adds a rule that matches an index of the target.
func (s *Scope) Add(r *rule.Rule) {
	s.DryRun = r.DryRun && (s.DryRun || !s.Configured)
	s.Configured, s.Window, s.VectorWindow = true, max(s.Window, r.Window), max(s.VectorWindow, r.VectorWindow)
	s.Chooses, s.Transitive = s.Chooses || !r.Choice.Ranked(), s.Transitive || r.Transitive
	s.CollapsedTotals = s.CollapsedTotals || r.CollapsedTotals
	s.Expand = max(s.Expand, r.Expand)
	for _, d := range r.Deciding() {
		if !slices.Contains(s.Deciding, d) {
			s.Deciding = append(s.Deciding, d)
		}
	}
	for _, field := range r.Fields {
		if r.Compute && !slices.Contains(s.Texts, field) {
			s.Texts = append(s.Texts, field)
		}
	}
}

// Under returns the scope as the controls of a search have it, with a window of at most so many ranks.
func (s Scope) Under(c Controls, maxWindow int) Scope {
	s.Window = min(cmp.Or(c.Window, s.Window), maxWindow)
	s.DryRun = c.DryRun || s.DryRun && !c.On
	s.Threshold, s.Keep, s.Explains = c.Threshold, c.Keep, c.Explain != nil && *c.Explain
	if c.Collapsed != nil {
		s.CollapsedTotals = *c.Collapsed
	}
	if c.Expand != nil {
		s.Expand = *c.Expand
	}
	if s.Explains {
		s.Expand = max(s.Expand, rule.ExpandIDs)
	}
	atQueryTime := s.Expand > rule.ExpandOff || s.DryRun || c.Window > 0 || c.Keep > 1
	if s.Native == nil || atQueryTime || c.Threshold > 0 && c.Threshold != s.Native.Profile.Threshold {
		s.Native, s.Fell = nil, ""
	}
	return s
}
