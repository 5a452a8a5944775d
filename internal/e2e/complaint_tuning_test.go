package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// reason is what a reply tells of a folded hit: what of it stands where is each engine's own.
type reason struct {
	Agreement, Error float64
	By               string
	Shingles         []int
	Shared           []string
}

// account is what a hit of a page tells, by explain.
type account struct {
	Threshold float64
	Folded    int
	Hits      map[string]reason
}

// explained returns what each hit of a page tells, by its id.
func (d *desk) explained(f found) map[string]account {
	d.t.Helper()
	type why struct {
		Threshold float64
		Folded    int
	}
	list := map[string]account{}
	if d.direct.typesense() {
		var body struct {
			Hits []struct {
				Document struct{ ID string }
				Neardup  struct {
					Explain why
					Hits    []struct {
						ID        string
						Agreement float64
						Explain   reason
					}
				}
			}
		}
		decode(d.t, f.body, &body)
		for _, h := range body.Hits {
			one := account{h.Neardup.Explain.Threshold, h.Neardup.Explain.Folded, map[string]reason{}}
			for _, folded := range h.Neardup.Hits {
				one.Hits[folded.ID] = folded.Explain
			}
			list[h.Document.ID] = one
		}
		return list
	}
	type fields struct {
		Agreement []float64         `json:"neardup_agreement"`
		Explain   []json.RawMessage `json:"neardup_explain"`
	}
	var body struct {
		Hits struct {
			Hits []struct {
				ID     string `json:"_id"`
				Fields fields
				Inner  map[string]struct {
					Hits struct {
						Hits []struct {
							ID     string `json:"_id"`
							Fields fields
						}
					}
				} `json:"inner_hits"`
			}
		}
	}
	decode(d.t, f.body, &body)
	for _, h := range body.Hits.Hits {
		one := account{Hits: map[string]reason{}}
		if len(h.Fields.Explain) > 0 {
			var w why
			decode(d.t, h.Fields.Explain[0], &w)
			one.Threshold, one.Folded = w.Threshold, w.Folded
		}
		for _, folded := range h.Inner["neardup"].Hits.Hits {
			var r reason
			if len(folded.Fields.Explain) > 0 {
				decode(d.t, folded.Fields.Explain[0], &r)
			}
			one.Hits[folded.ID] = r
		}
		list[h.ID] = one
	}
	return list
}

// TestComplaintC21FalseFolds is about near-duplicates that are none to a person, where nothing but switching all of it off
// helps: SharePoint folds by hashes that nobody can tune. The same on ours: a key that was stored is all or nothing, a
// threshold can be set by rule and by request, and a reply says why a hit was folded.
func TestComplaintC21FalseFolds(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		list := articles(strewn(60, 0.6)...)
		words := strings.Fields(list[7].Body)
		words[75], list[7].Title, list[7].Dup = "nineteen", list[0].Title, list[0].Dup // the contract of another year
		list[7].Body = strings.Join(append(strings.Fields(list[0].Body)[:75], words[75:]...), " ")
		d := newDesk(t, e.Kind, list)
		if own := d.collapsing(0, 100); slices.Contains(own.ids, list[7].ID) {
			t.Errorf("directly, %s is shown beside %s: the complaint is gone", list[7].ID, list[0].ID)
		}
		d.noThreshold()
		raw := d.raw()
		for _, threshold := range []float64{0.5, 0.7, 0.8, 0.9, 0.99} {
			o := d.definition()
			o.threshold = threshold
			want := o.collapsed(raw)
			got := slices.Concat(ids(d.walk(d.through, 25, fmt.Sprintf("neardup_threshold=%v", threshold)))...)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("threshold %v: the definition (-), the list (+):\n%s", threshold, diff)
			}
			if apart := slices.Contains(got, list[7].ID); apart != (threshold > 0.8) {
				t.Errorf("threshold %v: %s is shown: %v", threshold, list[7].ID, apart)
			}
		}
		strict := api{e, d.sidecar(e.URL, "threshold: 0.9")}
		if f := d.page(strict, 0, 100, ""); !slices.Contains(f.ids, list[7].ID) || slices.Equal(f.ids, raw) {
			t.Errorf("by a rule with threshold 0.9: %v", f.ids)
		}
		if f := d.page(d.through, 0, 100, "neardup=off"); !slices.Equal(f.ids, raw) {
			t.Errorf("switched off: %v", f.ids)
		}
		d.checkReasons(list[0].ID, list[7].ID)
	})
}

// noThreshold fails the test if the engine's own collapsing knows one.
func (d *desk) noThreshold() {
	d.t.Helper()
	if d.direct.typesense() {
		own := d.query(d.direct, "per_page=100&group_by=dup&group_limit=1&group_threshold=0.9")
		if !slices.Equal(own.ids, d.collapsing(0, 100).ids) {
			d.t.Errorf("directly, a threshold makes a difference: %v", own.ids)
		}
		return
	}
	call(d.t, d.e, "POST", d.direct.base+"/"+d.index+"/_search", `{"collapse":{"field":"dup","threshold":0.9}}`).want(d.t, 400)
}

// checkReasons fails the test unless the first article says that the other one was folded into it, and why.
func (d *desk) checkReasons(shown, folded string) {
	d.t.Helper()
	o := d.definition()
	a, b := o.sketches[shown], o.sketches[folded]
	agreement, _ := a.Agreement(&b)
	f := d.page(d.through, 0, 100, "neardup_explain=true")
	one := d.explained(f)[shown]
	why, ok := one.Hits[folded]
	if !ok || one.Threshold != o.threshold || one.Folded != len(one.Hits) {
		d.t.Fatalf("%s tells %+v", shown, one)
	}
	if math.Abs(why.Agreement-agreement) > 0.00005 || why.Error <= 0 || why.Error > 0.05 || why.By != "sketch" {
		d.t.Errorf("%s was folded for %+v; the sketches agree by %.4f", folded, why, agreement)
	}
	slices.Sort(why.Shingles)
	if want := []int{int(min(a.Shingles, b.Shingles)), int(max(a.Shingles, b.Shingles))}; !slices.Equal(why.Shingles, want) {
		d.t.Errorf("of %v shingles, want %v", why.Shingles, want)
	}
	text := map[string]string{}
	for _, one := range d.list {
		text[one.ID] = one.Title + " " + one.Body
	}
	for _, shingle := range why.Shared {
		if !strings.Contains(text[shown], shingle) || !strings.Contains(text[folded], shingle) {
			d.t.Errorf("%q is said to be shared", shingle)
		}
	}
	if len(why.Shared) == 0 || len(why.Shared) > 10 {
		d.t.Errorf("%d shingles are said to be shared", len(why.Shared))
	}
	if strings.Contains(string(f.body), adapters.SketchField) {
		d.t.Error("our field is shown")
	}
}
