package cleanup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/rerank"
)

// First keeps the document with the least id.
const First = "first"

// Options say which groups are found.
type Options struct {
	// Keep says which document of a group stays: newest, oldest, longest or first. Empty means the rule's own representative. A rule without one keeps
	// the newest if it has a date field, else the longest.
	Keep string
	// Hide is the field that hides documents. Those in which it is true already neither go nor stay.
	Hide string
	// PairIndex is the index's name in decided pairs. Decided has those pairs; nil for none.
	PairIndex string
	Decided   *decided.Set
	// Shown fills in the Title and the Fields of members.
	Shown bool
	// Report is called now and then with how many documents of clusters were read. It may be nil.
	Report func(read int)
}

// Choice returns how the document that stays is chosen, and the name of that choice.
func (o *Options) Choice(r *rule.Rule) (choice rule.Choice, name string, err error) {
	switch by := rule.By(o.Keep); by {
	case "":
		choice = r.Choice
		if choice.Ranked() && r.DateField != "" {
			choice = rule.Choice{By: rule.ByNewest}
		} else if choice.Ranked() {
			choice = rule.Choice{By: rule.ByLongest}
		}
	case rule.ByNewest, rule.ByOldest:
		if r.DateField == "" {
			return choice, "", fmt.Errorf("--keep %s: the rule names no date_field: set it in the configuration, or use longest or first", by)
		}
		choice = rule.Choice{By: by}
	case rule.ByLongest:
		choice = rule.Choice{By: by}
	case First:
		return rule.Choice{}, First, nil
	default:
		return choice, "", fmt.Errorf("--keep: %q is not a choice: use newest, oldest, longest or first", by)
	}
	return choice, string(choice.By), nil
}

// readAtOnce is about how many documents are read together.
const readAtOnce = 500

// finder makes groups of clusters.
type finder struct {
	Options
	jobs.Job
	judge  *rule.Judge
	choice rule.Choice
	hosts  map[string]*Host
	counts Counts
	read   int
	yield  func(Group) error
}

// Find reads the documents of all clusters of an index, and yields their groups: see the package's description. It keeps the documents of some clusters
// in memory, without their texts.
func Find(ctx context.Context, corpus *cluster.Corpus, job jobs.Job, o Options, yield func(Group) error) (Counts, error) {
	choice, _, err := o.Choice(job.Rule)
	if err != nil {
		return Counts{}, err
	}
	f := newFinder(job, o, choice)
	f.yield = yield
	f.counts.Documents = corpus.Documents()
	var waiting [][]cluster.Member
	documents := 0
	err = corpus.Each(ctx, func(members []cluster.Member) error {
		if len(members) == 1 {
			return nil
		}
		f.counts.Clusters++
		f.counts.Clustered += len(members)
		waiting = append(waiting, members)
		if documents += len(members); documents < readAtOnce {
			return nil
		}
		all := waiting
		waiting, documents = nil, 0
		return f.groups(ctx, all)
	})
	if err == nil {
		err = f.groups(ctx, waiting)
	}
	f.counts.list(f.hosts)
	return f.counts, err
}

func newFinder(job jobs.Job, o Options, choice rule.Choice) *finder {
	r := *job.Rule
	r.Match, r.Compute = job.Index, true // from the text, not from the stored sketch
	r.Profile.Keep, r.Choice = 1, choice
	job.Rule = &r
	return &finder{Options: o, Job: job, judge: rule.NewJudge(rule.Rules{&r}, 0, 0), choice: choice, hosts: map[string]*Host{}}
}

// mayGo reports whether a document may go while another one stays: the two are near-duplicates and, if the rule measures containment, the one that
// goes is not the larger.
func mayGo(goes, stays *rerank.Hit) (may bool, agreement float64) {
	if goes.Sketch == nil || stays.Sketch == nil {
		return false, 0
	}
	may, agreement = goes.Profile.Near(goes, stays)
	if goes.Profile.Measure == rerank.Containment && goes.Sketch.Shingles > stays.Sketch.Shingles {
		may = false
	}
	return may, agreement
}

// candidate is a document as it is now.
type candidate struct {
	Member
	stored adapters.Stored // of a worker's alone
	hit    rerank.Hit
	merit  string // in words, the value it was ranked by
	hidden bool
	twice  bool // two documents have this id
}

// unchanged reports whether the document exists and is unchanged since the plan.
func (c *candidate) unchanged(m Member) bool { return c != nil && !c.twice && c.Digest == m.Digest }

// gone reports whether the document is deleted or hidden.
func (c *candidate) gone() bool { return c == nil || c.hidden }

