package elastic

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

var (
	timeTaken    = regexp.MustCompile(`("took" ?: ?)\d+`)
	approximated = regexp.MustCompile(`Approximate\(([^()]*)\)`)
)

// comparable returns a reply less what differs from one answer of an engine to the next: how long it took, and two things of OpenSearch. It adds
// terminated_early where nothing is counted and a shard is asked after another one's hits have shown that none of its own can be on the page. And it
// explains a range as Approximate(…) for some sizes of a page.
func comparable(reply string) string {
	reply = strings.ReplaceAll(timeTaken.ReplaceAllString(reply, "${1}0"), `"terminated_early":true,`, "")
	return approximated.ReplaceAllString(reply, "$1")
}

// around returns a reply less its hits, their total and how long it took.
func around(t *testing.T, reply string) string {
	t.Helper()
	root, err := jsonedit.Members([]byte(reply))
	if err != nil {
		t.Fatalf("%v: %s", err, reply)
	}
	outer := jsonedit.Get(root, "hits")
	for _, key := range []string{"hits", "total"} {
		members, _ := jsonedit.Members(outer)
		if jsonedit.Get(members, key) == nil {
			continue
		}
		outer = expect.Value(jsonedit.Set(outer, key, []byte("null")))(t)
	}
	out := expect.Value(jsonedit.Set([]byte(reply), "hits", outer))(t)
	return comparable(string(out))
}

// totalIn returns a reply's total, -1 if it has none, and its relation.
func totalIn(t *testing.T, reply string) (total int, relation string) {
	t.Helper()
	var r struct {
		Hits struct{ Total json.RawMessage }
	}
	expect.OK(t, json.Unmarshal([]byte(reply), &r))
	var form struct {
		Value    int
		Relation string
	}
	if json.Unmarshal(r.Hits.Total, &form) == nil {
		return form.Value, form.Relation
	}
	total, err := strconv.Atoi(string(r.Hits.Total))
	if err != nil {
		return -1, ""
	}
	return total, ""
}

// inner is what is shown of the hits folded into one.
type inner struct {
	Hits struct {
		Total struct {
			Value    int
			Relation string
		}
		Hits []json.RawMessage
	}
}

// split takes what we added out of a hit.
func split(t *testing.T, hit string) (bare string, folded *inner, explanation, agreement string) {
	t.Helper()
	take := func(object []byte, outer, name string) (left, value []byte) {
		members, err := jsonedit.Members(object)
		if err != nil {
			t.Fatalf("%v: %s", err, object)
		}
		within := jsonedit.Get(members, outer)
		if within == nil {
			return object, nil
		}
		inside := expect.Value(jsonedit.Members(within))(t)
		if value = jsonedit.Get(inside, name); value == nil {
			return object, nil
		}
		if len(inside) == 1 {
			left, err = jsonedit.Cut(object, func(key string) bool { return key == outer })
		} else if within, err = jsonedit.Cut(within, func(key string) bool { return key == name }); err == nil {
			left, err = jsonedit.Set(object, outer, within)
		}
		expect.OK(t, err)
		return left, value
	}
	left, value := take([]byte(hit), "inner_hits", "neardup")
	if value != nil {
		folded = &inner{}
		if err := json.Unmarshal(value, folded); err != nil {
			t.Fatalf("%v: %s", err, value)
		}
	}
	left, agreed := take(left, "fields", "neardup_agreement")
	left, why := take(left, "fields", "neardup_explain")
	return string(left), folded, string(why), string(agreed)
}

