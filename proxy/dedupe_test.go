package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/proxy"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// dedupes starts a sidecar as [shelved] does, with rules for texts.
func dedupes(t testing.TB, s *shelf, change func(*proxy.Engine)) front {
	t.Helper()
	return shelved(t, s, func(e *proxy.Engine) {
		e.Presets = map[string]*rule.Rule{}
		for name, profile := range rerank.Presets() {
			e.Presets[name] = &rule.Rule{Fields: []string{"text"}, Profile: profile, Sketcher: expect.Value(sketch.New(sketch.DefaultScheme()))(t)}
		}
		if change != nil {
			change(e)
		}
	})
}

// long returns a text of that many words. It begins and ends with the number n.
func long(n, words int) string {
	text := fmt.Sprint(n)
	for i := range words {
		text += fmt.Sprintf(" word%d", i*i+n*words)
	}
	return fmt.Sprint(text, " ", n)
}

// TestDedupeAnswers: lists are answered by the sidecar. Only an index and its documents are looked up, with the client's own credentials.
func TestDedupeAnswers(t *testing.T) {
	news := []adapters.Index{{Name: "news-1"}}
	two := fmt.Sprintf(`[%q,%q,%q]`, long(1, 80), long(2, 80), long(1, 80)+" more")
	documents := fmt.Sprintf(`[{"id":7,"text":%q},{"id":"b","text":%q},{"id":{},"text":%[1]q}]`, long(1, 80), long(2, 80))
	many := strings.Repeat(`"a",`, 1000) + `"a"`
	for name, c := range map[string]struct {
		shelf       shelf
		query, sent string
		status      int
		says        string
	}{
		"texts":                 {shelf{}, "", `{"texts":` + two + `}`, 200, `"kept":[0,1],"groups":[{"leader":0,"folded":[{"at":2,"agreement":0.`},
		"equal texts":           {shelf{}, "", `{"texts":["a b","A  b!","a c"]}`, 200, `"kept":[0,2],"groups":[{"leader":0,"folded":[{"at":1,"agreement":1,`},
		"no texts":              {shelf{}, "", `{"texts":[]}`, 200, `"kept":[],"groups":[],"threshold":0.64,"measure":"resemblance"}`},
		"another threshold":     {shelf{}, "?threshold=0.999", `{"texts":` + two + `}`, 200, `"kept":[0,1,2],"groups":[],"threshold":0.999,`},
		"another preset":        {shelf{}, "?preset=safe", `{"texts":` + two + `}`, 200, `"threshold":0.88,`},
		"another measure":       {shelf{}, "?measure=containment", `{"texts":` + two + `}`, 200, `"measure":"containment"`},
		"more of a group":       {shelf{}, "?keep=2", `{"texts":["a b","a b","a b"]}`, 200, `"kept":[0,1],"groups":[{"leader":0,"beside":[1],"folded":[{"at":2,`},
		"documents":             {shelf{}, "", `{"documents":` + documents + `}`, 200, `"kept":[0,1],"groups":[{"leader":0,"folded":[{"at":2,"agreement":1,`},
		"ids are told":          {shelf{}, "", `{"documents":[{"text":"a b"},{"id":"x\u0026","text":"a b"}]}`, 200, `{"at":1,"id":"x`},
		"of an index":           {shelf{indices: news}, "", `{"index":"news-1","documents":[{"title":"a b"},{"title":"a b"},{"text":"a b"}]}`, 200, `"kept":[0],"groups":`},
		"texts of an index":     {shelf{indices: news}, "", `{"texts":["a b","a b"],"index":"news-1"}`, 200, `"kept":[0],`},
		"stored":                {shelf{indices: news}, "", `{"index":"news-1","ids":["0","4","1","none","5","0"]}`, 200, `"kept":[0,1],"groups":[{"leader":0,`},
		"missing":               {shelf{indices: news}, "", `{"index":"news-1","ids":["0","none"]}`, 200, `"missing":["none"],`},
		"stored, not looked up": {shelf{resolves: refusing(403)}, "", `{"index":"news-1","ids":["0","1"]}`, 200, `"kept":[0],`},
		"refused":               {shelf{indices: news, scans: func(context.Context, adapters.Selection) error { return refusing(403) }}, "", `{"index":"news-1","ids":["0","1"]}`, 403, "the engine answered 403"},
		"by nobody":             {shelf{resolves: refusing(401), scans: func(context.Context, adapters.Selection) error { return refusing(401) }}, "", `{"index":"news-1","texts":["a"]}`, 401, "the engine answered 401"},
		"engine fails":          {shelf{indices: news, scans: func(context.Context, adapters.Selection) error { return errors.New("broken") }}, "", `{"index":"news-1","ids":["0"]}`, 502, "can't be reached"},
		"no rule":               {shelf{indices: []adapters.Index{{Name: "other"}}}, "", `{"index":"other","texts":["a"]}`, 400, `index: \"other\" has no rule`},
		"odd index":             {shelf{}, "", `{"index":5,"texts":["a"]}`, 400, "index: must be the name"},
		"index and preset":      {shelf{indices: news}, "?preset=safe", `{"index":"news-1","texts":["a"]}`, 400, "index, preset: both choose a rule"},
		"ids of nothing":        {shelf{}, "", `{"ids":["a"]}`, 400, "index: is missing"},
		"odd id":                {shelf{indices: news}, "", `{"index":"news-1","ids":["a",5]}`, 400, "ids[1]: must be an id"},
		"nothing":               {shelf{}, "", `{}`, 400, "texts: is missing"},
		"no object":             {shelf{}, "", `["a"]`, 400, "no JSON object"},
		"no body":               {shelf{}, "", ``, 400, "no JSON object"},
		"cut off":               {shelf{}, "", `{"texts":["a"`, 400, "no JSON object"},
		"two lists":             {shelf{}, "", `{"texts":["a"],"documents":[]}`, 400, "texts, documents: send one list"},
		"one list twice":        {shelf{}, "", `{"texts":["a"],"texts":[]}`, 400, "texts, texts: send one list"},
		"no list":               {shelf{}, "", `{"texts":"a"}`, 400, "texts: must be a list"},
		"another key":           {shelf{}, "", `{"texts":["a"],"threshold":0.5}`, 400, `\"threshold\" is unknown`},
		"odd text":              {shelf{}, "", `{"texts":["a",null]}`, 400, "texts[1]: must be a text"},
		"odd document":          {shelf{}, "", `{"documents":[[]]}`, 400, "documents[0]: must be an object"},
		"no text":               {shelf{}, "", `{"documents":[{"body":"a"}]}`, 400, "documents[0]: has no text"},
		"too many":              {shelf{}, "", `{"texts":[` + many + `]}`, 400, "texts: has more than 1000 elements"},
		"far too many":          {shelf{}, "", `{"texts":[` + strings.Repeat("0,", 1<<19) + `0]}`, 400, "texts: has more than 1000 elements"},
		"deep":                  {shelf{}, "", `{"texts":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + `}`, 400, ""},
		"deep document":         {shelf{}, "", `{"documents":[{"text":"a","x":` + strings.Repeat(`{"a":`, 1<<18) + `0` + strings.Repeat("}", 1<<18) + `}]}`, 400, ""},
		"no UTF-8":              {shelf{}, "", "{\"texts\":[\"a \xff\"]}", 400, "not UTF-8"},
		"half a character":      {shelf{}, "", `{"texts":["a \ud800 b","a \ud800 b"]}`, 200, `"kept":[0],`},
		"too large":             {shelf{}, "", `{"texts":["` + strings.Repeat("word ", 2<<20) + `"]}`, 413, "larger than"},
		"odd threshold":         {shelf{}, "?threshold=2", `{"texts":[]}`, 400, `threshold: \"2\" is out of range`},
		"a mistyped name":       {shelf{}, "?treshold=0.1", `{"texts":[]}`, 400, `\"treshold\" is an unknown URL parameter: use threshold, keep, measure, preset`},
		"another name":          {shelf{}, "?size=3", `{"texts":[]}`, 400, `\"size\" is an unknown URL parameter`},
		"keys, from a console":  {shelf{}, "?x-typesense-api-key=a&pretty=true&", `{"texts":[]}`, 200, `"kept":[]`},
		"odd keep":              {shelf{}, "?keep=101", `{"texts":[]}`, 400, `keep: \"101\" is out of range: use 1 to 100`},
		"odd measure":           {shelf{}, "?measure=x", `{"texts":[]}`, 400, `measure: \"x\" is unknown`},
		"odd preset":            {shelf{}, "?preset=x", `{"texts":[]}`, 400, `preset: \"x\" is not for texts alone: use default, safe, thorough"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := dedupes(t, &c.shelf, nil)
			got := do(t, "POST", f.url+"/_neardup/dedupe"+c.query, c.sent, "Authorization: key of a client")
			if got.status != c.status || !strings.Contains(got.body, c.says) {
				t.Errorf("%d %.3000s", got.status, got.body)
			}
			for _, asked := range c.shelf.asked {
				expect.Same(t, "key of a client news-1", asked, "who asked")
			}
		})
	}
}

// TestDedupeWithoutEngine: texts need no engine, and no credentials.
func TestDedupeWithoutEngine(t *testing.T) {
	f := dedupes(t, &shelf{resolves: errors.New("down"), scans: func(context.Context, adapters.Selection) error { return errors.New("down") }}, nil)
	f.behind.Close()
	expect.Same(t, 200, do(t, "POST", f.url+"/_neardup/dedupe", `{"texts":["a b","a b"]}`).status, "the engine is down")
	expect.Same(t, http.StatusBadGateway, do(t, "POST", f.url+"/_neardup/dedupe", `{"index":"news-1","texts":["a b","a b"]}`).status, "texts of an index")
	expect.Same(t, http.StatusBadGateway, do(t, "POST", f.url+"/news-1/_search", `{}`).status, "the engine is not down")
}

// TestDedupeAtOnce: as many clients as are allowed are answered rightly, and more are told to wait. Afterwards all room is free again.
func TestDedupeAtOnce(t *testing.T) {
	texts := []string{}
	want := []int{}
	for i := range 1000 {
		if texts = append(texts, long(i/2, 60)); i%2 == 0 {
			want = append(want, i)
		}
	}
	body := expect.Value(json.Marshal(map[string]any{"texts": texts}))(t)
	f := dedupes(t, &shelf{}, func(e *proxy.Engine) { e.Limits.MaxSearches = 2 })
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 3 {
				got, err := try(t, "POST", f.url+"/_neardup/dedupe", strings.NewReader(string(body)))
				switch {
				case err != nil:
					t.Error(err)
				case got.status == http.StatusServiceUnavailable:
					if !strings.Contains(got.body, "reason=busy") {
						t.Error(got.body)
					}
				default:
					var d similar.Deduped
					if err := json.Unmarshal([]byte(got.body), &d); err != nil || !slices.Equal(want, d.Kept) || len(d.Groups) != 500 {
						t.Errorf("%v %d %.500s", err, got.status, got.body)
					}
				}
			}
		})
	}
	wait.Wait()
	expect.Same(t, 200, do(t, "POST", f.url+"/_neardup/dedupe", string(body)).status, "all room is free again")

	little := dedupes(t, &shelf{}, func(e *proxy.Engine) { e.Limits.MaxHeld = 1 << 20 })
	short := func(n int) string { return `{"texts":[` + strings.Repeat(`"a",`, n-1) + `"a"]}` }
	expect.Same(t, 200, do(t, "POST", little.url+"/_neardup/dedupe", short(100)).status, "within the memory of strangers")
	expect.Same(t, 503, do(t, "POST", little.url+"/_neardup/dedupe", short(1000)).status, "beyond it")
}

// TestDedupeSlowReader: who does not read the answer keeps no place from others.
func TestDedupeSlowReader(t *testing.T) {
	f := dedupes(t, &shelf{}, func(e *proxy.Engine) { e.Limits.MaxSearches = 1 })
	slow := expect.Value(net.Dial("tcp", strings.TrimPrefix(f.url, "http://")))(t)
	defer slow.Close()
	expect.OK(t, slow.(*net.TCPConn).SetReadBuffer(4<<10))
	body := `{"documents":[{"text":"a"},{"text":"a","id":"` + strings.Repeat("x", 7<<20) + `"}]}` // more than the kernel takes in advance
	_ = expect.Value(fmt.Fprintf(slow, "POST /_neardup/dedupe HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", len(body), body))(t)
	_ = expect.Value(slow.Read(make([]byte, 1)))(t) // the answer has begun
	expect.Same(t, 200, do(t, "POST", f.url+"/_neardup/dedupe", `{"texts":["a"]}`).status, "the answer to another one")
}

// FuzzDedupe: whatever a body is, the answer is a list of places in it or an error that says why.
func FuzzDedupe(f *testing.F) {
	for _, body := range []string{
		`{"texts":["a b","a b","c"]}`, `{"documents":[{"id":1,"text":"a"},{"text":["a","b"]}]}`, `{"texts":[]}`, `{"index":"news-1","documents":[{"title":"a"},{}]}`,
		`{"index":"news-1","ids":["0","1","x"]}`, `{"texts":["\ud800"]}`, `{"texts":"a"}`, `{"ids":[1]}`, `[]`, `{"texts":["a"]/**/}`,
	} {
		f.Add(body, "")
		f.Add(body, "keep=2&threshold=0.1&preset=safe&measure=containment")
	}
	side := dedupes(f, &shelf{indices: []adapters.Index{{Name: "news-1"}}}, nil)
	f.Fuzz(func(t *testing.T, body, query string) {
		if strings.ContainsFunc(query, func(c rune) bool { return c <= ' ' || c == '#' || c > '~' }) {
			return
		}
		got, err := try(t, "POST", side.url+"/_neardup/dedupe?"+query, strings.NewReader(body))
		if err != nil {
			return // the query is no query
		}
		if got.status >= 400 && got.status < 500 && strings.Contains(got.body, `"reason":"`) {
			return
		}
		var d struct {
			similar.Deduped
			Error any
		}
		if err := json.Unmarshal([]byte(got.body), &d); err != nil || got.status != 200 || d.Kept == nil || d.Error != nil {
			t.Fatalf("%d %.500s %v", got.status, got.body, err)
		}
		at := slices.Clone(d.Kept)
		for _, g := range d.Groups {
			for _, folded := range g.Folded {
				at = append(at, folded.At)
			}
			if !slices.Contains(d.Kept, g.Leader) {
				t.Errorf("%d is a leader and not kept: %s", g.Leader, got.body)
			}
		}
		slices.Sort(at)
		if len(slices.Compact(slices.Clone(at))) != len(at) || !slices.IsSorted(d.Kept) || len(d.Missing) == 0 && len(at) > 0 && at[len(at)-1] != len(at)-1 {
			t.Errorf("%s", got.body)
		}
	})
}
