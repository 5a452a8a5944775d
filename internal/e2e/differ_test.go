package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/differ"
	"github.com/neardup/sidecar/internal/engines"
)

// Sides are the ways that lead to an engine. No two texts are alike, so nothing folds: the answers are to be the same on all.
const (
	sideDirect = "direct" // to the engine itself
	sidePlain  = "plain"  // through a sidecar no rule of which matches
	sideRuled  = "ruled"  // through one that gives every document a sketch
	sideLate   = "late"   // through the same, over documents that were written without it
)

// TestSameAnswers plays the case files: each whole, setup included, twice directly and once on each other side. What differs
// between two direct runs is masked by name in the files, so that a case that is not the same twice fails too.
func TestSameAnswers(t *testing.T) {
	eachFamily(t, func(f *family) []known { return f.known }, func(t *testing.T, d *diffing) {
		part := func(name string, cases func(t *testing.T) []differ.Case) {
			t.Run(name, func(t *testing.T) {
				if !d.atOnce {
					d.diff(t, cases(t))
					return
				}
				t.Parallel()
				own := *d // counts its own replies
				own.diff(t, cases(t))
			})
		}
		files, err := filepath.Glob("testdata/differ/" + d.family.name + "/*.txt")
		if err != nil || len(files) == 0 {
			t.Error(files, err)
		}
		for _, file := range files {
			part(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) []differ.Case { return caseFile(t, file) })
		}
		if d.family.more != nil {
			part("combinations", func(*testing.T) []differ.Case { return d.family.more() })
		}
	})
}

// caseFile reads a case file.
func caseFile(t *testing.T, file string) []differ.Case {
	t.Helper()
	text := must(os.ReadFile(file))(t)
	return must(differ.Parse(filepath.Base(file), ownNames(string(text))))(t)
}

// TestSameAnswersOfAWholeServer does the same, on a server of our own, with what lists all that it holds or changes how it
// works.
func TestSameAnswersOfAWholeServer(t *testing.T) {
	for _, f := range families {
		file := "testdata/differ/whole/" + f.name + ".txt"
		if _, err := os.Stat(file); err != nil {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			e := engines.Start(t, f.kinds[0])
			if e.PID == 0 {
				t.Skip("the server ran already: others use it")
			}
			newDiffing(t, f, e, f.known).diff(t, caseFile(t, file))
		})
	}
}

// TestSameAnswersOnTheWire does the same with what a text file can't hold: HTTP as it may be spoken.
func TestSameAnswersOnTheWire(t *testing.T) {
	eachFamily(t, func(f *family) []known { return f.onWire }, func(t *testing.T, d *diffing) {
		if d.family.wire == nil {
			return
		}
		d.timeout = 8 * time.Second
		d.diff(t, d.family.wire())
	})
}

// diffing is what is known while an engine is compared with itself.
type diffing struct {
	*family
	kinds    []string // as the cases name them
	key      string
	sides    map[string]string // address by side
	timeout  time.Duration     // for a case
	compared int               // replies
	table    []known
}

func newDiffing(t *testing.T, f *family, e *engines.Engine, table []known) *diffing {
	addr := func(url string) string { return strings.TrimPrefix(url, "http://") }
	return &diffing{
		family: f, kinds: kindsOf(e), key: e.Key,
		sides: map[string]string{
			sideDirect: addr(e.URL),
			sidePlain:  addr(serve(t, e, setup{match: "other-*"})),
			sideRuled:  addr(serve(t, e, setup{match: ownNames("differ-*")})),
		},
		table: table,
	}
}

// kindsOf returns what the cases call an engine: opensearch, opensearch2, and opensearch-with-vectors or opensearch-without-vectors.
func kindsOf(e *engines.Engine) []string {
	with := "-without-vectors"
	if e.Vectors() {
		with = "-with-vectors"
	}
	return []string{e.Kind, e.Name, e.Kind + with}
}

// runs counts the runs of all engines.
var runs atomic.Int64

