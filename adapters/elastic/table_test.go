package elastic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
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

// realSketches are as the sidecar stores them.
var realSketches = func() (list []string) {
	sketcher, _ := sketch.New(sketch.DefaultScheme())
	for _, text := range []string{"one text that is sketched", "another one is sketched here", "and the third of these texts"} {
		var s sketch.Sketch
		sketcher.SketchBytesInto(&s, []byte(text))
		list = append(list, s.String())
	}
	return list
}()

// grid is a table of random size and cells. Some of its columns are ours.
type grid struct {
	names []string
	cells [][]any // by row
}

func randomGrid(r *rand.Rand) grid {
	texts := []any{"x", "a, b", "a\tb", "two\nlines", "Dear Sir,\nplease call", "\n\nthree|\nlines\n", `say "hi"`, `"unpaired`, `pair"`, "\"two\nlines, unpaired", "\"plain\nlines", `"`, `",x`, `"|x`, "ends\\", "\U0001F600 face", "é|ü", "[1,2]", "", nil, 7, 1.5, true, []any{"a", nil}}
	g := grid{}
	for i := range 1 + r.IntN(6) {
		name := []string{rule.SketchField, rule.BandsField, rule.ClusterField}[r.IntN(3)]
		if r.IntN(2) == 0 {
			name = []string{"c", "a \"b\",", "neardup", "é"}[r.IntN(4)] + strconv.Itoa(i)
		}
		g.names = append(g.names, name)
	}
	for range r.IntN(9) {
		var row []any
		for _, name := range g.names {
			cell := texts[r.IntN(len(texts))]
			switch name {
			case rule.SketchField:
				cell = []any{nil, realSketches[0], realSketches[1], realSketches[2]}[r.IntN(4)]
			case rule.BandsField:
				cell = []any{nil, 5, []any{1, -2}}[r.IntN(3)]
			case rule.ClusterField:
				cell = []any{nil, "_abc0123456789def"}[r.IntN(2)]
			}
			row = append(row, cell)
		}
		g.cells = append(g.cells, row)
	}
	return g
}

// less returns the table without our columns.
func (g grid) less() grid {
	var out grid
	keep := func(i int) bool { return !rule.Our(g.names[i]) }
	for i, name := range g.names {
		if keep(i) {
			out.names = append(out.names, name)
		}
	}
	for _, row := range g.cells {
		var left []any
		for i, cell := range row {
			if keep(i) {
				left = append(left, cell)
			}
		}
		out.cells = append(out.cells, left)
	}
	return out
}

// json returns the table with its columns and cells below the keys.
func (g grid) json(pretty, sideways bool, columns, cells, cursor string) string {
	list, values := []any{}, make([]any, 0)
	for i, name := range g.names {
		kind := map[string]string{rule.SketchField: "unsupported", rule.BandsField: "long", rule.ClusterField: "keyword"}[name]
		if slices.ContainsFunc(g.cells, func(row []any) bool { return kind == "unsupported" && row[i] != nil }) {
			kind = "binary" // SQL's
		}
		list = append(list, pairs{{"name", name}, {"type", cmp.Or(kind, "text")}})
		if sideways {
			column := []any{}
			for _, row := range g.cells {
				column = append(column, row[i])
			}
			values = append(values, column)
		}
	}
	for _, row := range g.cells {
		if !sideways {
			values = append(values, append([]any{}, row...))
		}
	}
	reply := pairs{{"took", 5}}
	if columns != "" {
		reply = append(reply, pair{columns, list})
	}
	reply = append(reply, pair{cells, values})
	if cursor != "" {
		reply = append(reply, pair{"cursor", cursor})
	}
	text := jsonOf(nil, reply)
	if pretty {
		var out bytes.Buffer
		_ = json.Indent(&out, text, "", "  ")
		return out.String()
	}
	return string(text)
}

// text prints a cell as the engines do in text.
func textOf(cell any) string {
	if cell == nil {
		return ""
	}
	return fmt.Sprint(cell)
}

// lines prints the table in lines, as quote prints a text.
func (g grid) lines(separator, end string, quote func(string) string) string {
	var out strings.Builder
	print := func(row []string) {
		for i, cell := range row {
			row[i] = quote(cell)
		}
		out.WriteString(strings.Join(row, separator) + end)
	}
	print(slices.Clone(g.names))
	for _, row := range g.cells {
		var line []string
		for _, cell := range row {
			line = append(line, textOf(cell))
		}
		print(line)
	}
	return out.String()
}

