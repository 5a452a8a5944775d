package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/boilerplate"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// validate checks the entry by itself, without its sketch.
func (i Index) validate(f *faults, key string) {
	for _, e := range Flatten(i.Rule(nil).Validate()) {
		at, _, _ := strings.Cut(e.Error(), ": ")
		if at != "within" && at != "representative" && !strings.Contains(at, " ") {
			f.addAll(key, e) // the others are checked below, with the keys of the file
		}
	}
	f.oneOf(key+".missing", i.Missing, "compute", "alone")
	f.oneOf(key+".preset", i.Preset, PresetNames()...)
	f.oneOf(key+".measure", i.Measure, string(rerank.Resemblance), string(rerank.Containment))
	f.oneOf(key+".totals", i.Totals, totalsEngine, totalsCollapsed)
	f.oneOf(key+".counts", i.Counts, countsEngine, countsGroups)
	f.oneOf(key+".expand", i.Expand, expandOff, expandIDs, expandSource)
	i.validateStored(f, key)
	f.when(i.MinShingles < 0, key+".min_shingles", "%d is out of range: use 0 or more (%d is usual)", i.MinShingles, rerank.Default().MinShingles)
	f.when(i.MinWords < 0, key+".min_words", "%d is out of range: use 0 or more (%d is usual)", i.MinWords, rerank.Default().MinWords)
	f.oneOf(key+".numbers", i.Numbers, string(rerank.CountNumbers), string(rerank.DecideByNumbers), string(rerank.IgnoreNumbers))
	f.when(i.Keep == 0, key+".keep", "0 is out of range: use 1 to %d", rule.MaxKeep) // to the rule 0 is 1
	i.Representative.validate(f, key+".representative")
	i.validateWithin(f, key+".within")
	i.validateVector(f, key+".vector")
	i.validateDeciding(f, key)
	i.validateNeeds(f, key)
	i.validateCases(f, key+".cases")
}

// validateSketch checks the entry's scheme. Errors in the section sketch are left out: they are reported there.
func (i Index) validateSketch(f *faults, key string, section *Sketch) {
	var common, own faults
	section.validate(&common, "sketch")
	i.Sketch.validate(&own, "sketch")
	for _, e := range own {
		if !slices.ContainsFunc(common, func(c *KeyError) bool { return c.Error() == e.Error() }) {
			f.add(key+"."+e.Key, "%w", e.Err)
		}
	}
	features := sketch.Features(i.Sketch.Features)
	f.when(i.Boilerplate != "" && !features.Boilerplate(), key+".boilerplate",
		"does not go with features: %s: passages are runs of words; use auto or words, or leave it out", features)
	if len(own) == 0 && len(i.Passages) > 0 && features.Boilerplate() {
		if err := boilerplate.Check(i.Passages, i.Scheme()); err != nil {
			f.add(key+".boilerplate", "%s: %w", i.Boilerplate, err)
		}
	}
	f.when(i.Measure == string(rerank.Containment) && !features.Sets(), key+".measure",
		"containment needs sets, and %s has none: use resemblance", features)
	f.when(i.Vector.Field != "" && !features.Sets(), key+".vector.field",
		"goes with words, and features is %s: leave one of the two out", features)
	f.when(features == sketch.Vectors && len(i.Fields) > 1, key+".fields", "vector takes one field, and there are %d: name the one with the vectors", len(i.Fields))
}

// validateVector checks the vectors beside the texts.
func (i Index) validateVector(f *faults, key string) {
	v := i.Vector
	f.when(v.Field == "" && v != PresetOf(i.Preset).Start(i.Sketch).Vector, key+".field", "is empty: name the field with the vectors, or leave vector out")
	f.when(!(v.Threshold > 0 && v.Threshold <= 1), key+".threshold", "%v is out of range: use a number above 0, at most 1 (%v is usual)", v.Threshold, vectorThreshold)
	f.oneOf(key+".combine", v.Combine, string(rerank.Both), string(rerank.Either))
	if v.Field == "" {
		return
	}
	f.when(i.Native, key+".field", "native: true decides by words alone: drop one of the two")
	f.when(i.looksUp(), key+".field", "on_duplicate: %s decides by words alone: drop one of the two", i.OnDuplicate)
	f.when(v.Combine == string(rerank.Either) && i.Bands != bandsOff && i.Bands != "", key+".combine",
		"either finds documents of other words, and bands look up words alone: use both, or bands: off")
}

// validateStored checks what is stored along with the sketch.
func (i Index) validateStored(f *faults, key string) {
	f.oneOf(key+".on_duplicate", i.OnDuplicate, onDuplicateIndex, onDuplicateTag, onDuplicateSkip)
	bands, _, err := i.bands()
	if err != nil {
		f.add(key+".bands", "%w", err)
		return
	}
	banded := []sketch.Family{sketch.FastSimilarity, sketch.Permutations, sketch.SimHash}
	f.when(bands > 0 && !slices.Contains(banded, sketch.Family(i.Sketch.Family)), key+".bands",
		"sketches of family %s have no bands: use off, or another family", i.Sketch.Family)
	f.when(bands == 0 && i.looksUp(), key+".bands",
		"is off, and on_duplicate: %s looks documents up by their bands: use auto", i.OnDuplicate)
	i.validateClusters(f, key)
}