// readCandidates reads documents by their ids, which may repeat. of makes the candidate of a document.
func readCandidates(ctx context.Context, job jobs.Job, ids []string, of func(adapters.Stored) (*candidate, error)) (map[string]*candidate, error) {
	found := map[string]*candidate{}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	return found, adapters.ReadByID(ctx, job.Store, job.Index, job.Rule, ids, []string{adapters.AllFields}, func(d adapters.Stored) error {
		if c := found[d.ID]; c != nil {
			c.twice = true
			return nil
		}
		c, err := of(d)
		if err != nil {
			return fmt.Errorf("document %s: %w", d.ID, err)
		}
		found[d.ID] = c
		return nil
	})
}

// groups reads the documents of some clusters and yields their groups.
func (f *finder) groups(ctx context.Context, clusters [][]cluster.Member) error {
	var ids []string
	for _, members := range clusters {
		for _, m := range members {
			ids = append(ids, m.ID)
		}
	}
	found, err := readCandidates(ctx, f.Job, ids, func(d adapters.Stored) (*candidate, error) {
		if f.read++; f.Report != nil {
			f.Report(f.read)
		}
		return f.candidate(d)
	})
	if err != nil {
		return err
	}
	for _, members := range clusters {
		if err := f.group(members, found); err != nil {
			return err
		}
	}
	return nil
}

// candidate returns a document with all that it is compared and ranked by.
func (f *finder) candidate(d adapters.Stored) (*candidate, error) {
	digest, err := Digest(d.Source)
	if err != nil {
		return nil, err
	}
	members, err := jsonedit.Members(d.Source)
	if err != nil {
		return nil, err
	}
	shown := source{d.Source, members}
	c := &candidate{Member: Member{ID: d.ID, Digest: digest}}
	c.hit = f.judge.Hit(rule.Seen{Index: f.Index, ID: d.ID, Shown: shown})
	if c.hit.Sketch != nil && f.Decided != nil {
		c.hit.Decided = f.Decided.Of(f.PairIndex, d.ID, c.hit.Sketch.Fingerprint)
	}
	if c.hidden, err = hiddenBy(members, f.Hide); err != nil {
		return nil, err
	}
	c.merit = f.merit(&c.hit, shown)
	if f.Shown {
		c.Title, c.Fields = f.title(d.Source), Short(members)
	}
	return c, nil
}

// hiddenBy reports whether a field hides a document. It fails if the field holds anything but true, false or null.
func hiddenBy(members []jsonedit.Member, field string) (bool, error) {
	if field == "" {
		return false, nil
	}
	switch value := string(jsonedit.Get(members, field)); value {
	case "", "null", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf("the field %s holds %.40s: to hide documents, name a field that holds only true or false", field, value)
	}
}

// longestTitle is how many characters a title has at most.
const longestTitle = 120

// title returns the beginning of a document's text.
func (f *finder) title(source []byte) string {
	for _, text := range f.Rule.Readable(source) {
		if text = strings.Join(strings.Fields(text[:min(len(text), 8*longestTitle)]), " "); text != "" {
			if runes := []rune(strings.ToValidUTF8(text, "")); len(runes) > longestTitle {
				return string(runes[:longestTitle]) + "…"
			}
			return strings.ToValidUTF8(text, "")
		}
	}
	return ""
}

// merit says in words which value a document is ranked by; empty if it has none.
func (f *finder) merit(hit *rerank.Hit, shown source) string {
	if !hit.Traits.Merit.Known {
		return ""
	}
	field := f.choice.Field
	switch f.choice.By {
	case rule.ByLongest:
		return fmt.Sprintf("%d shingles", hit.Sketch.Shingles)
	case rule.ByNewest, rule.ByOldest:
		field = f.Rule.DateField
	}
	for _, text := range shown.Values(rule.Deciding{Field: field}) {
		return field + " " + text
	}
	return ""
}

// group yields the groups of one cluster.
func (f *finder) group(members []cluster.Member, found map[string]*candidate) error {
	var list []*candidate
	for _, m := range members {
		switch c := found[m.ID]; {
		case c == nil || c.twice:
			f.counts.LeftOut++
		case c.hidden:
			f.counts.Hidden++
		case c.hit.Sketch == nil:
			f.counts.Others++
		default:
			c.Host = m.Host
			if by := f.choice.By; !c.hit.Traits.Merit.Known && (by == rule.ByNewest || by == rule.ByOldest) {
				f.counts.Unranked++
				continue
			}
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *candidate) int {
		return cmp.Or(a.hit.Profile.Compare(&a.hit, &b.hit), cmp.Compare(a.ID, b.ID))
	})
	hits := make([]rerank.Hit, len(list))
	for i, c := range list {
		hits[i] = c.hit
	}
	for _, g := range rerank.Collapse(hits, len(hits)).Groups {
		best := list[g.Leader]
		made := Group{Cluster: members[0].Cluster, Stays: best.Member}
		for _, rank := range g.Folded {
			m, may := list[rank].Member, false
			if may, m.Agreement = mayGo(&hits[rank], &hits[g.Leader]); !may {
				f.counts.Others++
				continue
			}
			if len(made.Goes) == 0 {
				made.Why = f.why(best, list[rank])
			}
			made.Goes = append(made.Goes, m)
		}
		if len(made.Goes) == 0 {
			f.counts.Others++
			continue
		}
		f.counts.add(&made, f.hosts)
		if err := f.yield(made); err != nil {
			return err
		}
	}
	return nil
}