// aligned prints the table as Elasticsearch's TextFormatter does.
func (g grid) aligned() string {
	length := func(s string) int { return len(utf16.Encode([]rune(s))) }
	widths := make([]int, len(g.names))
	for i, name := range g.names {
		widths[i] = max(15, length(name))
		for _, row := range g.cells {
			widths[i] = max(widths[i], length(textOf(row[i])))
		}
	}
	spaces := func(n int) string { return strings.Repeat(" ", n) }
	var header, dashes, rows []string
	for i, name := range g.names {
		before := (widths[i] - length(name)) / 2
		header = append(header, spaces(before)+name+spaces(widths[i]-length(name)-before))
		dashes = append(dashes, strings.Repeat("-", widths[i]))
	}
	for _, row := range g.cells {
		var line []string
		for i, cell := range row {
			line = append(line, textOf(cell)+spaces(widths[i]-length(textOf(cell))))
		}
		rows = append(rows, strings.Join(line, "|")+"\n")
	}
	return strings.Join(header, "|") + "\n" + strings.Join(dashes, "+") + "\n" + strings.Join(rows, "")
}

// cleanedTable returns what is left of a reply, which is read whole and byte by byte.
func cleanedTable(t *testing.T, c adapters.Class, reply string) string {
	t.Helper()
	var got, slow bytes.Buffer
	expect.OK(t, Dialect{}.CleanReply(c, &got, strings.NewReader(reply)))
	expect.OK(t, Dialect{}.CleanReply(c, &slow, iotest.OneByteReader(strings.NewReader(reply))))
	expect.Must(t, got.String(), slow.String(), "read byte by byte: %s", reply)
	return got.String()
}

// TestTablesAtRandom holds tables of random size, in all formats, to the same without our columns.
func TestTablesAtRandom(t *testing.T) {
	seed := effort.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	asked := func(path, body string) adapters.Class {
		c := Dialect{}.Classify(&adapters.Request{Method: "POST", Path: path})
		c, _ = Dialect{}.ReadBody(c, []byte(body))
		return c
	}
	quoted := func(s string) string {
		if strings.ContainsAny(s, ",\"\r\n") {
			return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
		}
		return s
	}
	escaped := strings.NewReplacer("\t", `\t`, "\n", `\n`).Replace
	flat, clean := 0, 0 // tables of OpenSearch with cells in quotes, and those of them that lose all of ours
	for range effort.Rounds(3000) {
		g := randomGrid(r)
		less, pretty, cut := g.less(), r.IntN(2) == 0, len(g.less().names) < len(g.names)
		if len(less.names) == 0 { // no engine prints such a table in text
			continue
		}
		for _, sideways := range []bool{false, true} {
			c := asked("/_query", fmt.Sprintf(`{"query":"FROM news-1","columnar":%t}`, sideways))
			if sideways && len(g.cells) == 0 {
				continue
			}
			reply, want := g.json(pretty, sideways, "columns", "values", ""), less.json(pretty, sideways, "columns", "values", "")
			expect.Must(t, want, cleanedTable(t, c, reply), "ES|QL, sideways %t: %s", sideways, reply)
			checkPackedReply(t, Dialect{}, c, reply, want)
			c.Form = formTable // as of a poll, whose request does not say which way up it is
			if got := cleanedTable(t, c, reply); got != want && (got != reply || len(g.cells) != len(g.names)) {
				t.Fatalf("ES|QL, sideways %t, not known: %s of %s", sideways, got, reply)
			}
			key, cursor := map[bool]string{false: "rows", true: "values"}[sideways], "c2Vj"
			if cut {
				cursor += placesOf(oursOf(g))
			}
			reply, want = g.json(pretty, sideways, "columns", key, "c2Vj"), less.json(pretty, sideways, "columns", key, cursor)
			expect.Must(t, want, cleanedTable(t, asked("/_sql", `{"query":"SELECT * FROM a"}`), reply), "SQL: %s", reply)
			next := asked("/_sql", `{"cursor":"`+cursor+`"}`)
			reply, want = g.json(pretty, sideways, "", key, "c3c="), less.json(pretty, sideways, "", key, strings.Replace(cursor, "c2Vj", "c3c=", 1))
			expect.Must(t, want, cleanedTable(t, next, reply), "SQL, the next page: %s", reply)
		}
		reply := g.json(pretty, false, "schema", "datarows", "")
		expect.Must(t, less.json(pretty, false, "schema", "datarows", ""), cleanedTable(t, asked("/_plugins/_ppl", `{"query":"source=a"}`), reply), "PPL: %s", reply)

		if quotes, whole := checkFlatTable(t, g); cut {
			flat, clean = flat+quotes, clean+whole
		}
		c := asked("/_query", `{"query":"FROM a"}`)
		for kind, of := range map[string]func(grid) string{
			"text/csv; charset=utf-8; header=present":  func(g grid) string { return g.lines(",", "\r\n", quoted) },
			"text/tab-separated-values; charset=utf-8": func(g grid) string { return g.lines("\t", "\n", escaped) },
			"text/plain; charset=utf-8":                func(g grid) string { return g.aligned() },
		} {
			c.ReplyHeader = adapters.Header{"Content-Type": {kind}}
			expect.Must(t, of(less), cleanedTable(t, c, of(g)), "%s: %q", kind, of(g))
		}
	}
	if flat == 0 || clean*100 < flat*95 {
		t.Errorf("%d of %d tables lose all of ours", clean, flat)
	}
}