// looksUp reports whether writing a document looks for its near-duplicates.
func (i Index) looksUp() bool {
	return i.OnDuplicate == onDuplicateTag || i.OnDuplicate == onDuplicateSkip
}

// validateClusters checks that a rule that uses clusters decides by resemblance alone, as clusters do.
func (i Index) validateClusters(f *faults, key string) {
	at, what := "on_duplicate", i.OnDuplicate
	switch {
	case i.Native:
		at, what = "native", "true"
	case !i.looksUp():
		return
	}
	switch {
	case i.Within.Span > 0 || len(i.Same) > 0 || len(i.Different) > 0:
		f.add(key+"."+at, "%s decides by agreement alone, and within, same or different is set: drop one of the two", what)
	case i.Measure == string(rerank.Containment):
		f.add(key+"."+at, "%s decides by resemblance, and measure is containment: drop one of the two", what)
	case i.Native && i.Keep > 1:
		f.add(key+".native", "true shows one hit of a cluster, and keep is %d: drop one of the two", i.Keep)
	}
}

// validateWithin checks the span; whether there is a field is one of the needs.
func (i Index) validateWithin(f *faults, key string) {
	w := i.Within
	f.when(w.Span < 0, key+".span", "%v is below 0: use a span such as 72h or 3d", w.Span)
	f.when(w.Span > 0 && time.Duration(w.Span) < time.Millisecond, key+".span", "%v is too short: use at least 1ms", w.Span)
	f.when(w.Span == 0 && w.Field != "", key+".span", "is 0: give the span within which hits fold, such as 72h or 3d")
}

// validateDeciding checks the names of the fields that decide what folds.
func (i Index) validateDeciding(f *faults, key string) {
	fields := map[string]string{
		dateField: i.DateField, hostField: i.HostField, "within.field": i.Within.Field,
		"representative.field": i.Representative.Field, "representative.prefer": i.Representative.Prefer,
	}
	for name, list := range map[string][]string{"same": i.Same, "different": i.Different} {
		for n, field := range list {
			at := fmt.Sprintf("%s[%d]", name, n)
			fields[at] = field
			f.when(field == "", key+"."+at, "is empty: name a field of your documents")
			f.when(field != "" && name == "different" && slices.Contains(i.Same, field), key+"."+at, "%q is in same too, and nothing would fold: drop one", field)
		}
		f.unique(key+"."+name, list)
	}
	for at, field := range fields {
		f.when(strings.HasPrefix(field, rule.FieldPrefix) || strings.ContainsAny(field, "*,"), key+"."+at,
			"%q can't decide what folds: name a single field of your documents", field)
	}
}

// validateNeeds checks that host_field and date_field are set if other keys need them.
func (i Index) validateNeeds(f *faults, key string) {
	user := func(need, otherwise string) string {
		if p := PresetOf(i.Preset); slices.Contains(p.Needs, need) {
			return "preset " + p.Name
		}
		return otherwise
	}
	f.when(i.HostField == "" && slices.Contains(slices.Concat(i.Same, i.Different), hostField), key+"."+hostField,
		"is empty, and %s needs it: name the field with a document's host", user(hostField, "same or different"))
	if i.DateField != "" {
		return
	}
	by := i.Representative.By
	switch {
	case by == string(rule.ByNewest) || by == string(rule.ByOldest):
		f.add(key+"."+dateField, "is empty, and %s needs it: name the field with a document's date",
			user(dateField, "representative: "+by))
	case i.Within.Span > 0 && i.Within.Field == "":
		f.add(key+"."+dateField, "is empty, and %s needs it: name the field with a document's date, or give within a field",
			user(dateField, "within"))
	}
}

func (r Representative) validate(f *faults, key string) {
	if r.By != "" {
		f.oneOf(key, r.By, representatives...)
		return
	}
	switch {
	case r.Field == "" && r.Prefer == "":
		f.add(key, "is empty: use %s", Either(representatives))
	case r.Field != "" && r.Prefer != "":
		f.add(key, "has both field and prefer: keep one")
	case r.Prefer != "" && r.Order != "":
		f.add(key+".order", "%q goes with field, not with prefer: the order of values counts", r.Order)
	case r.Prefer != "" && len(r.Values) == 0:
		f.add(key+".values", "is empty: list the values of %s, the one to show first", r.Prefer)
	case r.Field != "" && len(r.Values) > 0:
		f.add(key+".values", "goes with prefer: write {prefer: %s, values: […]}, or leave it out", r.Field)
	}
	if r.Order != "" {
		f.oneOf(key+".order", r.Order, orderDesc, orderAsc)
	}
	f.unique(key+".values", r.Values)
}

// representatives are the values of representative: words, and examples of sections.
var representatives = []string{
	string(rule.ByRank), string(rule.ByNewest), string(rule.ByOldest), string(rule.ByLongest),
	"{field: votes, order: desc}", "{prefer: host, values: [a.example]}",
}
