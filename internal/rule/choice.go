package rule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// By is what the representative of a group is chosen by.
type By string

// The ways to choose a representative.
const (
	// ByRank shows the leader itself.
	ByRank By = "rank"
	// ByNewest and ByOldest go by the rule's date field.
	ByNewest By = "newest"
	ByOldest By = "oldest"
	// ByLongest goes by the number of shingles.
	ByLongest By = "longest"
	// ByField goes by the value of Choice.Field, the greatest first unless Choice.Ascending.
	ByField By = "field"
	// ByPrefer goes by the place of Choice.Field's value in Choice.Values.
	ByPrefer By = "prefer"
)

// Choice says which member of a group is shown in its leader's place. Members without the deciding value come last, ties go by rank.
type Choice struct {
	// By is empty for ByRank.
	By        By
	Field     string
	Ascending bool
	Values    []string
}

// Ranked reports whether leaders are shown, so that a page can be cut before the whole window is known.
func (c Choice) Ranked() bool { return c.By == "" || c.By == ByRank }

// Together are conditions on which near-duplicates fold beside their agreement. A hit that lacks a value for one that is set folds with
// nothing.
type Together struct {
	// Within, if above 0, is how many milliseconds apart the moments in the field WithinField may be.
	Within      int64
	WithinField string
	// Same are fields whose values must be equal, Different ones that must have no value in common.
	Same, Different []string
}

// Deciding is a field beside the sketch by which hits are folded or chosen.
type Deciding struct {
	Field string
	// Date says that the value is wanted as Unix milliseconds.
	Date bool
}

// Deciding returns the fields whose values are needed of each hit, each once (a field can be needed both as a date and as it is).
func (r *Rule) Deciding() []Deciding {
	var list []Deciding
	add := func(field string, date bool) {
		if d := (Deciding{field, date}); field != "" && !slices.Contains(list, d) {
			list = append(list, d)
		}
	}
	switch r.Choice.By {
	case ByNewest, ByOldest:
		add(r.DateField, true)
	case ByField, ByPrefer:
		add(r.Choice.Field, false)
	}
	if r.Together.Within > 0 {
		add(r.Together.WithinField, true)
	}
	for _, field := range slices.Concat(r.Together.Same, r.Together.Different) {
		add(field, false)
	}
	return list
}

// basis names what decides about the rule's hits beside their agreement, the same for rules that go by the same; empty for nothing.
func (r *Rule) basis() string {
	if r.Choice.Ranked() && r.Together.Within <= 0 && len(r.Together.Same)+len(r.Together.Different) == 0 {
		return ""
	}
	return fmt.Sprintf("%q %q", []any{r.Choice.By, r.Choice.Field, r.Choice.Values, r.DateField},
		[]any{r.Together.Within, r.Together.WithinField, r.Together.Same, r.Together.Different})
}

// MaxKeep is the most members of a group that may be shown.
const MaxKeep = 100

// validateChoices reports what is wrong with the rule's choices and conditions.
func (r *Rule) validateChoices() (errs []error) {
	switch by := r.Choice.By; by {
	case "", ByRank, ByLongest:
	case ByNewest, ByOldest:
		if r.DateField == "" {
			errs = append(errs, fmt.Errorf("representative: %s needs date_field: name the field that holds the date", by))
		}
	case ByField:
		if r.Choice.Field == "" {
			errs = append(errs, errors.New("representative: field is empty: name a field, as in {field: votes, order: desc}"))
		}
	case ByPrefer:
		if r.Choice.Field == "" || len(r.Choice.Values) == 0 {
			errs = append(errs, errors.New("representative: prefer needs a field and values, as in {prefer: host, values: [a.example]}"))
		}
	default:
		errs = append(errs, fmt.Errorf("representative: %q is unknown: use rank, newest, oldest, longest, {field: …} or {prefer: …}", by))
	}
	if keep := r.Profile.Keep; keep < 0 || keep > MaxKeep {
		errs = append(errs, fmt.Errorf("keep: %d is out of range: use 1 to %d", keep, MaxKeep))
	}
	if r.Together.Within < 0 {
		errs = append(errs, fmt.Errorf("within: span of %d ms is below 0: use a span such as 72h", r.Together.Within))
	}
	if r.Together.Within > 0 && r.Together.WithinField == "" {
		errs = append(errs, errors.New("within: needs a field: name it, or set date_field"))
	}
	for _, d := range r.Deciding() {
		if strings.HasPrefix(d.Field, FieldPrefix) || strings.ContainsAny(d.Field, "*,") {
			errs = append(errs, fmt.Errorf("field %q can't decide what folds: name a single field of your documents", d.Field))
		}
	}
	return errs
}

