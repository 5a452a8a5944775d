package adapters

import (
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

func TestMemberControls(t *testing.T) {
	yes := true
	for _, c := range []struct {
		name, body string
		want       Controls
		found      bool
		fails      string // what the error names
	}{
		{name: "none", body: `{"query": {"neardup": 1}}`},
		{name: "of all types", body: `{"neardup": "on", "neardup_threshold": 0.9, "neardup_keep": "2", "neardup_explain": true}`,
			want: Controls{On: true, Threshold: 0.9, Keep: 2, Explain: &yes}, found: true},
		{name: "null is none", body: `{"neardup_keep": null, "neardup_window": 7}`, want: Controls{Window: 7}, found: true},
		{name: "a window that no number holds is capped", body: `{"neardup_window": 99999999999999999999}`, want: Controls{Window: math.MaxInt}, found: true},
		{name: "the text null is a bad value", body: `{"neardup_keep": "null"}`, fails: "[neardup_keep] must be"},
		{name: "a list", body: `{"neardup_keep": [1]}`, fails: "not [[1]]"},
		{name: "below any window", body: `{"neardup_window": -99999999999999999999}`, fails: "neardup_window"},
		{name: "a long value is not quoted", body: `{"neardup_keep": "` + strings.Repeat("7", 1000) + `"}`, fails: "[neardup_keep] has a value of 1000 bytes"},
		{name: "unknown", body: `{"neardup_kep": 1}`, fails: "[neardup_kep] is unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found, err := MemberControls(expect.Value(jsonedit.Members([]byte(c.body)))(t))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || len(err.Error()) > 300 {
					t.Errorf("error %v, want one with %q", err, c.fails)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); err != nil || found != c.found || diff != "" {
				t.Errorf("found %t, %v\n%s", found, err, diff)
			}
		})
	}
}

// TestEveryControl: each control is carried by Merge and stands in docs/controls.md.
func TestEveryControl(t *testing.T) {
	page := expect.Value(os.ReadFile("../docs/controls.md"))(t)
	values := map[string]string{
		"neardup": "dry_run", "neardup_threshold": "0.9", "neardup_keep": "2", "neardup_window": "50", "neardup_expand": "source", "neardup_explain": "true",
		"neardup_totals": "collapsed", "neardup_group": "true", "neardup_counts": "groups",
	}
	for _, name := range controls {
		var c Controls
		if err := c.Set(name, values[name]); err != nil || values[name] == "" {
			t.Fatalf("%s: no value to try, or a bad one: %v", name, err)
		}
		if merged := (Controls{}).Merge(c); !reflect.DeepEqual(merged, c) || reflect.DeepEqual(c, Controls{}) {
			t.Errorf("%s: Merge has %+v, not %+v", name, merged, c)
		}
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("%s is not in docs/controls.md", name)
		}
	}
}
