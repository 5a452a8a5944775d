package adapters

import (
	"strings"

	"github.com/neardup/sidecar/rerank"
)

// Words of the documentation's list for why a search that was to be collapsed by the engine itself was collapsed at query time.
const (
	// Unclustered: a document of its list has no id of a cluster, or one that was made under another rule.
	Unclustered = "unclustered"
	// NativeRefused: the engine does not collapse by our field.
	NativeRefused = "native_refused"
	// Moved: what is stored changed while it was counted.
	Moved = "moved"
)

// GoesNative reports whether the engine can collapse at the rule's own settings, over the ids of clusters: these know agreement
// alone.
func (r *Rule) GoesNative() bool {
	return r.Native && r.Profile.Keep <= 1 && r.Profile.Measure != rerank.Containment && r.basis() == ""
}

// Clustered reports whether a text is the id of a cluster made under the rule.
func (r *Rule) Clustered(id string) bool {
	mark := r.ClusterMark()
	return len(id) > len(mark) && strings.HasPrefix(id, mark)
}

// NativeUnder returns the rule by whose clusters the engine may collapse a search over the scope, nil where what the controls ask
// for takes query time. It is nil too where such a search fell back of late: fell then says why.
func (s Scope) NativeUnder(c Controls) (r *Rule, fell string) {
	r, show := s.Native, s.Show(c)
	switch {
	case r == nil, c.Window > 0, c.Keep > 1, c.Threshold > 0 && c.Threshold != r.Profile.Threshold,
		show.Expand > ExpandOff, show.Explain, show.DryRun:
		return nil, ""
	case s.Fell != "":
		return nil, s.Fell
	}
	return r, ""
}