// play runs the cases on a side.
func (d *diffing) play(t *testing.T, side string, cases []differ.Case) []differ.Exchange {
	t.Helper()
	own := map[string]string{"run": fmt.Sprintf("run-%d-%d", os.Getpid(), runs.Add(1)), "key": d.key}
	r := differ.Runner{Addr: d.sides[side], Kinds: d.kinds, Side: side, Timeout: d.timeout, Vars: own, Header: d.header}
	if side == sideLate {
		r.AddrOf = func(c *differ.Case) string {
			if c.SetsUp() {
				return d.sides[sideDirect]
			}
			return d.sides[sideRuled]
		}
	}
	exchanges := must(r.Run(cases))(t)
	return exchanges
}

// diff compares all sides.
func (d *diffing) diff(t *testing.T, cases []differ.Case) {
	first, second := d.play(t, sideDirect, cases), d.play(t, sideDirect, cases)
	d.compare(t, "direct again", first, second)
	sides := []string{sidePlain, sideRuled}
	if slices.ContainsFunc(cases, func(c differ.Case) bool { return strings.HasPrefix(c.Name, "setup: documents") }) {
		sides = append(sides, sideLate)
	}
	for _, side := range sides {
		d.compare(t, side, first, d.play(t, side, cases))
	}
	if d.compared == 0 {
		t.Error("no replies were compared")
	}
}

// compare compares the replies of two runs to the cases that are for both sides.
func (d *diffing) compare(t *testing.T, side string, direct, through []differ.Exchange) {
	replies := map[*differ.Case][]differ.Reply{}
	for _, x := range direct {
		replies[x.Case] = x.Replies
	}
	for _, x := range through {
		c := x.Case
		first, both := replies[c]
		if !both {
			d.count(t, side, x)
			continue
		}
		for k := range c.Requests {
			q := &c.Requests[k]
			masks := differ.Masks{Members: slices.Concat(d.members, q.Members), Headers: slices.Concat(d.headers, q.Headers)}
			one, two := &first[k], &x.Replies[k]
			d.compared++
			d.outcome(t, side, c, string(q.Head)+string(q.Raw), two)
			for _, found := range differ.Compare(one, two, masks) {
				d.judge(t, side, c, k, found, func(x *known) bool { return x.holds == nil || x.holds(one, two, masks) })
			}
		}
	}
}

// count checks how many sketches there are: the number stands behind the name of a case.
func (d *diffing) count(t *testing.T, side string, x differ.Exchange) {
	_, want, _ := strings.Cut(x.Case.Name, ": ")
	if body := x.Replies[0].Body; d.sketches(body) != want {
		t.Errorf("%s: %s (%s): %s", side, x.Case.Name, x.Case.Where, body)
	}
}

// outcome takes our header off a reply and checks that it is only where it may be.
func (d *diffing) outcome(t *testing.T, side string, c *differ.Case, request string, r *differ.Reply) {
	values := r.Values("neardup")
	if len(values) == 0 {
		return
	}
	line, _, _ := strings.Cut(request, "\n")
	nameless := strings.Contains(line, " /_search/scroll") // which index it is of does not show
	if side != sideRuled && side != sideLate && !nameless || !d.isSearch(line) || len(values) > 1 {
		t.Errorf("%s: %s (%s): Neardup %q", side, c.Name, c.Where, values)
	}
	word, rest, _ := strings.Cut(values[0], "; ")
	if word == "collapsed" && !strings.Contains(rest, "folded=0;") {
		t.Errorf("%s: %s (%s): something folds: %s", side, c.Name, c.Where, values[0])
	}
	r.Header = slices.DeleteFunc(r.Header, func(f differ.Field) bool {
		return strings.EqualFold(f.Name, "neardup") || strings.EqualFold(f.Name, "access-control-expose-headers") && f.Value == "Neardup"
	})
}

// judge fails the test for a difference that is neither minor nor known. holds tells whether what a known one asks for besides
// holds.
func (d *diffing) judge(t *testing.T, side string, c *differ.Case, i int, found differ.Difference, holds func(*known) bool) {
	where := fmt.Sprintf("%s: %s", side, c.Name)
	if c.Where != "" {
		where += " (" + c.Where + ")"
	}
	if len(c.Requests) > 1 {
		where += fmt.Sprintf(", request %d", i+1)
	}
	if found.Minor {
		return
	}
	for i := range d.table {
		if k := &d.table[i]; k.matches(d.kinds, side, c.Name, found.Aspect) && holds(k) {
			return
		}
	}
	t.Errorf("%s: %s", where, found)
}

