package typesense

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
)

func TestControls(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	s := search(get("/collections/news/documents/search?neardup_threshold=7&q=x"), plan)
	if s.Refusal == nil || s.Refusal.Status != 400 || !strings.HasPrefix(string(s.Refusal.Body), `{"message": "[neardup_threshold] must be`) {
		t.Errorf("a bad control in the URL: %+v", s.Refusal)
	}
	expect.Same(t, "q=x", s.Plain.RawQuery, "the plain query")
	body := `{"searches": [{"collection":"news","neardup":"off", "q":"x"}, {"q":"y","neardup_window":5,"collection":"news"} ] }`
	s = search(post("/multi_search", body), plan)
	expect.Same(t, `{"searches": [{"collection":"news", "q":"x"},{"q":"y","collection":"news"}] }`, string(s.Plain.Body), "the plain body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(1, 1)), newRule(t, "news", "body"), 30, 0.9)}
	answer := expect.Value(adaptertest.Run(s, f.reply))(t)
	if answer.Outcomes[0].Reason != "off" || answer.Outcomes[1].Window != 5 || answer.Outcomes[1].Folded == 0 {
		t.Errorf("outcomes %+v", answer.Outcomes)
	}
	if s = search(post("/multi_search", `{"searches":[{"collection":"news","neardup":"maybe"}]}`), plan); s.Refusal == nil {
		t.Error("a bad control in a search is not refused")
	}
	searches := `{"searches":[{"collection":"news","neardup":"maybe"},{"neardup":"off"}, {"collection":"other"}]}`
	for params, want := range map[string][]string{"": {"news", "other"}, "?collection=all": {"all", "all", "all"}} { // parameters of the URL count first
		r := post("/multi_search"+params, searches)
		expect.Same(t, want, slices.Collect(Dialect{}.Targets(Dialect{}.Classify(r), r)), "%s: the targets", params)
	}
}

// What stands in a scoped key is its issuer's word to the engine, and can't be changed on its way: controls in there count for nothing.
func TestControlsInKeysCountForNothing(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(1, 3)), rule, 60, 0.9)}
	for _, imposed := range []string{`{"neardup":"off"}`, `{"neardup":"dry_run","neardup_keep":"none"}`, `{"neardup_window":1}`} {
		r := get("/collections/news/documents/search?q=x")
		r.Header = adapters.Header{keyHeader: {scopedKey(imposed)}}
		s := search(r, planFor(adapters.Scope{}, rule))
		if s.Left() || s.Refusal != nil {
			t.Errorf("%s: %+v", imposed, s)
			continue
		}
		answer, err := adaptertest.Run(s, f.reply)
		if err != nil || answer.Outcomes[0].Folded == 0 || answer.Outcomes[0].DryRun || answer.Outcomes[0].Window == 1 {
			t.Errorf("%s: %v, %+v", imposed, err, answer)
		}
	}
}
