package elastic

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// withoutPoints is a transport to an engine that grants no point in time, and counts those that are asked for.
type withoutPoints struct{ refused int }

func (w *withoutPoints) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/_pit") || strings.HasSuffix(r.URL.Path, "/point_in_time") {
		w.refused++
		body := `{"error":{"type":"security_exception","reason":"no permissions"},"status":403}`
		return &http.Response{StatusCode: 403, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// jobsRule is a rule that stores all fields of ours.
func jobsRule(t *testing.T, match string) *rule.Rule {
	r := *adaptertest.Rules(t)[0]
	r.Match, r.Clusters = match, true
	r.Bands, r.Rows = rule.ChooseBands(r.Sketcher.Scheme().Positions, r.Profile.Threshold)
	return &r
}

// store opens a store under a rule with all fields of ours for the test's indices.
func (l *larder) store(transport http.RoundTripper) *Store {
	l.t.Helper()
	u := expect.Value(url.Parse(l.url))(l.t)
	s, _ := Dialect{}.Open(transport, []*url.URL{u}, rule.Rules{jobsRule(l.t, l.name+"*")})(nil, "").(*Store)
	return s
}

// numbered stores n documents of a number each.
func (l *larder) numbered(index string, n int) {
	l.t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"%d\"}\n", i, i)
	}
	l.must("POST", "/"+index+"/_bulk?refresh=true", lines.String())
}

// idsIn returns the ids of what is selected, in their order, and where the reading goes on; first is called at the first page.
func idsIn(t *testing.T, s *Store, index string, selected adapters.Selection, first func()) (ids []string, after string) {
	t.Helper()
	after = selected.After
	err := s.Scan(t.Context(), index, s.rules[0], selected, func(p adapters.Page) error {
		if len(ids) == 0 && first != nil {
			first()
		}
		for _, d := range p.Documents {
			ids = append(ids, d.ID)
		}
		after = p.After
		return nil
	})
	if err != nil {
		t.Errorf("%+v: %v", selected, err)
	}
	slices.Sort(ids)
	return ids, after
}

// TestRealScanWithoutPoints reads an index of several shards where no point in time is granted, whole, in parts, and on from a mark; and one
// that never had a document nor a mapping, in which engines do not know even their own fields.
func TestRealScanWithoutPoints(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, blank, transport := l.name+"0", l.name+"1", &withoutPoints{}
		s := l.store(transport)
		l.create(index, `"title":{"type":"text"}`, 3)
		l.numbered(index, 700)
		names, _, err := s.Split(t.Context(), index, "", 4)
		if err != nil || len(names) < 2 {
			t.Fatal(names, err)
		}
		for _, parts := range [][]string{{""}, names} {
			var all []string
			for _, part := range parts {
				ids, after := idsIn(t, s, index, adapters.Selection{Part: part}, nil)
				all = append(all, ids...)
				if behind, _ := idsIn(t, s, index, adapters.Selection{Part: part, After: after}, nil); len(behind) > 0 {
					t.Errorf("behind %s of %q comes %s", after, part, behind)
				}
			}
			slices.Sort(all)
			if whole := len(slices.Compact(slices.Clone(all))); len(all) != 700 || whole != 700 {
				t.Errorf("%q: %d documents, %d of them different", parts, len(all), whole)
			}
		}
		if transport.refused == 0 {
			t.Error("no point in time was asked for")
		}
		l.drop(blank)
		l.must("PUT", "/"+blank, `{"settings":{"number_of_replicas":0}}`)
		for _, s := range []*Store{s, l.store(http.DefaultTransport)} {
			parts, _, err := s.Split(t.Context(), blank, "", 3)
			if err != nil || len(parts) != 1 {
				t.Fatal(parts, err)
			}
			for _, selected := range []adapters.Selection{
				{}, {Part: parts[0], After: "7"}, {Random: true, Limit: 5}, {Bands: []int64{1}, Brief: true, Limit: 10},
			} {
				if ids, _ := idsIn(t, s, blank, selected, nil); len(ids) > 0 {
					t.Errorf("%+v: %q", selected, ids)
				}
			}
		}
	})
}

