package adapters

import (
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Judge turns what an engine shows of a hit into what package rerank compares. It is for one search.
type Judge struct {
	rules    Rules
	controls Controls
	profiles map[*Rule]*rerank.Profile
	// Doubting says that a stored sketch is believed only after a look at the text, wherever that is at hand: for engines that store
	// a backfill's sketch whatever became of the document.
	Doubting bool
	// Lacking counts the hits of configured indices that had no sketch to go by: no comparable one stored, or one of another text.
	Lacking int
	// Unread counts those of them whose text would have to be read for a sketch to be computed.
	Unread int
}

// NewJudge returns a Judge for a search under the controls.
func NewJudge(rules Rules, controls Controls) *Judge {
	return &Judge{rules: rules, controls: controls, profiles: map[*Rule]*rerank.Profile{}}
}

// Reset sets the counts to zero: the hits are about to be read anew.
func (j *Judge) Reset() { j.Lacking, j.Unread = 0, 0 }

// Unjudged returns the hit of a concrete index where only which document it is matters.
func Unjudged(index, id string) rerank.Hit { return rerank.Hit{ID: index + "\x00" + id} }

// Hit returns the hit of a concrete index with the id and the text stored in our field ("" if there is none). Where no usable
// sketch is stored and the rule says to compute one, document is called for the hit's JSON with all of the rule's fields; nil
// means it is not at hand. A Judge that doubts calls it for every hit.
func (j *Judge) Hit(index, id, stored string, document func(*Rule) []byte) rerank.Hit {
	hit := Unjudged(index, id)
	rule := j.rules.For(index)
	if rule == nil {
		return hit
	}
	if s := rule.Decode(stored); s != nil && j.believes(rule, s, document) {
		hit.Sketch, hit.Profile = s, j.profile(rule)
		return hit
	}
	j.Lacking++
	if !rule.Compute {
		return hit
	}
	source := document(rule)
	if source == nil {
		j.Unread++
		return hit
	}
	if computed, _ := rule.SketchOf(source); computed != nil {
		hit.Sketch, hit.Profile = &computed.Sketch, j.profile(rule)
	}
	return hit
}

// believes reports whether a stored sketch is that of the hit's text, as far as that can be seen.
func (j *Judge) believes(rule *Rule, s *sketch.Sketch, document func(*Rule) []byte) bool {
	if !j.Doubting {
		return true
	}
	source := document(rule)
	return source == nil || rule.Fits(s, source)
}

func (j *Judge) profile(rule *Rule) *rerank.Profile {
	p := j.profiles[rule]
	if p == nil {
		own := rule.Profile
		p = &own
		if j.controls.Threshold > 0 {
			p.Threshold = j.controls.Threshold
		}
		j.profiles[rule] = p
	}
	return p
}

// Page returns what a Pager needs for the client's page of a search over the scope, under the controls and the engine's limit.
func (p Plan) Page(from, size int, scope Scope, controls Controls, limit int) rerank.Page {
	window := scope.Window
	if controls.Window > 0 {
		window = controls.Window
	}
	return rerank.Page{From: from, Size: size, Window: min(window, p.MaxWindow), Limit: limit, Rate: scope.Rate}
}

// OutcomeOf returns the outcome of a collapsed search whose list holds total hits in all by the engine's count, or -1 where it
// gave none.
func OutcomeOf(target string, page rerank.Page, stats rerank.Stats, lacking, total int) Outcome {
	if total < 0 {
		total = stats.Read
	}
	return Outcome{
		Target: target, Raw: total, Read: stats.Read, Folded: stats.Folded, Without: lacking,
		Exact: stats.Ended, Limited: stats.Limited, Rounds: stats.Readings, Window: page.Window,
	}
}