// check holds an answer against the definition and the engine's own.
func (p *page) check(t *testing.T, name, got, own string) {
	t.Helper()
	hits := fakeHits([]byte(got))[0]
	if len(hits) != len(p.ranks) {
		t.Errorf("%s: %d hits, want %d\n%s", name, len(hits), len(p.ranks), got)
		return
	}
	for i, rank := range p.ranks {
		bare, folded, why, _ := split(t, hits[i])
		if diff := cmp.Diff(comparable(p.raw[rank]), bare); diff != "" {
			t.Errorf("%s: hit %d of the page (-want +got):\n%s", name, i, diff)
			return
		}
		if (folded != nil) != (p.show.Expand > rule.ExpandOff) || (why != "") != p.explain {
			t.Errorf("%s: hit %d shows %v %s", name, i, folded, why)
			return
		}
		if folded != nil {
			p.checkFolded(t, fmt.Sprintf("%s: hit %d", name, i), rank, folded)
		}
	}
	expect.Same(t, around(t, own), around(t, got), "%s: around the hits (-own +got)", name)
	total, relation := totalIn(t, own)
	if p.show.CollapsedTotals && total >= 0 {
		if relation == "gte" {
			total = min(len(p.raw), p.rule.Window)
			if ownTotal, _ := totalIn(t, own); ownTotal > total {
				total = ownTotal
			}
		}
		total -= p.folded()
	}
	if n, is := totalIn(t, got); n != total || is != relation {
		t.Errorf("%s: total %d %s, want %d %s", name, n, is, total, relation)
	}
}

func (p *page) folded() (n int) {
	for _, g := range p.list.Groups {
		n += len(g.Folded)
	}
	return n
}

// checkFolded holds what is shown of the hits folded into one against the definition.
func (p *page) checkFolded(t *testing.T, name string, rank int, got *inner) {
	t.Helper()
	var want []int
	leader := rank
	for _, g := range p.list.Groups {
		if g.Representative == rank {
			want, leader = g.Folded, g.Leader
		}
	}
	exact := got.Hits.Total.Relation == "eq"
	if len(want) != len(got.Hits.Hits) && (exact || len(got.Hits.Hits) > len(want)) || got.Hits.Total.Value != len(got.Hits.Hits) {
		t.Errorf("%s: %d folded hits %+v, want %d", name, len(got.Hits.Hits), got.Hits.Total, len(want))
		return
	}
	for i, raw := range got.Hits.Hits {
		bare, _, why, agreement := split(t, string(raw))
		if idOf(t, bare) != p.hits[want[i]].ID {
			t.Errorf("%s: folded hit %d is %s, want %s", name, i, bare, p.hits[want[i]].ID)
		}
		if p.show.Expand == rule.ExpandSource && bare != comparable(p.raw[want[i]]) {
			t.Errorf("%s: folded hit %d is\n%s, want\n%s", name, i, bare, p.raw[want[i]])
		}
		if p.show.Expand == rule.ExpandIDs && (strings.Contains(bare, `"_source"`) || strings.Contains(bare, `"fields"`)) {
			t.Errorf("%s: folded hit %d shows too much: %s", name, i, bare)
		}
		with := leader
		if want[i] == leader {
			with = rank
		}
		value := agreementOf(p.hits[want[i]], p.hits[with])
		if agreement != fmt.Sprintf("[%.4f]", value) {
			t.Errorf("%s: agreement %s, want %.4f", name, agreement, value)
		}
		if p.explain && !strings.Contains(why, fmt.Sprintf(`"agreement":%.4f,"error":`, value)) {
			t.Errorf("%s: explained by %s", name, why)
		}
	}
}

// agreementOf is what the profile's measure says of two hits.
func agreementOf(a, b rerank.Hit) float64 {
	if a.Profile.Measure == rerank.Containment {
		if b.Sketch.Shingles < a.Sketch.Shingles {
			a, b = b, a
		}
		e, _ := a.Sketch.Containment(b.Sketch)
		return max(0, e.Value)
	}
	value, _ := a.Sketch.Agreement(b.Sketch)
	return max(0, value)
}

func (p *page) checkOutcome(t *testing.T, name string, o adapters.Outcome) {
	t.Helper()
	if o.DryRun != p.show.DryRun || o.Reason != "" {
		t.Errorf("%s: outcome %+v", name, o)
	}
	if o.Exact && o.Folded != p.folded() || o.Folded > p.folded() && !p.rule.Transitive && p.rule.Choice.Ranked() {
		t.Errorf("%s: %d folded, want %d: %+v", name, o.Folded, p.folded(), o)
	}
	if p.show.CollapsedTotals && len(p.raw) != p.rule.Window && o.Exact != (len(p.raw) < p.rule.Window) {
		t.Errorf("%s: exact %v with %d hits and a window of %d", name, o.Exact, len(p.raw), p.rule.Window)
	}
}