// checkFlatTable holds a table as OpenSearch prints it to the same without our columns. Where cells begin with a quote, rows may keep
// cells of ours. None may lose anything else. It returns how many tables have cells in quotes and no text that begins with one, and how many of
// these lose all of ours.
func checkFlatTable(t *testing.T, g grid) (quotes, whole int) {
	t.Helper()
	for _, c := range []struct{ params, separator string }{{"format=csv", ","}, {"format=raw", "|"}} {
		plain, ordinary := true, true
		quote := func(s string) string {
			ordinary = ordinary && !strings.HasPrefix(s, `"`)
			plain = plain && !strings.HasPrefix(s, `"`) && !strings.Contains(s, c.separator)
			if strings.Contains(s, c.separator) {
				return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
			}
			return s
		}
		class := adapters.Class{Kind: adapters.KindRead, Form: formSQL, Params: adapters.Params(c.params), ReplyHeader: adapters.Header{"Content-Type": {"plain/text; charset=UTF-8"}}}
		reply, want := strings.TrimSuffix(g.lines(c.separator, "\n", quote), "\n"), strings.TrimSuffix(g.less().lines(c.separator, "\n", quote), "\n")
		got := cleanedTable(t, class, reply)
		if plain {
			expect.Must(t, want, got, "%s: %q", c.params, reply)
		} else if ordinary {
			if quotes++; got == want {
				whole++
			}
		}
		ends := []int{0} // of the rows in got
		for i := -1; i < len(g.cells); i++ {
			var reached []int
			for kept := range 1 << len(g.names) { // of our columns
				var row grid
				for j, name := range g.names {
					if i >= 0 {
						name = textOf(g.cells[i][j])
					}
					if !rule.Our(g.names[j]) || kept>>j&1 == 1 {
						row.names = append(row.names, name)
					}
				}
				line := row.lines(c.separator, "\n", quote)
				if i == len(g.cells)-1 {
					line = strings.TrimSuffix(line, "\n")
				}
				for _, end := range ends {
					if strings.HasPrefix(got[end:], line) {
						reached = append(reached, end+len(line))
					}
				}
			}
			slices.Sort(reached)
			ends = slices.Compact(reached)
		}
		if !slices.Contains(ends, len(got)) {
			t.Fatalf("%s: %q of %q", c.params, got, reply)
		}
	}
	return quotes, whole
}

