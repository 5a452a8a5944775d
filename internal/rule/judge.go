package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Judge turns what an engine shows of a hit into what package rerank compares. It is for one search.
type Judge struct {
	rules     Rules
	threshold float64
	keep      int
	profiles  map[*Rule]*rerank.Profile
	bases     map[string]*Rule // of what the rules decide by, where it is anything; a rule of each
	last      struct {
		known bool
		index string
		rule  *Rule
		mark  string // of its clusters, once that was asked for
	}
	// Doubting says that a stored sketch is believed only after a look at the text, wherever that is at hand: for engines that store
	// a backfill's sketch whatever became of the document.
	Doubting bool
	// Lacking counts the hits of configured indices that had no sketch to go by: no comparable one stored, or one of another text.
	Lacking int
	// Unread counts those of them whose text would have to be read for a sketch to be computed.
	Unread int
	// now counts the hits judged since Reset; before, those of all earlier rounds.
	now, before Sketches
	// sketches and payloads are room for those of the hits to come, which need none of their own.
	sketches []sketch.Sketch
	payloads []byte
	left     int   // how many hits of a list are still to be judged
	found    texts // room for those that a stored sketch is held against
	// Labels says that hits get their [Judge.GroupID] as their Label.
	Labels bool
	// Decided, if not nil, is asked about each hit whose document is known.
	Decided Decisions
	// Deadline, if not nil, is asked before each sketch that is computed; once it says so none is any more, and what was judged is of no use.
	Deadline rerank.Deadline
}

// Decisions are what people have decided about pairs of documents. Safe for concurrent use.
type Decisions interface {
	// Of returns what was decided about a document with a text, given the name that rules are matched against, its id, and the fingerprint of its text;
	// nil for nothing.
	Of(index, id string, text uint64) *rerank.Decided
	// Mark changes with what is decided.
	Mark() uint64
}

// NewJudge returns a Judge for a search. A threshold or a number of members to keep that is above 0 takes the place of the rules' own.
func NewJudge(rules Rules, threshold float64, keep int) *Judge {
	j := &Judge{rules: rules, threshold: threshold, keep: keep, profiles: map[*Rule]*rerank.Profile{}}
	for _, rule := range rules {
		if basis := rule.basis(); basis != "" {
			if j.bases == nil {
				j.bases = map[string]*Rule{}
			}
			j.bases[basis] = rule
		}
	}
	return j
}

// Sketches counts hits by where their sketch is from; each is one of these.
type Sketches struct {
	// Stored had it stored. Of Computed nothing was stored, and it was made of their text. Missing had none, and none could be made, or the
	// rule says to make none.
	Stored, Computed, Missing int
	// Stale had that of another text stored, Foreign one of another scheme or other fields, or something that is no sketch: it was made of
	// their text where that could be.
	Stale, Foreign int
}

// plus returns the sum of two.
func (s Sketches) plus(o Sketches) Sketches {
	return Sketches{
		s.Stored + o.Stored, s.Computed + o.Computed, s.Missing + o.Missing, s.Stale + o.Stale, s.Foreign + o.Foreign,
	}
}

// Reset sets the counts to zero: hits are about to be judged, other ones or those whose texts were not at hand.
func (j *Judge) Reset() {
	if j.Unread == 0 {
		j.before = j.before.plus(j.now)
	}
	j.now, j.Lacking, j.Unread = Sketches{}, 0, 0
}

// Sketches returns where the sketches of all hits are from that were judged so far, those that were judged anew once.
func (j *Judge) Sketches() Sketches { return j.before.plus(j.now) }

// Shown is a document as far as an engine shows it.
type Shown interface {
	// Document returns its JSON with all of the rule's fields; nil if it is not at hand. It is called where no usable sketch is stored
	// and the rule says to compute one, and for every hit by a Judge that doubts.
	Document(r *Rule) []byte
	// Values returns the values of a deciding field, none if the document has none; of one that is a date Unix milliseconds in digits.
	// See [Rule.Deciding].
	Values(d Deciding) []string
}

