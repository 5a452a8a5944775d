package onboard

import (
	"cmp"
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

const (
	// mostFields is how many fields init chooses for a rule.
	mostFields = 5
	// littleText is the part of the longest field's text, one in this many, that another field must have to be chosen. Titles may have less.
	littleText = 20
	// sampledMembers is how many indices of a candidate documents are read from.
	sampledMembers = 4
	// fewWords is the average below which a text that many documents share is a label, not a duplicate.
	fewWords = 5
	// leastWords is the least average number of words in a field that is searched by words, leastInNames in any other.
	leastWords, leastInNames = 2, 4
	// manyFields is the number of fields above which whole documents are read.
	manyFields = 50
)

// texts are what init found in the documents of a candidate.
type texts struct {
	Looked int // how many documents were read
	read   []*fieldTexts
	Chosen []string
	// Duplicates is how many of the documents are near-duplicates of one before them.
	Duplicates int
	// Pairs are some pairs of near-duplicates. Same are the fields in which most pairs differ. DryRun says that the operator should look
	// first: many documents would fold, and most of them look like variants of goods.
	Pairs  [][2]string
	Same   []deciding
	DryRun bool
	// word is a word for an example search, empty if there is no good one.
	word string
	// HTML says that most of them contain HTML.
	HTML bool
	// Date, Host and Vector are fields that other presets use, empty if there are none.
	Date, Host, Vector string
	// least is the least average number of words of a text.
	least int
	// Unread says why no document was read.
	Unread string
}

// fieldTexts are the texts of one field.
type fieldTexts struct {
	name  string
	in    int // how many documents have it
	words int // in all of them
	// why says why it is not chosen; empty if it is.
	why string

	values map[int]string // by document
	single int            // values without white space
}

// average returns the average number of words, of documents that have a text.
func (f *fieldTexts) average() int { return (f.words + f.in/2) / max(1, f.in) }

// candidateFields returns the fields that may contain texts: those that are searched by words, or have a subfield that is. If there are none, it
// returns those that are searched by whole values.
func candidateFields(fields []adapters.Field) (list []adapters.Field) {
	for _, f := range fields {
		form := func(g adapters.Field) bool { return g.Of == f.Name && g.Kind == adapters.TextKind }
		if f.Of == "" && (f.Kind == adapters.TextKind || slices.ContainsFunc(fields, form)) {
			list = append(list, f)
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, f := range fields {
		if f.Of == "" && f.Kind == adapters.NameKind {
			list = append(list, f)
		}
	}
	return list
}

// read reads documents of a candidate and chooses its fields.
func (n *survey) read(ctx context.Context, c *candidate) error {
	var names []string
	for _, f := range candidateFields(c.fields) {
		names = append(names, f.Name)
	}
	if len(names) == 0 {
		return errNoText
	}
	anyText := kind.Of(n.engine.Kind).KeysOnly
	c.findSpecial(anyText)
	asked := slices.Clone(names)
	for _, f := range c.decidingFields(anyText) {
		if len(asked) < manyFields && !slices.Contains(asked, f.field) {
			asked = append(asked, f.field)
		}
	}
	if len(names) > manyFields {
		asked = []string{adapters.AllFields}
	}
	documents := n.sampleOf(ctx, c, asked)
	c.count(names, documents)
	c.least = leastWords
	if c.searchable() == 0 {
		c.least = leastInNames
	}
	if len(documents) == 0 {
		c.chooseByName()
		return nil
	}
	if c.choose(); len(c.Chosen) == 0 {
		return errNoText
	}
	c.findVariants(documents, c.countDuplicates(documents), anyText)
	return nil
}

// sampleOf reads documents of a candidate's newest members, the same number of each.
func (n *survey) sampleOf(ctx context.Context, c *candidate, fields []string) (documents [][]byte) {
	newest := c.members[max(0, len(c.members)-sampledMembers):]
	for i, m := range slices.Backward(newest) { // if one has fewer, older ones give more
		share := (sampleSize - len(documents) + i) / (i + 1)
		list, err := n.store.Documents(ctx, m.Name, fields, share)
		if err != nil {
			c.Unread = err.Error()
			break
		}
		documents = append(documents, list...)
	}
	return documents
}

var (
	hostNames = []string{"host", "hostname", "domain", "site", "website"}
	dateNames = []string{"published", "date", "created", "timestamp", "updated", "time"}
	titles    = []string{"title", "headline", "subject", "heading", "name"}
	bodies    = []string{"body", "content", "text", "message", "description", "article", "abstract", "summary"}
)

// last returns the last part of a field's name, in lower case.
func last(name string) string { return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]) }

// findSpecial finds the fields that other presets use. anyText says that the engine can use any field with texts for the host.
func (c *candidate) findSpecial(anyText bool) {
	best := len(dateNames)
	for _, f := range c.fields {
		named := f.Kind == adapters.NameKind || anyText && f.Kind == adapters.TextKind
		at := slices.IndexFunc(dateNames, func(word string) bool { return strings.Contains(last(f.Name), word) })
		switch {
		case f.Kind == adapters.DateKind && (c.Date == "" || at >= 0 && at < best):
			c.Date = f.Name
			if at >= 0 {
				best = at
			}
		case f.Kind == adapters.VectorKind:
			c.Vector = f.Name
		case named && slices.Contains(hostNames, last(cmp.Or(f.Of, f.Name))):
			c.Host = f.Name
		}
	}
}

var markup = regexp.MustCompile(`(?i)</?(p|div|br|span|a|h[1-6]|ul|li|td|body|html)\b[^>]*>`)

// count counts the texts in the fields of some documents.
func (t *texts) count(names []string, documents [][]byte) {
	marked := 0
	t.Looked = len(documents)
	for _, name := range names {
		t.read = append(t.read, &fieldTexts{name: name, values: map[int]string{}})
	}
	rule := rule.Rule{Fields: names}
	for d, document := range documents {
		has := false
		for i, values := range rule.FieldTexts(document) {
			value := strings.Join(values, "\n")
			words := len(sketch.Words(value))
			if words == 0 {
				continue
			}
			f := t.read[i]
			f.in, f.words = f.in+1, f.words+words
			f.values[d] = value
			ascii := strings.IndexFunc(value, func(r rune) bool { return r > unicode.MaxASCII }) < 0
			if ascii && len(strings.Fields(value)) == 1 {
				f.single++
			}
			has = has || markup.MatchString(value)
		}
		if has {
			marked++
		}
	}
	t.HTML = marked*2 > len(documents)
}

// chooseByName chooses fields by their names alone.
func (t *texts) chooseByName() {
	var known, all []string
	for _, word := range slices.Concat(titles, bodies) {
		for _, f := range t.read {
			if last(f.name) == word {
				known = append(known, f.name)
			}
		}
	}
	for _, f := range t.read {
		all = append(all, f.name)
	}
	if known == nil {
		known = all
	}
	t.Chosen = known[:min(len(known), mostFields)]
}

// title reports whether a field holds titles.
func (f *fieldTexts) title() bool { return slices.Contains(titles, last(f.name)) && f.average() <= 40 }

// choose chooses fields by their texts: titles first, then the longest.
func (t *texts) choose() {
	slices.SortStableFunc(t.read, func(a, b *fieldTexts) int {
		if a.title() != b.title() {
			return map[bool]int{true: -1, false: 1}[a.title()]
		}
		return cmp.Or(cmp.Compare(b.words, a.words), strings.Compare(a.name, b.name))
	})
	longest := 0
	for _, f := range t.read {
		if f.why = f.unfit(t.least); f.why == "" {
			longest = max(longest, f.words)
		}
	}
	for i, f := range t.read {
		same := slices.IndexFunc(t.read[:i], func(other *fieldTexts) bool { return other.why == "" && f.repeats(other) })
		switch {
		case f.why != "":
		case !f.title() && f.words*littleText < longest:
			f.why = "little text compared with the others"
		case same >= 0:
			f.why = "says the same as " + t.read[same].name
		case len(t.Chosen) == mostFields:
			f.why = "others are longer"
		default:
			t.Chosen = append(t.Chosen, f.name)
		}
	}
}

// unfit returns why a field can't be compared by, empty if it can.
func (f *fieldTexts) unfit(least int) string {
	different := slices.Compact(slices.Sorted(maps.Values(f.values)))
	switch {
	case f.in == 0:
		return "empty"
	case f.average() < least:
		return "few words"
	case f.single*10 >= f.in*9:
		return "no sentences"
	case f.average() < fewWords && f.in >= 10 && len(different)*5 <= f.in:
		return "the same few in many documents"
	}
	return ""
}

// repeats reports whether a field mostly has the same text as another one.
func (f *fieldTexts) repeats(other *fieldTexts) bool {
	both, same := 0, 0
	for d, value := range f.values {
		if theirs, has := other.values[d]; has {
			both++
			if strings.TrimSpace(value) == strings.TrimSpace(theirs) {
				same++
			}
		}
	}
	return both > 0 && same*10 >= both*9
}

// countDuplicates compares the documents with one another as a search would, and finds a word to search for. It returns the pairs: each
// near-duplicate, and the first document before it that it folds into.
func (t *texts) countDuplicates(documents [][]byte) (pairs [][2]int) {
	index := config.DefaultIndex()
	index.Fields = t.Chosen
	sketcher, err := sketch.New(index.Scheme())
	if err != nil {
		return nil // the defaults are valid
	}
	rule := index.Rule(sketcher)
	sketches := make([]*sketch.Sketch, len(documents))
	for i, document := range documents {
		computed, _ := rule.SketchOf(document)
		if computed == nil {
			continue
		}
		sketches[i] = &computed.Sketch
		j := slices.IndexFunc(sketches[:i], func(other *sketch.Sketch) bool {
			near := false
			if other != nil {
				near, _ = rule.Profile.NearDuplicates(sketches[i], other)
			}
			return near
		})
		if j >= 0 {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	t.Duplicates, t.word = len(pairs), t.exampleWord(pairs)
	return pairs
}

// exampleWord returns a word for a search that finds near-duplicates, or many documents if there are none.
func (t *texts) exampleWord(pairs [][2]int) string {
	values := t.read[slices.IndexFunc(t.read, func(f *fieldTexts) bool { return f.name == t.Chosen[0] })].values
	in, by := map[string]int{}, map[int][]string{} // documents by word, and words by document
	for d, value := range values {
		by[d] = slices.Compact(slices.Sorted(slices.Values(sketch.Words(value))))
		by[d] = slices.DeleteFunc(by[d], func(word string) bool { return !typeable(word) })
		for _, word := range by[d] {
			in[word]++
		}
	}
	score := map[string]int{}
	for _, pair := range pairs {
		for _, word := range by[pair[0]] {
			if _, both := slices.BinarySearch(by[pair[1]], word); both {
				score[word]++
			}
		}
	}
	for word, count := range score {
		score[word] = 1000*count/in[word] + count
	}
	if len(score) == 0 {
		score = in
		maps.DeleteFunc(score, func(_ string, count int) bool { return count*2 > len(values) && len(values) >= 4 })
	}
	if len(score) == 0 {
		return ""
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(score)), func(a, b string) int { return score[a] - score[b] })
}

// typeable reports whether a word can be typed on any keyboard.
func typeable(word string) bool {
	return len(word) > 3 && strings.IndexFunc(word, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}
