package typesense

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
)

func TestControls(t *testing.T) {
	plan := planFor(adapters.Scope{}, newRule(t, "news", "body"))
	s := search(get("/collections/news/documents/search?neardup_threshold=7&q=x"), plan)
	if s.Refusal == nil || s.Refusal.Status != 400 || !strings.HasPrefix(string(s.Refusal.Body), `{"message": "[neardup_threshold] must be`) {
		t.Errorf("a bad control in the URL: %+v", s.Refusal)
	}
	if s.Plain.RawQuery != "q=x" {
		t.Errorf("plain query %q", s.Plain.RawQuery)
	}
	body := `{"searches": [{"collection":"news","neardup":"off", "q":"x"}, {"q":"y","neardup_window":5,"collection":"news"} ] }`
	s = search(post("/multi_search", body), plan)
	if want := `{"searches": [{"collection":"news", "q":"x"},{"q":"y","collection":"news"}] }`; string(s.Plain.Body) != want {
		t.Errorf("plain body %s", s.Plain.Body)
	}
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(1, 1)), newRule(t, "news", "body"), 30, 0.9)}
	answer, err := adaptertest.Run(s.Exchange, f.reply)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Outcomes[0].Reason != "off" || answer.Outcomes[1].Window != 5 || answer.Outcomes[1].Folded == 0 {
		t.Errorf("outcomes %+v", answer.Outcomes)
	}
	if s = search(post("/multi_search", `{"searches":[{"neardup":"maybe"}]}`), plan); s.Refusal == nil {
		t.Error("a bad control in a search is not refused")
	}
}

// controlled returns a request with a control at a place: of one collection or of several, as JSON or as the text that browsers send.
func controlled(form, place, name, value string) *adapters.Request {
	const path = "/collections/news/documents/search?q=x&per_page=60"
	r := get(path)
	if form != "GET" {
		r = post("/multi_search?q=x&per_page=60", `{"searches":[{"collection":"other"},{"collection":"news"}]}`)
		r.Header["Content-Type"] = []string{form}
	}
	switch place {
	case "URL":
		r.RawQuery = name + "=" + url.QueryEscape(value) + "&" + r.RawQuery
	case "header":
		r.Header[adapters.ControlHeader] = []string{strings.TrimPrefix(name, adapters.FieldPrefix) + "=" + value}
	case "search":
		quoted := adapters.AppendString(nil, value)
		r.Body = []byte(strings.Replace(string(r.Body), `"news"`, `"news","`+name+`":`+string(quoted), 1))
	case "search, bare": // a number, a truth, a list
		r.Body = []byte(strings.Replace(string(r.Body), `"news"`, `"news","`+name+`":`+value, 1))
	}
	return r
}

// Every control is taken wherever it can stand, and a value that is none is answered in the engine's own shape.
func TestEveryControlEverywhere(t *testing.T) {
	rule := newRule(t, "news", "body")
	f := &fake{documents: memo{}.corpus(rand.New(rand.NewPCG(1, 2)), rule, 60, 0.9)}
	plain, err := adaptertest.Run(search(controlled("GET", "", "", ""), planFor(adapters.Scope{}, rule)).Exchange, f.reply)
	if err != nil {
		t.Fatal(err)
	}
	folded := plain.Outcomes[0].Folded
	for _, c := range []struct {
		name, value string
		bare        bool // it can stand in JSON as it is
		bad         []string
		taken       func(o adapters.Outcome, answer string) bool
	}{
		{"neardup", "dry_run", false, []string{"maybe", "2", "null"},
			func(o adapters.Outcome, _ string) bool { return o.DryRun && o.Folded > 0 }},
		{"neardup_threshold", "1", true, []string{"0", "1.01", "-1", "x", "", "NaN", "[1]"},
			func(o adapters.Outcome, _ string) bool { return o.Folded > 0 && o.Folded < folded }},
		{"neardup_keep", "3", true, []string{"0", "101", "1.5", "", "true", `{"a":1}`},
			func(o adapters.Outcome, _ string) bool { return o.Folded > 0 && o.Folded < folded }},
		{"neardup_window", "5", true, []string{"0", "-3", "1e3", "", "false"},
			func(o adapters.Outcome, _ string) bool { return o.Window == 5 }},
		{"neardup_expand", "ids", false, []string{"all", "1", "null"},
			func(_ adapters.Outcome, answer string) bool { return strings.Contains(answer, `"neardup":{"found":`) }},
		{"neardup_expand", "source", false, nil,
			func(_ adapters.Outcome, answer string) bool { return strings.Contains(answer, `,"document":{"body":"`) }},
		{"neardup_explain", "true", true, []string{"yes", "1"},
			func(_ adapters.Outcome, answer string) bool {
				return strings.Contains(answer, `,"explain":{"representative":"rank"`)
			}},
		{"neardup_totals", "collapsed", false, []string{"all", "", "true"},
			func(o adapters.Outcome, answer string) bool {
				return strings.Contains(answer, fmt.Sprintf(`"found":%d,`, len(f.documents)-o.Folded))
			}},
	} {
		for _, form := range []string{"GET", "application/json", "text/plain"} {
			for _, place := range []string{"URL", "header", "search", "search, bare"} {
				if strings.HasPrefix(place, "search") && form == "GET" || place == "search, bare" && !c.bare {
					continue
				}
				where := fmt.Sprintf("%s=%s in the %s of %s", c.name, c.value, place, form)
				s := search(controlled(form, place, c.name, c.value), planFor(adapters.Scope{}, rule))
				if s.Exchange == nil || s.Refusal != nil {
					t.Errorf("%s: %+v", where, s)
					continue
				}
				sent := s.Plain.RawQuery + string(s.Plain.Body) + fmt.Sprint(s.Plain.Header)
				answer, err := adaptertest.Run(s.Exchange, func(r *adapters.Request) *adapters.Reply {
					sent += r.RawQuery + string(r.Body) + fmt.Sprint(r.Header)
					return f.reply(r)
				})
				if err != nil || !c.taken(answer.Outcomes[len(answer.Outcomes)-1], string(answer.Body)) {
					t.Errorf("%s: %v, %+v", where, err, answer)
				}
				if sent = strings.ReplaceAll(strings.ReplaceAll(sent, adapters.SketchField, ""), nothing, ""); strings.Contains(strings.ToLower(sent), "neardup") {
					t.Errorf("%s: the engine is sent %s", where, sent)
				}
				for _, bad := range c.bad {
					if place == "search, bare" && (bad == "" || strings.Trim(bad, "xyesNa") == "" || bad == "1.01" && c.name == "neardup_threshold") {
						continue
					}
					s := search(controlled(form, place, c.name, bad), planFor(adapters.Scope{}, rule))
					if s.Refusal == nil || s.Refusal.Status != 400 || !strings.HasPrefix(string(s.Refusal.Body), `{"message": "`) ||
						!strings.Contains(string(s.Refusal.Body), "["+c.name+"] must be") {
						t.Errorf("%s: %q is not refused: %+v", where, bad, s.Refusal)
					}
				}
			}
		}
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
		if s.Exchange == nil || s.Refusal != nil {
			t.Errorf("%s: %+v", imposed, s)
			continue
		}
		answer, err := adaptertest.Run(s.Exchange, f.reply)
		if err != nil || answer.Outcomes[0].Folded == 0 || answer.Outcomes[0].DryRun || answer.Outcomes[0].Window == 1 {
			t.Errorf("%s: %v, %+v", imposed, err, answer)
		}
	}
}