// Expand says what is shown of the hits that were folded into a representative.
type Expand int

// What is shown of folded hits.
const (
	// ExpandOff shows nothing of them.
	ExpandOff Expand = iota
	// ExpandIDs shows which they are, and the agreement.
	ExpandIDs
	// ExpandSource shows them as the client's own hits.
	ExpandSource
)

// traits returns what a rule's profile goes by beside the sketch.
func (r *Rule) traits(s *sketch.Sketch, shown Shown) (t rerank.Traits) {
	if shown == nil {
		shown = nothingShown{}
	}
	if r.Together.Within > 0 {
		t.At, t.Timed = moment(shown.Values(Deciding{r.Together.WithinField, true}))
	}
	t.Same = joined(r.Together.Same, shown)
	for _, field := range r.Together.Different {
		t.Different = append(t.Different, shown.Values(Deciding{field, false}))
	}
	t.Merit = r.merit(s, shown)
	return t
}

// nothingShown is a document of which nothing is shown.
type nothingShown struct{}

func (nothingShown) Document(*Rule) []byte { return nil }

func (nothingShown) Values(Deciding) []string { return nil }

// joined returns the values of all fields as one text, empty where one lacks.
func joined(fields []string, shown Shown) string {
	if len(fields) == 0 { // as most rules have it
		return ""
	}
	var b strings.Builder
	for _, field := range fields {
		list := slices.Sorted(slices.Values(shown.Values(Deciding{field, false})))
		if len(list) == 0 {
			return ""
		}
		for _, value := range slices.Compact(list) {
			fmt.Fprintf(&b, "%d:%s", len(value), value)
		}
		b.WriteByte(';')
	}
	return b.String()
}

// moment returns the first value as Unix milliseconds.
func moment(values []string) (at int64, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	whole, _, _ := strings.Cut(values[0], ".") // of nanoseconds
	at, err := strconv.ParseInt(whole, 10, 64)
	return at, err == nil
}

// merit returns what a representative is chosen by.
func (r *Rule) merit(s *sketch.Sketch, shown Shown) rerank.Merit {
	c := r.Choice
	switch c.By {
	case ByLongest:
		return rerank.Merit{Known: true, Number: float64(s.Shingles)}
	case ByNewest, ByOldest:
		if at, ok := moment(shown.Values(Deciding{r.DateField, true})); ok {
			return rerank.Merit{Known: true, Number: float64(at)}
		}
	case ByPrefer:
		has := shown.Values(Deciding{c.Field, false})
		best := slices.IndexFunc(c.Values, func(value string) bool { return slices.Contains(has, value) })
		if best < 0 {
			return rerank.Merit{}
		}
		return rerank.Merit{Known: true, Number: float64(best)}
	case ByField:
		list := shown.Values(Deciding{c.Field, false})
		if len(list) == 0 {
			return rerank.Merit{}
		}
		if number, err := strconv.ParseFloat(list[0], 64); err == nil {
			return rerank.Merit{Known: true, Number: number}
		}
		return rerank.Merit{Known: true, Text: list[0]}
	}
	return rerank.Merit{}
}
