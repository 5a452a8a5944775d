package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// form is a way to ask for a search, with what is asked of us in one of its places.
type form struct {
	name    string
	bodied  bool // controls can stand in the body of the search
	request func(query, inBody string) (method, path, body string)
}

// forms are all of an engine's, on one index. A query begins with &, what stands in the body with a comma.
func forms(e *engines.Engine, index string) (list []form) {
	path := func(at, first, query string) string { return at + "?" + strings.TrimPrefix(first+query, "&") }
	if e.Kind == engines.Typesense {
		const search = `"q":"*","query_by":"title","per_page":5`
		return []form{
			{"documents/search", false, func(query, _ string) (string, string, string) {
				return "GET", path("/collections/"+index+"/documents/search", "q=*&query_by=title&per_page=5", query), ""
			}},
			{"multi_search", true, func(query, inBody string) (string, string, string) {
				return "POST", path("/multi_search", "", query), `{"searches":[{"collection":"` + index + `",` + search + inBody + `}]}`
			}},
			{"multi_search by parameters", true, func(query, inBody string) (string, string, string) {
				return "POST", path("/multi_search", "q=*&query_by=title&per_page=5", query),
					`{"searches":[{"collection":"` + index + `"` + inBody + `}]}`
			}},
		}
	}
	const search = `"query":{"match_all":{}},"size":5,"sort":["id"]`
	list = []form{
		{"_search", true, func(query, inBody string) (string, string, string) {
			return "POST", path("/"+index+"/_search", "", query), "{" + search + inBody + "}"
		}},
		{"_search, GET", true, func(query, inBody string) (string, string, string) {
			return "GET", path("/"+index+"/_search", "", query), "{" + search + inBody + "}"
		}},
		{"_search by parameters", false, func(query, _ string) (string, string, string) {
			return "GET", path("/"+index+"/_search", "q=*:*&size=5&sort=id", query), ""
		}},
		{"_search with source", true, func(query, inBody string) (string, string, string) {
			source := "source_content_type=application/json&source=" + url.QueryEscape("{"+search+inBody+"}")
			return "GET", path("/"+index+"/_search", source, query), ""
		}},
		{"_msearch", true, func(query, inBody string) (string, string, string) {
			return "POST", path("/_msearch", "", query), `{"index":"` + index + `"}` + "\n{" + search + inBody + "}\n"
		}},
		{"_msearch of an index", true, func(query, inBody string) (string, string, string) {
			return "POST", path("/"+index+"/_msearch", "", query), "{}\n{" + search + inBody + "}\n"
		}},
	}
	if e.Kind == engines.OpenSearch {
		list = append(list, form{"_search/template", true, func(query, inBody string) (string, string, string) {
			return "POST", path("/"+index+"/_search/template", "", query), `{"source":{` + search + `}` + inBody + `}`
		}})
	}
	return list
}

// firstResult returns the first search's result of a reply.
func firstResult(t *testing.T, body []byte) []byte {
	t.Helper()
	var many struct{ Responses, Results []json.RawMessage }
	if json.Unmarshal(body, &many) == nil && len(many.Responses)+len(many.Results) > 0 {
		return append(many.Responses, many.Results...)[0]
	}
	return body
}

// TestContractDefaultsChangeNothing has searches whose controls ask for nothing but the defaults: where nothing folds the answer
// is the engine's own, byte for byte, and where something does the same as without them.
func TestContractDefaultsChangeNothing(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		c := newContract(t, e, seeded(t), 2, [][]*terms{{plainTerms(), plainTerms()}})
		for i, s := range c.shelves {
			s.press = newPress(t, c.r)
			s.press.even = true
			c.fill(s, 60, []float64{0, 0.5}[i], func(i int) int { return []int{0, 0, past}[i%3] })
		}
		c.twins(c.shelves[1])
		defaults := [][2]string{{"neardup", "on"}, {"neardup_threshold", "0.64"}, {"neardup_keep", "1"}, {"neardup_window", "1000"},
			{"neardup_expand", "off"}, {"neardup_expand", "false"}, {"neardup_explain", "false"}, {"neardup_totals", "engine"}}
		for i, s := range c.shelves {
			folds := 0
			for _, f := range forms(e, s.index) {
				method, path, body := f.request("", "")
				want := call(t, e, method, c.listeners[0].base+path, body).want(t, 200)
				outcome := want.header.Get("Neardup")
				none := strings.Contains(outcome, "folded=0;")
				// What is not read is not counted: a first reading of few ranks may see nothing fold.
				if !strings.HasPrefix(outcome, "collapsed;") || i == 0 && !none ||
					none && i > 0 && !strings.Contains(outcome, "exact=false") {
					t.Errorf("%s: %s", f.name, outcome)
				}
				if !none {
					folds++
				}
				if i == 0 {
					want = call(t, e, method, e.URL+path, body).want(t, 200)
				}
				for _, d := range defaults {
					for place, r := range c.placed(f, d[0], d[1], `"`+d[1]+`"`) {
						clean := oursAnywhere.ReplaceAll(untimed(want.body), nil)
						if diff := cmp.Diff(string(clean), string(untimed(r.body))); diff != "" {
							t.Errorf("%s, %v by %s: %.2000s", f.name, d, place, diff)
						}
					}
				}
			}
			if (folds > 0) != (i > 0) {
				t.Errorf("shelf %d: something folds in %d forms", i, folds)
			}
		}
	})
}

