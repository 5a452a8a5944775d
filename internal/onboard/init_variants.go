package onboard

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

const (
	// manyFold is the share of near-duplicates, in percent, above which init looks for variants of goods among them, and leastLooked how many
	// documents such a share needs.
	manyFold, leastLooked = 30, 10
	// mostSame is how many fields init suggests for same, and mostPairs how many pairs it shows; mostText and mostValue are how many characters of
	// a text and of a value.
	mostSame, mostPairs, mostText, mostValue = 3, 2, 60, 15
)

// deciding is a field whose values may tell variants apart, such as the sizes of a shirt.
type deciding struct {
	field string
	// Name is what a rule calls it: the form of the field that is looked up as a whole.
	Name string
}

// decidingFields returns the fields of single values, without those for other presets. anyText says that rules can name any field with texts.
func (c *candidate) decidingFields(anyText bool) (list []deciding) {
	for _, f := range c.fields {
		name := f.Name
		if f.Kind == adapters.TextKind && !anyText {
			form := slices.IndexFunc(c.fields, func(g adapters.Field) bool { return g.Of == f.Name && g.Kind == adapters.NameKind })
			if form < 0 {
				continue
			}
			name = c.fields[form].Name
		}
		special := f.Kind == adapters.DateKind || f.Kind == adapters.VectorKind || name == c.Host || rule.Our(f.Name) || f.Name[0] == '_'
		if f.Of == "" && !special && !slices.Contains(c.Chosen, f.Name) {
			list = append(list, deciding{f.Name, name})
		}
	}
	return list
}

// findVariants describes some pairs of near-duplicates. If many documents would fold, and most pairs differ in a number or in a field with few
// values, they may be variants of goods: it suggests these fields for same, and that nothing folds yet.
func (c *candidate) findVariants(documents [][]byte, pairs [][2]int, anyText bool) {
	values := make([]map[string]any, len(documents))
	for i, document := range documents {
		_ = json.Unmarshal(document, &values[i]) // without values it differs in none
	}
	variants := make([]bool, len(pairs))
	for _, f := range c.decidingFields(anyText) {
		differ := f.differing(values, pairs)
		if len(c.Same) < mostSame && differ != nil {
			c.Same = append(c.Same, f)
			for i := range pairs {
				variants[i] = variants[i] || differ[i]
			}
		}
	}
	index := rule.Rule{Fields: c.Chosen}
	number := 0
	for i, pair := range pairs {
		if variants[i] || otherNumbers(index.Texts(documents[pair[0]]), index.Texts(documents[pair[1]])) {
			number++
		}
	}
	c.DryRun = c.Looked >= leastLooked && c.Duplicates*100 > manyFold*c.Looked && number*2 >= len(pairs)
	shown := map[int]bool{} // by the document that is folded into
	for _, pair := range pairs {
		if len(shown) < mostPairs && !shown[pair[1]] {
			shown[pair[1]] = true
			c.Pairs = append(c.Pairs, [2]string{c.shown(values[pair[1]]), c.shown(values[pair[0]])})
		}
	}
}

// differing returns in which pairs the field has two values, nil if these are fewer than half of them, or if it has too many different values to
// be a property such as a size.
func (f deciding) differing(values []map[string]any, pairs [][2]int) []bool {
	count, having := map[string]int{}, 0
	for _, document := range values {
		if value := valueOf(document, f.field); value != "" {
			count[value]++
			having++
		}
	}
	differ, number := make([]bool, len(pairs)), 0
	for i, pair := range pairs {
		a, b := valueOf(values[pair[0]], f.field), valueOf(values[pair[1]], f.field)
		if differ[i] = a != "" && b != "" && a != b; differ[i] {
			number++
		}
	}
	if number == 0 || number*2 < len(pairs) || len(count)*2 > having {
		return nil
	}
	return differ
}

// valueOf returns a field's text, number or truth value; empty if it has another one, or none.
func valueOf(document map[string]any, field string) string {
	if value, has := document[field]; has {
		switch value.(type) {
		case string, float64, bool:
			return fmt.Sprint(value)
		}
	}
	before, after, _ := strings.Cut(field, ".")
	inner, _ := document[before].(map[string]any)
	if inner == nil || after == "" {
		return ""
	}
	return valueOf(inner, after)
}

// otherNumbers reports whether each of two texts has a word with digits that the other one lacks.
func otherNumbers(a, b []string) bool {
	numbers := func(texts []string) (words []string) {
		for _, word := range sketch.Words(strings.Join(texts, "\n")) {
			if strings.ContainsFunc(word, unicode.IsDigit) {
				words = append(words, word)
			}
		}
		return words
	}
	lacks := func(words []string) func(string) bool {
		return func(word string) bool { return !slices.Contains(words, word) }
	}
	first, second := numbers(a), numbers(b)
	return slices.ContainsFunc(first, lacks(second)) && slices.ContainsFunc(second, lacks(first))
}

// shown returns the beginning of a document's text, and its values of the suggested fields.
func (c *candidate) shown(document map[string]any) string {
	text := []rune(strings.Join(strings.Fields(valueOf(document, c.Chosen[0])), " "))
	if len(text) > mostText {
		text = append(text[:mostText], '…')
	}
	var values []string
	for _, f := range c.Same {
		value := []rune(valueOf(document, f.field))
		values = append(values, f.field+": "+string(value[:min(len(value), mostValue)]))
	}
	if len(values) > 0 {
		return string(text) + " (" + strings.Join(values, ", ") + ")"
	}
	return string(text)
}
