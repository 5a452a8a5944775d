package adapters

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// FuzzControls has any header and query for controls: what goes to the engine has none of them left and all else, byte for byte.
func FuzzControls(f *testing.F) {
	for _, s := range [][2]string{
		{"on", "neardup=off&q=a"}, {"threshold=0.9; keep=2", "a=b&neardup_window=500&c"}, {"=;;x=1", "neardup_%74hreshold=2"},
		{"off", "&&neardup&="},
		{"dry_run", "q=%zz&neardup_keep=1e9"}, {"window=99999999999999999999", "neardup_explain=&neardup_expand=source"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, header, query string) {
		r := &Request{Method: "GET", Path: "/i/_search", RawQuery: query, Header: Header{ControlHeader: {header}, "X-Other": {"kept"}}}
		c, plain, err := TakeControls(r)
		if _, left := plain.Header[ControlHeader]; left || plain.Header["X-Other"][0] != "kept" ||
			r.Header[ControlHeader][0] != header {
			t.Fatalf("the header became %v", plain.Header)
		}
		var kept []string
		for _, p := range Params(query) {
			if !IsControl(p.Name) {
				kept = append(kept, p.Raw)
			}
		}
		expect.Must(t, strings.Join(kept, "&"), plain.RawQuery, "%q", query)
		if err == nil && (c.Threshold < 0 || c.Threshold > 1 || c.Keep < 0 || c.Keep > rule.MaxKeep || c.Window < 0 ||
			c.Threshold != c.Threshold) {
			t.Fatalf("%q %q gave %+v", header, query, c)
		}
		again, same, _ := TakeControls(plain)
		if again != (Controls{}) || same.RawQuery != plain.RawQuery {
			t.Fatalf("%q had more controls: %+v", query, again)
		}
	})
}
