package proxy

import (
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
)

func TestOutcomeLine(t *testing.T) {
	good, refused := adapters.Outcome{Raw: 3, Stats: rerank.Stats{Folded: 1}, Exact: true, Rounds: 1, Window: 10}, adapters.Outcome{Reason: "refused"}
	for _, c := range []struct {
		outcomes []adapters.Outcome
		want     string
	}{
		{[]adapters.Outcome{good}, "collapsed; raw=3; folded=1; exact=true; rounds=1; window=10; took=1.0ms"},
		{[]adapters.Outcome{refused}, "bypassed; reason=refused"},
		{[]adapters.Outcome{refused, {Reason: "off"}, refused}, "bypassed; reason=off,refused"},
		{[]adapters.Outcome{refused, good}, "collapsed; reason=refused; raw=3; folded=1; exact=true; rounds=1; window=10; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 3, Rounds: 1, Window: 10, DryRun: true}}, "dry-run; raw=3; folded=0; exact=false; rounds=1; window=10; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 3, Rounds: 2, Window: 10, CursorLost: true}}, "collapsed; raw=3; folded=0; exact=false; rounds=2; window=10; cursor=lost; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 3, DryRun: true}, good}, "collapsed; raw=6; folded=1; exact=false; rounds=1; window=10; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 3, Rounds: 2, Window: 2, Counts: adapters.CountsWindow}, {Exact: true, Counts: adapters.CountsExact}},
			"collapsed; raw=3; folded=0; exact=false; rounds=2; window=2; counts=window; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 3, Counts: adapters.CountsEngine}}, "collapsed; reason=uncountable; raw=3; folded=0; exact=false; rounds=0; window=0; counts=engine; took=1.0ms"},
		{nil, "collapsed; raw=0; folded=0; exact=true; rounds=0; window=0; took=1.0ms"},
		{[]adapters.Outcome{{Raw: 30, Stats: rerank.Stats{Folded: 1, Limited: true}, Shorter: "rank_window", Rounds: 1, Window: 10}},
			"collapsed; reason=rank_window; raw=30; folded=1; exact=false; rounds=1; window=10; took=1.0ms"},
	} {
		expect.Same(t, c.want, outcomeLine(c.outcomes, time.Millisecond), "")
	}
}

func TestHide(t *testing.T) {
	c := clientOf(adapters.Header{"Authorization": {"Bearer token-1"}, "X-Key": {"other-key"}, "X-N": {"1"}}, "key=in%20query")
	got := c.hide(`Get "http://e:1/collections/a?key=in+query": 401 of token-1 with "Bearer token-1" or other-key after 1 try`)
	for _, secret := range []string{"token-1", "other-key", "query"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s is shown: %s", secret, got)
		}
	}
	if !strings.Contains(got, "http://e:1/collections/a") || !strings.Contains(got, "after 1 try") {
		t.Errorf("too much is hidden: %s", got)
	}
}

// TestFuses: the indices of a target make one list of several if one of them does, and none does so in another way.
func TestFuses(t *testing.T) {
	for how, want := range map[string]bool{"": false, "a": true, "a a": true, "a -": true, "- a": true, "a b": false, "a - b": false} {
		var indices []adapters.Index
		for name := range strings.FieldsSeq(how) {
			indices = append(indices, adapters.Index{Fuses: strings.Trim(name, "-")})
		}
		if got := fuses(indices); got != want {
			t.Errorf("%q: %v", how, got)
		}
	}
}