// TestTablesStream cuts a table that is longer than what is held, in each format.
func TestTablesStream(t *testing.T) {
	for name, c := range map[string]struct{ kind, form, head, row, want, wantRow, end string }{
		"rows":    {"application/json", formTable, `{"columns":[{"name":"neardup_sketch"},{"name":"b"}],"values":[[null,0]`, `,[null,1]`, `{"columns":[{"name":"b"}],"values":[[0]`, `,[1]`, `]}`},
		"columns": {"application/json", formColumns, `{"columns":[{"name":"b"},{"name":"neardup_sketch"}],"values":[[0`, `,1`, `{"columns":[{"name":"b"}],"values":[[0`, `,1`, `],[null]]}`},
		"csv":     {"text/csv", formTable, "neardup_sketch,b\r\n", ",1\r\n", "b\r\n", "1\r\n", ""},
		"txt":     {"text/plain", formTable, "neardup_sketch|b\n--------------+-\n", "              |1\n", "b\n-\n", "1\n", ""},
	} {
		const rows = 1 << 19
		class := adapters.Class{Kind: adapters.KindRead, Form: c.form, ReplyHeader: adapters.Header{"Content-Type": {c.kind}}}
		reply := c.head + strings.Repeat(c.row, rows) + c.end
		var got bytes.Buffer
		last := readerFunc(func([]byte) (int, error) { // it is asked for when all before it was read
			if got.Len() == 0 {
				t.Errorf("%s: nothing is written before all is read", name)
			}
			return 0, io.EOF
		})
		expect.OK(t, Dialect{}.CleanReply(class, &got, io.MultiReader(strings.NewReader(reply), last)))
		end := strings.Replace(c.end, ",[null]", "", 1)
		if want := c.want + strings.Repeat(c.wantRow, rows) + end; got.String() != want {
			t.Errorf("%s: %d bytes that begin with %.90q, want %d", name, got.Len(), got.String(), len(want))
		}
	}
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestTablesInText has replies in text that are no table, or whose rows can't be read.
func TestTablesInText(t *testing.T) {
	for _, c := range []struct{ kind, params, reply, want string }{
		{"text/csv", "", "a,neardup_sketch\nx\ny,z\n", "a\nx\ny\n"},           // a row is too short
		{"text/csv", "", "a,neardup_sketch\nx,\"y\nz,w\n", "a\nx,\"y\nz,w\n"}, // quotes are not closed
		{"text/csv", "delimiter=;", "a;neardup_sketch\n\"x;\";y", "a\n\"x;\""},
		{"text/csv", "", "1,2\n3,4\n", "1,2\n3,4\n"}, // without a header
		{"text/csv; header=absent", "", "neardup_sketch,keyword\ntitle,text\n", "neardup_sketch,keyword\ntitle,text\n"},
		{"text/csv", "delimiter=%C2%A7", "a§neardup_sketch§b\np,q§S§\"b§c\"\n", "a§b\np,q§\"b§c\"\n"},
		{"plain/text; charset=UTF-8", "format=csv", "a,neardup_sketch\nsay \"hi\",S1\n", "a\nsay \"hi\"\n"},
		{"text/plain", "format=raw", "neardup_bands|a|neardup_sketch\n1|\"x|y\"|S1\n", "a\n\"x|y\"\n"},
		{"text/plain", "format=raw&pretty", "neardup_cluster  |a          |neardup_sketch\n_abc0123456789def|\"x|y|\"\"z\"  |AQ==          ", "a          \n\"x|y|\"\"z\"  "},
		{"plain/text", "format=csv", "a,neardup_sketch,b\n\"p,S1,b1\na2,S2,\"c,d\"\n", "a,b\n\"p,b1\na2,\"c,d\"\n"},
		{"plain/text", "format=csv", "a,neardup_sketch,b\np,S1,q\n\"p,S1,b1\nx\",S2,b2\ny,S1,z", "a,b\np,q\n\"p,S1,b1\nx\",b2\ny,z"}, // or one row
		{"plain/text", "format=csv", "id,body,neardup_sketch\n1,\"Dear Sir,\nplease call\",S1\n2,x,S2", "id,body\n1,\"Dear Sir,\nplease call\"\n2,x"},
		{"plain/text", "format=csv", "id,neardup_sketch,body\n1,S1,\"Dear Sir,\nplease\"\n2,S2,two\n\"lines\"", "id,body\n1,\"Dear Sir,\nplease\"\n2,two\n\"lines\""},
		{"plain/text", "format=csv", "a,neardup_sketch\ntwo\nlines,S1\nx,not ours\ny,S2\n", "a\ntwo\nlines\nx,not ours\ny,S2\n"}, // a column of the client
		{"plain/text", "format=csv", "a,neardup_sketch,b\n\"p,q\nr\",S1,b1\n", "a,b\n\"p,q\nr\",b1\n"},
		{"text/plain", "format=txt", "neardup_sketch\nno dashes\n", "neardup_sketch\nno dashes\n"},
		{"text/plain", "format=txt", "a|neardup_sketch\n-+--------------\nx|              \nshort\n", "a\n-\nx\nshort\n"},
		{"text/plain", "", "", ""},
	} {
		for i, name := range []string{"S1", "S2"} {
			c.reply, c.want = strings.ReplaceAll(c.reply, name, realSketches[i]), strings.ReplaceAll(c.want, name, realSketches[i])
		}
		class := adapters.Class{Kind: adapters.KindRead, Form: formSQL, Params: adapters.Params(c.params), ReplyHeader: adapters.Header{"Content-Type": {c.kind}}}
		expect.Same(t, c.want, cleanedTable(t, class, c.reply), "%+v", c)
		class.ReplyHeader["Cursor"] = []string{"abc"}
		expect.Same(t, c.reply, cleanedTable(t, class, c.reply), "of several pages: %+v", c)
	}
}

// TestColumnar reads which way up a table of ES|QL is from its request.
func TestColumnar(t *testing.T) {
	for columnar, want := range map[string]string{
		"true": formColumns, `"true"`: formColumns, "false": formRows, `"false"`: formRows, `"yes"`: formTable, "1": formTable,
	} {
		class, _ := Dialect{}.ReadBody(adapters.Class{Form: formTable}, []byte(`{"query":"FROM a","columnar":`+columnar+`}`))
		expect.Same(t, want, class.Form, "%s", columnar)
	}
}

// TestQueriesRead says which indices a query reads.
func TestQueriesRead(t *testing.T) {
	for query, want := range map[string]string{
		"FROM news-1": "news-1", "from news-1, news-* METADATA _id | LIMIT 3": "news-1,news-*", "FROM news-1\n| WHERE a == 1": "news-1",
		`FROM "news-1" | KEEP a`: "news-1", `FROM elsewhere:news-1`: "elsewhere:news-1", "SELECT * FROM news-1 WHERE a = 1": "news-1",
		"SELECT * FROM `news-1`,b": "news-1,b", "source=news-1 | fields a": "news-1", "search source = news-1 | head 5": "news-1",
		"ROW a = 1": "", "FROM a | LOOKUP JOIN b ON c": "", "SELECT * FROM a JOIN b": "", "FROM a | ENRICH p": "", "FROM a, (FROM b)": "", "SHOW TABLES": "",
	} {
		class, body := Dialect{}.ReadBody(adapters.Class{Form: formTable}, jsonOf(nil, pairs{{"query", query}}))
		expect.Same(t, adapters.Class{Form: formRows, Target: want}, class, "%s", query)
		expect.Same(t, string(jsonOf(nil, pairs{{"query", query}})), string(body), "")
	}
}

// FuzzTables reads replies of any form: pieces make no difference, and what has no name of ours passes as it is.
func FuzzTables(f *testing.F) {
	kinds := []string{"application/json", "text/csv", "text/tab-separated-values", "text/plain", "plain/text"}
	for i, reply := range []string{`{"columns":[{"name":"neardup_sketch"},{"name":"a"}],"values":[[1,2],[3,4]],"cursor":"x"}`, "a,neardup_sketch\r\n\"x\",y\r\n", "neardup_bands\ta\n1\t2\n",
		"neardup_sketch| a \n--------------+---\nx             |é  \n", "neardup_bands,a\n\"1,2\",\"3\nx,4\"\n"} {
		f.Add(reply, uint8(i), uint8(i))
	}
	f.Fuzz(func(t *testing.T, reply string, kind, form uint8) {
		class := adapters.Class{
			Kind: adapters.KindRead, Form: []string{formTable, formRows, formColumns, formSQL}[form%4], ReplyHeader: adapters.Header{"Content-Type": {kinds[kind%5]}},
		}
		if kind%5 == 4 {
			class.Params = adapters.Params("format=csv")
		}
		got := cleanedTable(t, class, reply)
		if len(got) > len(reply)+8 || !strings.Contains(reply, rule.FieldPrefix) && !strings.Contains(reply, `\`) && got != reply {
			t.Errorf("%q of %q", got, reply)
		}
	})
}

// oursOf returns the places of our columns.
func oursOf(g grid) (ours []int) {
	for i, name := range g.names {
		if rule.Our(name) {
			ours = append(ours, i)
		}
	}
	return ours
}
