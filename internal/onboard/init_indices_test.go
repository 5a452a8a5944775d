package onboard

import (
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// TestInitOrdersRules holds any set of names against what the loader says of their order.
func TestInitOrdersRules(t *testing.T) {
	for _, names := range [][]string{
		{"a*", "ab", "ab*", "a*b*", "*", "b"}, {"logs-*", "logs-2026-*", "logs-*-app", "logs-x"}, {"x*y*z", "x*yz", "xy*z", "xyz"},
	} {
		var list []*candidate
		for _, name := range names {
			list = append(list, &candidate{Match: name})
		}
		list = ordered(list)
		expect.Must(t, len(names), len(list), "how many are left")
		for i, c := range list {
			for _, earlier := range list[:i] {
				if rule.Matches(earlier.Match, c.Match) {
					t.Errorf("%s takes what stands behind it: %s", earlier.Match, c.Match)
				}
			}
		}
	}
}

func TestInitGroups(t *testing.T) {
	for _, c := range []struct{ names, want string }{
		{"news", "news"},
		{"news-2026.01", "news-*"},
		{"logs-2026.01 logs-2026.02", "logs-*"},
		{"logs-000001", "logs-*"},
		{"logs-2026.01-app logs-2026.02-app logs-2026.01-web", "logs-*-app logs-*-web"},
		{"v1 v2", "v1 v2"}, // v* says nothing
		{"team1-docs team2-docs", "team*-docs"},
		{"web3", "web3"},
		{"2026.01 2026.02", "2026.01 2026.02"},
		{"articles_en articles_de", "articles_en articles_de"},
	} {
		var holdings []adapters.Holding
		for name := range strings.FieldsSeq(c.names) {
			holdings = append(holdings, adapters.Holding{Name: name})
		}
		var got []string
		for _, g := range groupsOf(holdings) {
			got = append(got, g.Match)
		}
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		expect.Same(t, want, got, "%s", c.names)
	}
}