// why says why a document stays, and not the next best.
func (f *finder) why(best, next *candidate) string {
	word := map[rule.By]string{rule.ByNewest: "newest", rule.ByOldest: "oldest", rule.ByLongest: "longest", rule.ByPrefer: "preferred", rule.ByField: "first by its value"}[f.choice.By]
	switch {
	case word == "":
		return "first by id"
	case best.merit == "":
		return "first by id: none has a value to choose by"
	case best.hit.Profile.Compare(&best.hit, &next.hit) == 0:
		return fmt.Sprintf("%s (%s), like others, and of these the first by id", word, best.merit)
	}
	return fmt.Sprintf("%s (%s)", word, best.merit)
}

const (
	// mostShort is how many short values of a document are kept. longestShort is the size limit of one, as JSON.
	mostShort, longestShort = 16, 100
)

// Short returns the short values of a document, without objects, lists and our own fields.
func Short(members []jsonedit.Member) (list []Field) {
	for _, m := range members {
		if v := m.Value; len(list) < mostShort && len(v) > 0 && len(v) <= longestShort && v[0] != '{' && v[0] != '[' && !rule.Our(m.Key) {
			if text, is := jsonedit.Text(v); is { // in the form of encoding/json
				v, _ = json.Marshal(text)
			}
			list = append(list, Field{m.Key, slices.Clone(v)})
		}
	}
	return list
}

// source takes values from a stored document, where a search takes them from the engine's index.
type source struct {
	document []byte
	members  []jsonedit.Member
}

// Document implements rule.Shown.
func (s source) Document(*rule.Rule) []byte { return s.document }

// Values implements rule.Shown.
func (s source) Values(d rule.Deciding) []string {
	values := valuesAt(s.members, d.Field)
	if parent, has := documents.ParentOf(d.Field); has && len(values) == 0 { // of a field such as host.keyword
		values = valuesAt(s.members, parent)
	}
	var list []string
	for _, value := range values {
		text, ok := jsonedit.ValueText(value)
		if d.Date {
			text, ok = Milliseconds(text)
		}
		if ok {
			list = append(list, text)
		}
	}
	return list
}

// valuesAt returns the values at a path, also from within lists. It leaves out objects and null.
func valuesAt(members []jsonedit.Member, path string) (values [][]byte) {
	for _, m := range members {
		rest, leads := strings.CutPrefix(path, m.Key)
		if !leads || rest != "" && rest[0] != '.' {
			continue
		}
		jsonedit.Leaves(m.Value, func(leaf []byte) {
			switch {
			case rest == "" && leaf[0] != '{' && leaf[0] != 'n':
				values = append(values, leaf)
			case rest != "" && leaf[0] == '{':
				inner, _ := jsonedit.Members(leaf)
				values = append(values, valuesAt(inner, rest[1:])...)
			}
		})
		if len(values) > 0 {
			return values
		}
	}
	return values
}

// layouts are the accepted forms of dates. Numbers are accepted too.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02", "2006/01/02", "2006-01", "20060102", "2006",
	time.RFC1123Z, time.RFC1123,
}

// endOfSeconds is the year 10000 in Unix seconds. A greater number counts milliseconds. A smaller one than leastSeconds is not taken for a date: it may
// be something else, such as a year.
const endOfSeconds, leastSeconds = 253402300800, 1e8

// Milliseconds parses a date and returns it as decimal Unix milliseconds; false if it is not a date.
func Milliseconds(text string) (digits string, ok bool) {
	if n, err := strconv.ParseFloat(text, 64); err == nil && len(text) != len("20060102") && math.Abs(n) >= leastSeconds {
		if n > -endOfSeconds && n < endOfSeconds {
			n *= 1000
		}
		return strconv.FormatInt(int64(n), 10), n > -1e18 && n < 1e18
	}
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return strconv.FormatInt(at.UnixMilli(), 10), true
		}
	}
	return "", false
}