// Parsed is a Shown whose document was parsed with the reply.
type Parsed interface {
	Shown
	// Members returns those members of what Document returns that may lead to a field of a rule, in their order; nil where they are not known.
	Members() []jsonedit.Member
}

// Seen is what an engine shows of a hit.
type Seen struct {
	// Index is the concrete index. ID tells the hit from all others of its list.
	Index, ID string
	// Document is the id of its document, empty where that is not known.
	Document string
	// Stored is the text in our field, empty if there is none.
	Stored []byte
	// Cluster is the id of its document's cluster as it is stored, empty where it is not known.
	Cluster string
	// Shown is the document, nil if nothing of it is at hand.
	Shown Shown
	// Withheld says that the text can't be read, whatever is asked for.
	Withheld bool
	// Pinned is that of a [rerank.Hit].
	Pinned bool
}

// document is the Document of what is shown.
func (s *Seen) document(r *Rule) []byte {
	if s.Shown == nil {
		return nil
	}
	return s.Shown.Document(r)
}

// betweenLooks is how many hits are judged between two looks at the Deadline, beside the one before each sketch that is computed.
const betweenLooks = 4

// Hits returns [Judge.Hit] of each hit, and which of them lack a sketch that could be computed if their text were read. The counts begin anew. Its error
// is [rerank.ErrLate].
func (j *Judge) Hits(seen []Seen) (hits []rerank.Hit, unread []int, err error) {
	j.Reset()
	hits = make([]rerank.Hit, len(seen))
	for i := range hits {
		if i%betweenLooks == 0 && j.late() {
			return nil, nil, rerank.ErrLate
		}
		before := j.Unread
		j.left = len(seen) - i
		if hits[i] = j.Hit(seen[i]); j.Unread > before {
			unread = append(unread, i)
		}
	}
	if j.Lacking > 0 && j.late() { // sketches may not have been computed
		return nil, nil, rerank.ErrLate
	}
	return hits, unread, nil
}

// late reports whether the time is over.
func (j *Judge) late() bool { return j.Deadline != nil && j.Deadline.Late() }

// Hit returns what package rerank compares of a hit.
func (j *Judge) Hit(seen Seen) rerank.Hit {
	hit := rerank.Hit{ID: seen.ID, Pinned: seen.Pinned}
	if j.Labels {
		hit.Label = j.GroupID(&seen)
	}
	rule := j.Rule(seen.Index)
	if rule == nil {
		return hit
	}
	hit.Sketch = j.sketch(rule, &seen)
	if hit.Sketch == nil {
		return hit
	}
	if j.Decided != nil && seen.Document != "" {
		hit.Decided = j.Decided.Of(seen.Index, seen.Document, hit.Sketch.Fingerprint)
	}
	hit.Profile = j.profile(rule)
	hit.Traits = rule.traits(hit.Sketch, seen.Shown) // the zero value under a default rule
	for basis, other := range j.bases {              // hits of other indices can be in the list
		if basis == hit.Profile.Basis {
			continue
		}
		traits := other.traits(hit.Sketch, seen.Shown)
		if !telling(&traits) {
			continue
		}
		if hit.Others == nil {
			hit.Others = make(map[string]rerank.Traits, len(j.bases))
		}
		hit.Others[basis] = traits
	}
	return hit
}

// telling reports whether traits hold anything. Those of a rule whose indices are not searched do not, since its fields are not read.
func telling(t *rerank.Traits) bool {
	return t.Same != "" || t.Timed || t.Merit.Known || slices.ContainsFunc(t.Different, func(values []string) bool { return len(values) > 0 })
}