// twins gives the first two papers of a shelf one text, and the last two, so that something folds on the first page of any order by id.
func (c *contract) twins(s *shelf) {
	c.t.Helper()
	ids := sortedKeys(s.papers)
	for at, id := range []string{ids[0], ids[1], ids[len(ids)-2], ids[len(ids)-1]} {
		d := *s.papers[id]
		d.title, d.body = "", strings.Join(s.press.sentences[at/2*9:][:9], ". ")
		c.write(s, d)
	}
}

// placed asks a search with one control in each of its places.
func (c *contract) placed(f form, name, value, asJSON string) map[string]reply {
	c.t.Helper()
	base, replies := c.listeners[0].base, map[string]reply{}
	method, path, body := f.request("&"+name+"="+url.QueryEscape(value), "")
	replies["url"] = call(c.t, c.e, method, base+path, body)
	method, path, body = f.request("", "")
	short := strings.TrimPrefix(name, "neardup_")
	replies["header"] = call(c.t, c.e, method, base+path, body, "Neardup-Control", short+"="+value)
	if f.bodied {
		method, path, body = f.request("", fmt.Sprintf(",%q:%s", name, asJSON))
		replies["body"] = call(c.t, c.e, method, base+path, body)
	}
	return replies
}

// badControls are values that are refused.
var badControls = map[string][]string{
	"neardup":           {"maybe", "1", "dry-run"},
	"neardup_threshold": {"0", "-0.5", "1.01", "high", "NaN", "", "Inf"},
	"neardup_keep":      {"0", "-1", "101", "1.5", "two", ""},
	"neardup_window":    {"0", "-1", "1.5", "wide", ""},
	"neardup_expand":    {"all", "1", "none"},
	"neardup_explain":   {"1", "why", "yes"},
	"neardup_totals":    {"both", "", "true"},
	"neardup_nothing":   {"1"},
}

// TestContractBadControls has values that are refused, in every place of every form: the error names the control, in the shape of
// the engine's own.
func TestContractBadControls(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		c := newContract(t, e, seeded(t), 1, [][]*terms{{plainTerms()}})
		c.fill(c.shelves[0], 12, 0.5, func(int) int { return 0 })
		for _, f := range forms(e, c.shelves[0].index) {
			for _, name := range sortedKeys(badControls) {
				for i, value := range badControls[name] {
					asJSON := fmt.Sprintf("%q", value)
					if json.Valid([]byte(value)) && i%2 == 0 {
						asJSON = value
					}
					for place, r := range c.placed(f, name, value, asJSON) {
						if wrong := wrongRefusal(t, e, name, r); wrong != "" {
							t.Errorf("%s, %s=%q by %s: %s: %d %.400s", f.name, name, value, place, wrong, r.status, r.body)
						}
					}
				}
				for _, odd := range []string{"{}", "[1]"} {
					if !f.bodied {
						continue
					}
					if r := c.placed(f, name, "x", odd)["body"]; wrongRefusal(t, e, name, r) != "" {
						t.Errorf("%s, %s:%s: %d %.400s", f.name, name, odd, r.status, r.body)
					}
				}
				if r := c.placed(f, name, "x", "null")["body"]; f.bodied && (r.status != 200 || wrongRefusal(t, e, name, r) == "") {
					t.Errorf("%s, %s:null is not taken for none: %d %.400s", f.name, name, r.status, r.body)
				}
			}
		}
	})
}

// wrongRefusal returns what is wrong with the refusal of a control.
func wrongRefusal(t *testing.T, e *engines.Engine, name string, r reply) string {
	t.Helper()
	if e.Kind == engines.Typesense {
		var shape map[string]string
		if r.status != 400 || json.Unmarshal(r.body, &shape) != nil || len(shape) != 1 ||
			!strings.Contains(shape["message"], "["+name+"]") {
			return "not this engine's error"
		}
		return ""
	}
	body, status := r.body, r.status
	if status == 200 { // of many searches one is refused
		body = firstResult(t, body)
	}
	var shape struct {
		Error struct {
			RootCause []struct{ Type, Reason string } `json:"root_cause"`
			Type      string
			Reason    string
		}
		Status int
	}
	if json.Unmarshal(body, &shape) != nil || shape.Status != 400 || shape.Error.Type == "" || len(shape.Error.RootCause) != 1 ||
		!strings.Contains(shape.Error.Reason, "["+name+"]") {
		return "not this engine's error"
	}
	return ""
}

// TestContractUnconfigured has controls on an index that no rule matches: they are taken out, and the answer is the engine's own.
func TestContractUnconfigured(t *testing.T) {
	atOnce(t, engines.Kinds, func(t *testing.T, e *engines.Engine) {
		c := newContract(t, e, seeded(t), 1, [][]*terms{{plainTerms()}})
		other := &shelf{index: "un" + c.shelves[0].index, papers: map[string]*paper{}, press: newPress(t, c.r)}
		c.make(other, e.URL, "date")
		c.fill(other, 20, 0.5, func(int) int { return past })
		for _, f := range forms(e, other.index) {
			method, path, body := f.request("", "")
			want := call(t, e, method, e.URL+path, body).want(t, 200)
			for _, d := range [][2]string{{"neardup", "on"}, {"neardup_threshold", "0.5"}, {"neardup_keep", "2"}, {"neardup_window", "10"},
				{"neardup_expand", "source"}, {"neardup_explain", "true"}, {"neardup_totals", "collapsed"}} {
				for place, r := range c.placed(f, d[0], d[1], `"`+d[1]+`"`) {
					if diff := cmp.Diff(string(untimed(want.body)), string(untimed(r.body))); diff != "" {
						t.Errorf("%s, %v by %s: %.2000s", f.name, d, place, diff)
					}
				}
			}
		}
	})
}
