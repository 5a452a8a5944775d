package elastic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestTables cuts our columns out of what ES|QL answers, in the form that its manual shows.
func TestTables(t *testing.T) {
	const (
		a, b   = `{"name":"a","type":"text"}`, `{"name":"b","type":"long"}`
		sketch = `{"name":"neardup_sketch","type":"unsupported","original_types":["binary"]}`
		bands  = `{"name":"neardup_bands","type":"long"}`
	)
	for name, c := range map[string]struct{ reply, want string }{
		"rows": {
			`{"took":28,"is_partial":false,"columns":[` + a + `,` + sketch + `,` + b + `],"values":[["x",null,1],["y",null,2]],"profile":{}}`,
			`{"took":28,"is_partial":false,"columns":[` + a + `,` + b + `],"values":[["x",1],["y",2]],"profile":{}}`,
		},
		"pretty, ours first and last": {
			"{\n  \"columns\" : [\n    " + bands + ",\n    " + a + ",\n    " + sketch + "\n  ],\n  \"values\" : [\n    [\n      [1, 2],\n      \"x\",\n      null\n    ]\n  ]\n}\n",
			"{\n  \"columns\" : [\n    " + a + "\n  ],\n  \"values\" : [\n    [\n      \"x\"\n    ]\n  ]\n}\n",
		},
		"on its side":      {`{"columns":[` + a + `,` + sketch + `],"values":[["x","y","z"],[null,null,null]]}`, `{"columns":[` + a + `],"values":[["x","y","z"]]}`},
		"square":           {`{"columns":[` + a + `,` + sketch + `],"values":[["x",null],["y",null]]}`, `{"columns":[` + a + `],"values":[["x"],["y"]]}`},
		"square, its side": {`{"columns":[` + a + `,` + sketch + `],"values":[["x","y"],[null,null]]}`, `{"columns":[` + a + `],"values":[["x","y"]]}`},
		"square, either":   {`{"columns":[` + a + `,` + sketch + `],"values":[["x",null],[null,null]]}`, ""},
		"no rows":          {`{"columns":[` + a + `,` + sketch + `],"values":[]}`, `{"columns":[` + a + `],"values":[]}`},
		"empty columns left out": {
			`{"all_columns":[` + a + `,` + sketch + `],"columns":[` + a + `],"values":[["x"]]}`, `{"all_columns":[` + a + `],"columns":[` + a + `],"values":[["x"]]}`,
		},
		"documents": {
			`{"columns":[{"name":"_source","type":"_source"}],"values":[[{"a":"x","neardup_sketch":"AQ=="}],[{"a":"y"}]]}`,
			`{"columns":[{"name":"_source","type":"_source"}],"values":[[{"a":"x"}],[{"a":"y"}]]}`,
		},
		"only ours":   {`{"columns":[` + sketch + `],"values":[[null],[null]]}`, `{"columns":[],"values":[[],[]]}`},
		"still runs":  {`{"id":"x","is_running":true}`, ""},
		"an error":    {`{"error":{"reason":"neardup_sketch"},"status":400}`, ""},
		"ragged":      {`{"columns":[` + a + `,` + sketch + `],"values":[["x",null],["y"],["z",null]]}`, ""},
		"text":        {"a,neardup_sketch\nx,\n", ""},
		"broken off":  {`{"columns":[` + a + `,` + sketch + `],"values":[["x"`, ""},
		"a long one":  {`{"columns":[` + sketch + `],"values":[[null]],"x":"` + strings.Repeat("x", maxTable) + `"}`, ""},
		"other names": {`{"columns":[` + a + `],"values":[["neardup_sketch"]]}`, ""},
	} {
		if c.want == "" {
			c.want = c.reply
		}
		for _, request := range []adapters.Request{{Method: "POST", Path: "/_query"}, {Method: "POST", Path: "/_query/async"}, {Method: "GET", Path: "/_query/async/id"}} {
			class := (Dialect{}).Classify(&request)
			expect.Must(t, adapters.KindRead, class.Kind, "%s", request.Path)
			var got strings.Builder
			expect.OK(t, (Dialect{}).CleanReply(class, &got, strings.NewReader(c.reply)))
			expect.Same(t, c.want, got.String(), "%s", name)
		}
	}
}

// FuzzTables holds tables of random sizes, either way up, against what was cut.
func FuzzTables(f *testing.F) {
	f.Add(uint8(3), uint8(2), uint8(1), false)
	f.Add(uint8(2), uint8(2), uint8(0), true)
	f.Fuzz(func(t *testing.T, columns, rows, ours uint8, sideways bool) {
		width, height := int(columns%7)+1, int(rows%7)
		if width == 1 && height == 1 {
			t.Skip("it may be either way up")
		}
		build := func(skip int) string {
			var names, values []string
			cell := func(column, row int) string {
				if column == int(ours)%width {
					return "null"
				}
				return fmt.Sprintf(`"%d,%d"`, column, row)
			}
			for column := range width {
				if column != skip {
					name := fmt.Sprintf(`{"name":"c%d","type":"text"}`, column)
					if column == int(ours)%width {
						name = `{"name":"neardup_sketch","type":"unsupported"}`
					}
					names = append(names, name)
				}
			}
			outer, inner := height, width
			if sideways {
				outer, inner = width, height
			}
			for i := range outer {
				var list []string
				for j := range inner {
					column, row := j, i
					if sideways {
						column, row = i, j
					}
					if column != skip {
						list = append(list, cell(column, row))
					}
				}
				if !sideways || i != skip {
					values = append(values, "["+strings.Join(list, ",")+"]")
				}
			}
			return `{"columns":[` + strings.Join(names, ",") + `],"values":[` + strings.Join(values, ",") + `]}`
		}
		expect.Same(t, build(int(ours)%width), string(tableOf([]byte(build(-1)))), "%d columns, %d rows, sideways %t", width, height, sideways)
	})
}
