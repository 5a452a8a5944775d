package typesense

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// choice is what a rule or a client asks for beside the page.
type choice struct {
	rule     rule.Rule // of which the parts that choose count
	controls url.Values
	place    string
}

func randomChoice(r *rand.Rand, window int) choice {
	c := choice{controls: url.Values{}, place: []string{"url", "header", "body"}[r.IntN(3)]}
	c.rule.DateField = "at"
	if r.IntN(2) == 0 {
		c.rule.Choice = []rule.Choice{
			{By: rule.ByRank}, {By: rule.ByNewest}, {By: rule.ByOldest}, {By: rule.ByLongest},
			{By: rule.ByField, Field: "votes", Ascending: r.IntN(2) == 0}, {By: rule.ByField, Field: "meta.a"},
			{By: rule.ByPrefer, Field: "host", Values: []string{"h2.example", "h0.example"}},
			{By: rule.ByPrefer, Field: "tags", Values: []string{"b"}},
		}[r.IntN(8)]
	}
	c.rule.Profile.Keep = []int{0, 1, 1, 2, 3, 100}[r.IntN(6)]
	c.rule.Profile.Measure = []rerank.Measure{"", rerank.Resemblance, rerank.Containment}[r.IntN(3)]
	if r.IntN(5) == 0 {
		c.rule.Together.Within, c.rule.Together.WithinField = int64(r.IntN(400_000))*1000, "at"
	}
	if r.IntN(5) == 0 {
		c.rule.Together.Same = [][]string{{"host"}, {"tags", "meta.lang"}, {"un"}, {"meta.lang"}}[r.IntN(4)]
	}
	if r.IntN(5) == 0 {
		c.rule.Together.Different = [][]string{{"host"}, {"tags"}, {"host", "un"}}[r.IntN(3)]
	}
	c.rule.Transitive = r.IntN(5) == 0
	for name, values := range map[string][]string{
		"neardup": {"on", "dry_run"}, "neardup_threshold": {"0.3", "1"}, "neardup_keep": {"1", "2", "7"},
		"neardup_window": {"10", "200", "9999"}, "neardup_totals": {"engine", "collapsed"},
	} {
		if r.IntN(4) == 0 {
			c.controls.Set(name, values[r.IntN(len(values))])
		}
	}
	c.rule.CollapsedTotals = r.IntN(6) == 0
	c.rule.DryRun = r.IntN(12) == 0
	return c
}

// put puts the choice into a rule.
func (c choice) put(rule *rule.Rule) {
	rule.Choice, rule.DateField, rule.Together, rule.Transitive = c.rule.Choice, c.rule.DateField, c.rule.Together, c.rule.Transitive
	rule.Profile.Keep, rule.Profile.Measure = c.rule.Profile.Keep, c.rule.Profile.Measure
	rule.CollapsedTotals, rule.DryRun = c.rule.CollapsedTotals, c.rule.DryRun
}

// control returns the request with the controls at their place.
func (c choice) control(r *adapters.Request) *adapters.Request {
	with := *r
	place := c.place
	if r.Method == "GET" && place == "body" {
		place = "url"
	}
	for name, values := range c.controls {
		switch place {
		case "url":
			with.RawQuery = strings.Trim(with.RawQuery+"&"+name+"="+values[0], "&")
		case "body":
			with.Body = []byte(strings.Replace(string(with.Body), `{"searches":[{`, fmt.Sprintf(`{"searches":[{%q:%q,`, name, values[0]), 1))
		default:
			header := adapters.Header{adapters.ControlHeader: with.Header[adapters.ControlHeader]}
			for key, lines := range with.Header {
				header[key] = lines
			}
			header[adapters.ControlHeader] = append(slices.Clone(header[adapters.ControlHeader]), strings.TrimPrefix(name, "neardup_")+"="+values[0])
			with.Header = header
		}
	}
	return &with
}

func (c choice) number(name string) int {
	n, _ := strconv.Atoi(c.controls.Get(name))
	return n
}

func (c choice) share(name string) float64 {
	share, _ := strconv.ParseFloat(c.controls.Get(name), 64)
	return share
}

func (c choice) dryRun() bool {
	return c.controls.Get("neardup") == "dry_run" || c.rule.DryRun && c.controls.Get("neardup") != "on"
}

func (c choice) collapsed() bool {
	if c.controls.Has("neardup_totals") {
		return c.controls.Get("neardup_totals") == "collapsed"
	}
	return c.rule.CollapsedTotals
}

// framed puts what a client must get into the engine's own answer.
func framed(t *testing.T, own []byte, x expected) string {
	t.Helper()
	out, err := jsonedit.Set(own, "hits", jsonedit.Array(x.hits))
	if err == nil && x.found >= 0 {
		out, err = jsonedit.Set(out, "found", strconv.AppendInt(nil, int64(x.found), 10))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
