package rule

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// Rule says what to do with the documents of the indices it matches. It is immutable once used.
type Rule struct {
	// Match is an index name or a pattern with * for any run of characters. A pattern never matches a name that begins with a
	// dot unless it begins with one itself.
	Match string
	// Fields are the sketched fields: those with texts, and then Vector if there is one. Dots lead into objects.
	Fields []string
	// Vector is the field with a vector that decides together with the texts, as the profile says; empty for none. VectorSketcher sketches it.
	Vector         string
	VectorSketcher *sketch.Sketcher
	// Profile decides what folds.
	Profile rerank.Profile
	// Window is how many ranks are collapsed over.
	Window int
	// VectorWindow is how many neighbours a search by vectors asks for at least, where hits fold.
	VectorWindow int
	// Compute says that a hit without a sketch gets one computed from its own text; otherwise it folds with nothing.
	Compute bool
	// Choice says which member of a group is shown in its leader's place, DateField by which field the newest and the oldest are found.
	Choice    Choice
	DateField string
	// Together are the conditions on which near-duplicates fold beside their agreement.
	Together Together
	// Transitive groups by connected components rather than by leaders.
	Transitive bool
	// CollapsedTotals has the total of hits show how many the collapsed list holds.
	CollapsedTotals bool
	// CountsGroups has facets and aggregations count groups.
	CountsGroups bool
	// Expand says what is shown of the folded hits, Group that each hit says which group it belongs to, DryRun that nothing is folded but counted.
	Expand Expand
	Group  bool
	DryRun bool
	// Bands is how many bands of Rows positions each are stored with the sketch, as terms to look documents up by; 0 is none.
	Bands, Rows int
	// Clusters says that each document carries the id of its cluster; Native that a search at the rule's own threshold is collapsed by
	// the engine itself, over these.
	Clusters, Native bool
	// OnDuplicate is what happens to a new document that is a near-duplicate of one that is stored.
	OnDuplicate OnDuplicate
	// Sketcher makes the sketches.
	Sketcher *sketch.Sketcher
}

// OnDuplicate is what happens at write time to a document that is a near-duplicate of one that is stored.
type OnDuplicate int

const (
	// IndexDuplicates: nothing. The default.
	IndexDuplicates OnDuplicate = iota
	// TagDuplicates: it gets that one's cluster.
	TagDuplicates
	// SkipDuplicates: if it would create an id that is not there, it is not indexed.
	SkipDuplicates
)

// Validate reports, joined, what makes the rule unusable.
func (r *Rule) Validate() error {
	var errs []error
	if r.Match == "" {
		errs = append(errs, errors.New("match: is empty: name an index or a pattern such as news-*"))
	}
	if strings.ContainsFunc(r.Match, func(c rune) bool { return c == ',' || unicode.IsSpace(c) }) {
		errs = append(errs, fmt.Errorf("match: %q is no single name: write one entry for each name or pattern", r.Match))
	}
	if len(r.Fields) == 0 {
		errs = append(errs, errors.New("fields: must name at least one text field"))
	}
	for _, f := range r.Fields {
		if f == "" || strings.HasPrefix(f, FieldPrefix) {
			errs = append(errs, fmt.Errorf("fields: %q can't be sketched: name a text field of your documents", f))
		}
	}
	errs = append(errs, overlaps(r.Fields)...)
	errs = append(errs, r.validateChoices()...)
	if t := r.Profile.Threshold; !(t > 0 && t <= 1) {
		errs = append(errs, fmt.Errorf("threshold: %v is out of range: use a number above 0, at most 1 (0.64 is usual)", t))
	}
	if r.Window < 1 {
		errs = append(errs, fmt.Errorf("window: %d is out of range: use at least 1 (1000 is usual)", r.Window))
	}
	if r.VectorWindow < 0 || r.VectorWindow > maxVectorWindow {
		errs = append(errs, fmt.Errorf("vector_window: %d is out of range: use 0 to %d (100 is usual)", r.VectorWindow, maxVectorWindow))
	}
	return errors.Join(errs...)
}

// maxVectorWindow is what engines grant.
const maxVectorWindow = 10000

// overlaps returns an error for each field whose text another one brings in already.
func overlaps(fields []string) (errs []error) {
	for i, f := range fields {
		for _, other := range fields[:i] {
			switch {
			case f == "" || other == "":
			case f == other:
				errs = append(errs, fmt.Errorf("fields: %q stands twice: drop one", f))
			case strings.HasPrefix(f, other+"."):
				errs = append(errs, fmt.Errorf("fields: %q lies below %q: name one of the two", f, other))
			case strings.HasPrefix(other, f+"."):
				errs = append(errs, fmt.Errorf("fields: %q lies below %q: name one of the two", other, f))
			}
		}
	}
	return errs
}

// Rules is a list of rules. The first match wins.
type Rules []*Rule

// For returns the rule of a concrete index, or nil if none matches.
func (rs Rules) For(index string) *Rule {
	for _, r := range rs {
		if Matches(r.Match, index) {
			return r
		}
	}
	return nil
}