// TestRealSample draws more documents than one search finds: each once, and all where no number is given.
func TestRealSample(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, s := l.name+"0", l.store(http.DefaultTransport)
		l.create(index, `"title":{"type":"text"}`, 3)
		l.numbered(index, maxResultWindow+300)
		for limit, want := range map[int]int{0: maxResultWindow + 300, maxResultWindow + 100: maxResultWindow + 100} {
			ids, _ := idsIn(t, s, index, adapters.Selection{Random: true, Limit: limit}, nil)
			if whole := len(slices.Compact(slices.Clone(ids))); len(ids) != want || whole != want {
				t.Errorf("%d documents of %d, %d of them different", len(ids), want, whole)
			}
		}
	})
}

// TestRealOpenPart writes every document again once the first page of the open part is there: none of it is read in the same
// scan, on whichever shard it lies, and all of it behind the scan's end.
func TestRealOpenPart(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, s := l.name+"0", l.store(http.DefaultTransport)
		l.create(index, `"title":{"type":"text"}`, 3)
		l.numbered(index, 60)
		names, _, err := s.Split(t.Context(), index, "", 1)
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		first := func() { l.numbered(index, 60) }
		before, after := idsIn(t, s, index, adapters.Selection{Part: names[0]}, first)
		later, _ := idsIn(t, s, index, adapters.Selection{Part: names[0], After: after}, nil)
		for _, ids := range [][]string{before, later} {
			if whole := len(slices.Compact(slices.Clone(ids))); len(ids) != 60 || whole != 60 {
				t.Errorf("%d documents, %d of them different", len(ids), whole)
			}
		}
	})
}

// TestRealLargeDocuments reads documents of a megabyte behind many small ones: no reply holds more of them than is meant.
func TestRealLargeDocuments(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, s := l.name+"0", l.store(http.DefaultTransport)
		l.drop(index)
		l.must("PUT", "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
		l.numbered(index, 1500)
		large := "{\"index\":{}}\n" + `{"title":"` + strings.Repeat("words ", 1<<20/6) + `"}` + "\n"
		for range 4 {
			l.must("POST", "/"+index+"/_bulk?refresh=true", strings.Repeat(large, 9))
		}
		seen, most := 0, 0
		err := s.Scan(t.Context(), index, nil, adapters.Selection{}, func(p adapters.Page) error {
			length := 0
			for _, d := range p.Documents {
				length += len(d.Source)
			}
			seen, most = seen+len(p.Documents), max(most, length)
			return nil
		})
		if err != nil || seen != 1536 || most > scanLimit {
			t.Errorf("%d documents, at most %d bytes of them at once: %v", seen, most, err)
		}
	})
}

