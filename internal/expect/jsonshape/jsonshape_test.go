package jsonshape

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

type inner struct {
	State string   `json:"state"`
	Notes []string `json:"notes,omitempty"`
}

type outer struct {
	*inner
	Checks []inner         `json:"checks"`
	Grid   [2]float64      `json:"grid"`
	One    *inner          `json:"one"`
	Other  *inner          `json:"other,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	OK     bool            `json:"ok"`
	Hidden int             `json:"-"`
	own    int
}

const lines = `.state                               text
.notes                               list, may be absent
.notes[]                             text
.checks[].state                      text
.checks[].notes                      list, may be absent
.checks[].notes[]                    text
.grid[]                              number
.one                                 object, may be null
.one.state                           text
.one.notes                           list, may be absent
.one.notes[]                         text
.other                               object, may be absent
.other.state                         text
.other.notes                         list, may be absent
.other.notes[]                       text
.raw                                 any JSON, may be absent
.ok                                  true or false
`

func TestOf(t *testing.T) {
	var b strings.Builder
	for _, k := range Of(reflect.TypeFor[outer]()) {
		fmt.Fprintln(&b, k)
	}
	expect.Same(t, lines, b.String(), "the shape")
	parsed, err := Parse(lines)
	if err != nil || !slices.Equal(parsed, Of(reflect.TypeFor[outer]())) {
		t.Errorf("%v, %v", parsed, err)
	}
	explained := Key{Path: "cut", Is: truth, Absent: true, Means: "it ended early: see --max"}
	if parsed, err := Parse(explained.String() + "\n"); err != nil || !slices.Equal(parsed, []Key{explained}) {
		t.Errorf("%+v, %v", parsed, err)
	}
	for _, wrong := range []string{".state\n", "state text\n"} {
		if _, err := Parse(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}

func TestCheck(t *testing.T) {
	keys := Of(reflect.TypeFor[outer]())
	full := expect.Value(json.Marshal(outer{
		inner: &inner{"a", []string{"b"}}, Checks: []inner{{"c", nil}}, One: &inner{State: "d"}, Other: &inner{}, Raw: json.RawMessage(`{"x":[1]}`), own: 1,
	}))(t)
	const least = `{"state":"a","checks":[],"grid":[1,2],"one":null,"ok":true}`
	for text, want := range map[string]string{
		string(full): "",
		least:        "",
		strings.Replace(least, `"ok":true`, `"ok":1`, 1):                          "ok is number (1), and no such key is known",
		strings.Replace(least, `,"ok":true`, ``, 1):                               "ok is not there",
		strings.Replace(least, `"checks":[]`, `"checks":[{}]`, 1):                 "checks[].state is not there",
		strings.Replace(least, `"checks":[]`, `"checks":null`, 1):                 "checks is null",
		strings.Replace(least, `"checks":[]`, `"checks":[{"state":"","x":1}]`, 1): "checks[].x is number (1), and no such key is known",
		strings.Replace(least, `"one":null`, `"one":{"state":2}`, 1):              "one.state is number (2), and no such key is known",
		"[": "unexpected EOF",
	} {
		if got := fmt.Sprint(Check(keys, []byte(text))); got != want && (got != "<nil>" || want != "") {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