// sketch returns a hit's sketch: the one stored, if it [Judge.believes] that; else one computed from its text, or nil.
func (j *Judge) sketch(rule *Rule, seen *Seen) *sketch.Sketch {
	s := j.decode(rule, seen.Stored)
	if s != nil && j.believes(rule, s, seen) {
		j.now.Stored++
		return s
	}
	j.Lacking++
	count := &j.now.Missing
	switch {
	case s != nil:
		count = &j.now.Stale
	case len(seen.Stored) > 0:
		count = &j.now.Foreign
	}
	*count++
	if !rule.Compute {
		return nil
	}
	source := seen.document(rule)
	if source == nil {
		if !seen.Withheld {
			j.Unread++
		}
		return nil
	}
	if j.late() {
		return nil
	}
	computed, _ := rule.SketchOf(source)
	if computed == nil {
		return nil
	}
	if len(seen.Stored) == 0 {
		j.now.Missing--
		j.now.Computed++
	}
	return &computed.Sketch
}

// decode is the rule's Decode of what is stored, in the judge's room.
func (j *Judge) decode(rule *Rule, stored []byte) *sketch.Sketch {
	if len(stored) == 0 {
		return nil
	}
	if len(j.sketches) == cap(j.sketches) {
		j.sketches = make([]sketch.Sketch, 0, min(max(j.left, 1), 64))
	}
	if cap(j.payloads)-len(j.payloads) < len(stored) {
		j.payloads = make([]byte, 0, max(len(stored), min(j.left*len(stored), 16<<10))) // most are as long
	}
	s := &j.sketches[:len(j.sketches)+1][len(j.sketches)]
	room, err := s.UnmarshalTextIn(j.payloads, stored)
	if err != nil || !rule.comparable(s) {
		return nil
	}
	j.sketches, j.payloads = j.sketches[:len(j.sketches)+1], room
	return s
}

// Rule returns the rule of a concrete index, nil if there is none.
func (j *Judge) Rule(index string) *Rule {
	if !j.last.known || j.last.index != index { // most hits are of the index that the one before is of
		j.last.known, j.last.index, j.last.rule, j.last.mark = true, index, j.rules.For(index), ""
	}
	return j.last.rule
}

// GroupID returns the id of the group that a hit leads: the id of its cluster, where one of its rule is stored, or else 13 characters made of its index
// and ID. Only the id of a cluster begins with "_".
func (j *Judge) GroupID(seen *Seen) string {
	if r := j.Rule(seen.Index); r != nil && r.Clusters && seen.Cluster != "" {
		if j.last.mark == "" {
			j.last.mark = r.ClusterMark()
		}
		if strings.HasPrefix(seen.Cluster, j.last.mark) {
			return seen.Cluster
		}
	}
	sum := sha256.Sum256([]byte(seen.Index + "\x00" + seen.ID)) // nobody is to make up documents with the id of another group
	return idText(binary.BigEndian.Uint64(sum[:]))
}

// believes reports whether a stored sketch is that of the hit's text, as far as that can be seen.
func (j *Judge) believes(rule *Rule, s *sketch.Sketch, seen *Seen) bool {
	if !j.Doubting {
		return true
	}
	source := seen.document(rule)
	if source == nil {
		return true
	}
	if parsed, is := seen.Shown.(Parsed); is {
		if members := parsed.Members(); members != nil {
			return rule.current(&j.found, s, members)
		}
	}
	return rule.Current(s, source)
}

// profile returns the rule's profile under the controls.
func (j *Judge) profile(rule *Rule) *rerank.Profile {
	p := j.profiles[rule]
	if p == nil {
		profile := rule.Profile
		p = &profile
		p.Threshold = cmp.Or(j.threshold, p.Threshold)
		p.Keep = cmp.Or(j.keep, p.Keep)
		p.Within = rule.Together.Within
		p.Same, p.Different = len(rule.Together.Same) > 0, len(rule.Together.Different) > 0
		p.Chooses = !rule.Choice.Ranked()
		p.Ascending = rule.Choice.By == ByOldest || rule.Choice.By == ByPrefer || rule.Choice.By == ByField && rule.Choice.Ascending
		p.Basis = rule.basis()
		j.profiles[rule] = p
	}
	return p
}
