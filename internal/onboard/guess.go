package onboard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// Guess is what init would choose for an index of some documents.
type Guess struct {
	// Rule is its rule.
	Rule config.Index
	// Word is a word for an example search; empty if there is no good one.
	Word string
}

// GuessFrom chooses the fields of an index by some of its documents alone. The date field is one whose values are all dates.
func GuessFrom(index string, documents [][]byte) (Guess, error) {
	c := candidate{Match: index, fields: fieldsIn(documents)}
	c.findSpecial(false)
	var names []string
	for _, f := range candidateFields(c.fields) {
		names = append(names, f.Name)
	}
	c.count(names, documents)
	c.least = leastWords
	if c.choose(); len(c.Chosen) == 0 {
		return Guess{}, fmt.Errorf("no field holds a text: %s", strings.Join(c.whyNot(), ", "))
	}
	if why := c.noRule(); why != "" {
		return Guess{}, errors.New(why)
	}
	c.countDuplicates(documents)
	return Guess{Rule: c.rule(), Word: c.word}, nil
}

// whyNot says of each field why it is not compared.
func (t *texts) whyNot() (list []string) {
	for _, f := range t.read[:min(len(t.read), mostFields)] {
		list = append(list, f.name+" ("+f.why+")")
	}
	if len(list) == 0 {
		return []string{"none has a value in quotes"}
	}
	return list
}

// maxGuessed is how many fields are looked at: documents may name any number.
const maxGuessed = 1000

// fieldsIn returns the fields with texts or dates, as an engine would declare them: each text with a form for whole values.
func fieldsIn(documents [][]byte) (fields []adapters.Field) {
	dates := map[string]bool{} // by field: whether all values are dates
	var names []string
	for _, document := range documents {
		eachText(document, "", func(field, text string) {
			all, known := dates[field]
			if !known && len(names) == maxGuessed {
				return
			}
			if !known {
				names, all = append(names, field), true
			}
			dates[field] = all && isDate(text)
		})
	}
	slices.Sort(names)
	for _, name := range names {
		if dates[name] {
			fields = append(fields, adapters.Field{Name: name, Kind: adapters.DateKind})
			continue
		}
		fields = append(fields, adapters.Field{Name: name, Kind: adapters.TextKind}, adapters.Field{Name: name + ".keyword", Kind: adapters.NameKind, Of: name})
	}
	return fields
}

// eachText visits the texts in a value, with the full names of their fields.
func eachText(value []byte, field string, visit func(field, text string)) {
	const tooDeep = 500 // bytes of a name
	switch {
	case len(field) > tooDeep:
	case value[0] == '{':
		members, _ := jsonedit.Members(value)
		for _, m := range members {
			eachText(m.Value, strings.TrimPrefix(field+"."+m.Key, "."), visit)
		}
	case value[0] == '[':
		jsonedit.Leaves(value, func(leaf []byte) { eachText(leaf, field, visit) })
	case value[0] == '"':
		if text, ok := jsonedit.Text(value); ok && field != "" {
			visit(field, text)
		}
	}
}

// isDate reports whether a text is a date.
func isDate(text string) bool {
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05"} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}