// family is a family of engines whose cases are the same.
type family struct {
	name  string // of the folder of its case files
	kinds []string
	// What may differ in any reply, all else being the same.
	members, headers []string
	// atOnce says that the case files may be played at the same time: each has indices of its own, and nothing else is shared.
	atOnce bool
	// header goes with every request, where it says nothing of that name.
	header []string
	// isSearch tells from a request line whether its reply may say what became of a search.
	isSearch func(line string) bool
	// sketches returns how many documents the reply to a case that counts them shows with a sketch.
	sketches func(body []byte) string
	// Differences that are there for a reason: in what the API says, in long replies, in how HTTP is spoken.
	known, ofLarge, onWire []known
	// Cases that are no files. A family need not have all.
	wire, large, pages, more func() []differ.Case
}

// families are all that there are. (Elasticsearch and OpenSearch share theirs.)
var families = []*family{
	{
		name: "elastic", kinds: []string{engines.Elasticsearch, engines.OpenSearch},
		// How long it took, an index's unique name, and what OpenSearch says that a search cost.
		// Since 9.1 Elasticsearch says when a template was made, and changed.
		members: []string{"took", "ingest_took", "index_uuid", "created_date_millis", "modified_date_millis"}, headers: []string{"task_resource_usage"},
		isSearch: func(line string) bool {
			return strings.Contains(line, "search") || strings.Contains(line, "_rank_eval")
		},
		sketches: func(body []byte) string {
			head, _, _ := strings.Cut(string(body), ",")
			return strings.TrimPrefix(head, `{"count":`)
		},
		known: knownEverywhere, ofLarge: knownOfLarge, onWire: knownOnWire,
		wire: wireCases, large: largeCases, pages: pageCases,
	},
	{
		name: "typesense", kinds: []string{engines.Typesense}, atOnce: true,
		// How long it took, and when a collection was made.
		members: []string{"search_time_ms", "created_at"}, header: []string{"X-TYPESENSE-API-KEY: <<key>>"},
		isSearch: func(line string) bool { return strings.Contains(line, "search") },
		sketches: func(body []byte) string { return strconv.Itoa(bytes.Count(body, []byte(`"neardup_sketch":"`))) },
		known:    knownTypesense, ofLarge: knownTypesenseLarge,
		large: largeTypesense, pages: pagesTypesense, more: typesenseCombinations,
	},
}

// eachFamily runs a test on every engine of every family, side by side.
func eachFamily(t *testing.T, table func(*family) []known, test func(t *testing.T, d *diffing)) {
	for _, f := range families {
		for _, kind := range f.kinds {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				test(t, newDiffing(t, f, engines.Shared(t, kind), table(f)))
			})
		}
	}
}

// ownNames gives the indices of the cases names that no other run has, on an engine that several share.
func ownNames(text string) string {
	own := fmt.Sprintf("differ%05d", os.Getpid()%100_000)
	text = strings.NewReplacer("differ-", own+"-", "differ%2D", own+"%2D", "%64iffer-", "%64"+own[1:]+"-").Replace(text)
	return scopedKey.ReplaceAllStringFunc(text, func(mark string) string {
		parts := scopedKey.FindStringSubmatch(mark)
		return scoped(parts[1], parts[2])
	})
}

// scopedKey stands in a case file for a key of Typesense that is made from another one and embeds parameters.
var scopedKey = regexp.MustCompile(`<<scoped ([^ ]+) (\{.*?\})>>`)

// scoped makes such a key, as the engine's documentation says and its clients do.
func scoped(key, params string) string {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(params))
	digest := base64.StdEncoding.EncodeToString(h.Sum(nil))
	return base64.StdEncoding.EncodeToString([]byte(digest + key[:4] + params))
}