// Matches reports whether a pattern, in which * stands for any run of characters, matches a name. A name that begins with a dot
// is matched only by a pattern that begins with one.
func Matches(pattern, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(pattern, ".") {
		return false
	}
	return Globbed(pattern, name)
}

// Globbed is [Matches] with a dot in front being a letter like any other.
func Globbed(pattern, name string) bool {
	head, rest, stars := strings.Cut(pattern, "*")
	if !stars {
		return pattern == name
	}
	if !strings.HasPrefix(name, head) {
		return false
	}
	name = name[len(head):]
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], after
	}
}

// TextFields are the fields but for the one with a vector.
func (r *Rule) TextFields() []string {
	if r.Vector == "" {
		return r.Fields
	}
	return r.Fields[:len(r.Fields)-1]
}

// Source is the mark of the rule's text fields in the sketches it makes: a sketch of other fields is a sketch of another text.
func (r *Rule) Source() uint16 { return sourceOf(r.TextFields()) }

func sourceOf(fields []string) uint16 {
	var d xxhash.Digest // over the fields with a zero byte between each two
	d.Reset()
	for i, field := range fields {
		if i > 0 {
			_, _ = d.WriteString("\x00")
		}
		_, _ = d.WriteString(field)
	}
	h := d.Sum64()
	return uint16(h ^ h>>16 ^ h>>32 ^ h>>48)
}

// Sketch returns the sketch of the texts of a document without a vector, in the stored form's terms, and false if they hold no word.
func (r *Rule) Sketch(texts []string) (s sketch.Sketch, ok bool) {
	ok = r.Sketcher.SketchInto(&s, texts...)
	s.Source = r.Source()
	return s, ok
}

// SketchInto is Sketch of texts in bytes and a vector, nil for none, into a sketch that is there.
func (r *Rule) SketchInto(s *sketch.Sketch, texts [][]byte, vector []byte) bool {
	ok := r.Sketcher.SketchBytesInto(s, texts...)
	s.Source, s.Vector = r.Source(), r.vectorOf(vector)
	return ok
}

// vectorOf returns the sketch of a vector, nil for none.
func (r *Rule) vectorOf(vector []byte) *sketch.Sketch {
	var s sketch.Sketch
	if vector == nil || !r.VectorSketcher.SketchBytesInto(&s, vector) {
		return nil
	}
	s.Source = sourceOf([]string{r.Vector})
	return &s
}

// stores reports whether a sketch of a document may be stored. Under a rule with a Vector one without a vector is not: the engine may make the vector
// itself, when the document has passed.
func (r *Rule) stores(s *sketch.Sketch) bool { return (r.Vector != "") == (s.Vector != nil) }

// Decode reads a stored sketch. It returns nil if the text is no sketch, or one of another scheme or of other fields: such a
// sketch is not comparable and counts as absent.
func (r *Rule) Decode(text string) *sketch.Sketch {
	var s sketch.Sketch
	if s.UnmarshalText([]byte(text)) != nil || !r.comparable(&s) {
		return nil
	}
	return &s
}

// comparable reports whether a stored sketch is one of the rule's. One that lacks the vector is not.
func (r *Rule) comparable(s *sketch.Sketch) bool {
	if !r.stores(s) || s.Scheme != r.Sketcher.SchemeID() || s.Source != r.Source() {
		return false
	}
	v := s.Vector
	return v == nil || v.Scheme == r.VectorSketcher.SchemeID() && v.Source == sourceOf([]string{r.Vector})
}

// Current reports whether a sketch that Decode returned is of the text of a whole document's JSON, without making another.
func (r *Rule) Current(s *sketch.Sketch, document []byte) bool {
	_, found := r.read(document)
	return r.fits(&found, s)
}

// current is Current of a document of which these members lead to the rule's fields. It collects the texts in found.
func (r *Rule) current(found *texts, s *sketch.Sketch, members []jsonedit.Member) bool {
	r.textsIn(found, members)
	return r.fits(found, s)
}

func (r *Rule) fits(found *texts, s *sketch.Sketch) bool {
	if !found.readable() || r.Sketcher.FingerprintBytes(found.list...) != s.Fingerprint {
		return false
	}
	if s.Vector == nil {
		return true
	}
	v := r.vectorOf(found.vector)
	return v != nil && v.Fingerprint == s.Vector.Fingerprint
}

// Encoded is a sketch together with its stored form.
type Encoded struct {
	sketch.Sketch
	Text string
}

// GoesNative reports whether the engine can collapse at the rule's own settings, over the ids of clusters: these know agreement
// alone.
func (r *Rule) GoesNative() bool {
	return r.Native && r.Profile.Keep <= 1 && r.Profile.Measure != rerank.Containment && r.basis() == ""
}

// ClusterOf returns the id of its cluster that a document's JSON holds; empty where the rule stores none, or where it is one of another rule.
func (r *Rule) ClusterOf(document []byte) string {
	if id := OursOf(document).Cluster; r.Clusters && r.Clustered(id) {
		return id
	}
	return ""
}

// Clustered reports whether a text is the id of a cluster made under the rule.
func (r *Rule) Clustered(id string) bool {
	mark := r.ClusterMark()
	return len(id) > len(mark) && strings.HasPrefix(id, mark)
}
