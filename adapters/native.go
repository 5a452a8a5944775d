package adapters

import (
	"strings"

	"github.com/neardup/sidecar/rerank"
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
func (s Scope) NativeUnder(c Controls) (r *Rule, fell Reason) {
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