// TestRealLines patches documents that were stored in several lines: each byte of them stays.
func TestRealLines(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		index, s := l.name+"0", l.store(http.DefaultTransport)
		l.create(index, `"title":{"type":"text"}`, 2)
		if list, err := s.Prepare(t.Context(), index, false); err != nil || !list[0].Ready {
			t.Fatal(list, err)
		}
		want := map[string]string{} // by what stands behind /_doc/ and /_source/
		for i := range 30 {
			path := fmt.Sprintf("%s?routing=r%d", url.PathEscape(fmt.Sprintf("a/b c+%d", i)), i%3)
			want[path] = fmt.Sprintf("{\r\n  \"title\" : \"one two %d\" ,\n\t\"n\":1\n}", i)
			l.must("PUT", "/"+index+"/_doc/"+path, want[path])
		}
		l.must("POST", "/"+index+"/_refresh", "")
		matched := s.rules[0]
		wanted := func(document []byte) rule.Ours { o, _ := matched.OursFor(document, "1"); return o }
		for _, ours := range []func([]byte) rule.Ours{wanted, func([]byte) rule.Ours { return rule.Ours{} }} {
			var patches []adapters.Stored
			err := s.Scan(t.Context(), index, nil, adapters.Selection{}, func(p adapters.Page) error {
				for _, d := range p.Documents {
					patches = append(patches, d.With(ours(d.Source)))
				}
				return nil
			})
			if err != nil || len(patches) != len(want) {
				t.Fatalf("%d documents, %v", len(patches), err)
			}
			results, err := s.Patch(t.Context(), index, nil, patches)
			if err != nil || slices.ContainsFunc(results, func(r adapters.Result) bool { return r != adapters.Patched }) {
				t.Fatal(results, err)
			}
			for path, document := range want {
				got := l.must("GET", "/"+index+"/_source/"+path, "")
				bare, err := jsonedit.Cut([]byte(got), rule.Our)
				if stored := rule.OursOf([]byte(got)); err != nil || string(bare) != document || !stored.Equal(ours([]byte(got))) {
					t.Errorf("%q, not %q: %v", got, document, err)
				}
			}
			l.must("POST", "/"+index+"/_refresh", "")
		}
	})
}

// TestRealRemoved declares all fields of ours in templates and indices made from them, and takes that out again: the templates are
// what they were.
func TestRealRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, l *larder) {
		s := l.store(http.DefaultTransport)
		paths := map[string]string{
			"/_index_template/" + l.name + "a": `{"index_patterns":["` + l.name + `-a*"],"priority":900,"template":{"settings":{"index":{"mapping":{` +
				`"total_fields":{"limit":"7"}}}},"mappings":{"properties":{"title":{"type":"text"}}}}}`,
			"/_index_template/" + l.name + "b": `{"index_patterns":["` + l.name + `-b*"],"priority":900}`,
			"/_template/" + l.name + "c": `{"index_patterns":["` + l.name + `-c*"],"order":9,"settings":{"index.mapping.total_fields.limit":"8"},` +
				`"mappings":{"properties":{"title":{"type":"text"}}}}`,
		}
		template := func(path string) (v any) {
			expect.OK(t, json.Unmarshal([]byte(l.must("GET", path, "")), &v))
			return v
		}
		before := map[string]any{}
		for path, body := range paths {
			l.drop(path[1:])
			l.must("PUT", path, body)
			before[path] = template(path)
		}
		list, err := s.Templates(t.Context(), s.rules, false)
		for _, done := range list {
			if strings.HasPrefix(done.Name, l.name) && !done.Ready {
				t.Errorf("%+v", done)
			}
		}
		if err != nil || len(list) < 3 {
			t.Fatal(list, err)
		}
		for _, name := range []string{"-a-000001", "-b-000001", "-c-000001"} {
			index := l.name + name
			l.drop(index)
			l.must("PUT", "/"+index, "")
			made := l.must("GET", "/"+index, "")
			is, err := s.Resolve(t.Context(), index)
			if err != nil || len(is) != 1 || !is[0].Ready || strings.Count(made, markKey) != 3 {
				t.Errorf("%+v, %v: %s", is, err, made)
			}
			for range 2 {
				note, err := s.Remove(t.Context(), index)
				if err != nil || !strings.Contains(note, rule.SketchField+", "+rule.BandsField+", "+rule.ClusterField) {
					t.Errorf("%q, %v", note, err)
				}
			}
			if left := l.must("GET", "/"+index, ""); strings.Contains(left, markKey) {
				t.Errorf("%s", left)
			}
		}
		for path := range paths {
			added := func(p cmp.Path) bool { // by the engine, to any template that is put again
				return strings.Contains(p.GoString(), "modified_date") || strings.Contains(p.GoString(), "composed_of")
			}
			expect.By{cmp.FilterPath(added, cmp.Ignore())}.Same(t, before[path], template(path), "%s", path)
		}
	})
}
