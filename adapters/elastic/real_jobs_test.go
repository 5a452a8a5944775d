package elastic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/engines"
)

// withoutPoints is a transport to an engine that grants no point in time, and counts the scrolls.
type withoutPoints struct{ scrolls int }

func (w *withoutPoints) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/_pit") || strings.HasSuffix(r.URL.Path, "/point_in_time") {
		body := `{"error":{"type":"security_exception","reason":"no permissions"},"status":403}`
		return &http.Response{StatusCode: 403, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}, Request: r}, nil
	}
	if r.URL.Query().Has("scroll") {
		w.scrolls++
	}
	return http.DefaultTransport.RoundTrip(r)
}

// jobsRule is a rule that stores all fields of ours.
func jobsRule(t *testing.T, match string) *adapters.Rule {
	rule := *adaptertest.Rules(t)[0]
	rule.Match, rule.Clusters = match, true
	rule.Bands, rule.Rows = adapters.ChooseBands(rule.Sketcher.Scheme().Positions, rule.Profile.Threshold)
	return &rule
}

// realStore opens a store on a real engine, under a rule with all fields of ours for names that begin with the prefix, and returns
// what sends requests past it.
func realStore(t *testing.T, kind, prefix string, transport http.RoundTripper) (*Store, func(method, path, body string) []byte) {
	u, err := url.Parse(engines.Shared(t, kind).URL)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := Open(transport, []*url.URL{u}, adapters.Rules{jobsRule(t, prefix+"*")})(nil, "").(*Store)
	return s, func(method, path, body string) []byte {
		r, err := http.NewRequest(method, u.String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
}

func eachEngine(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

// TestRealScanByScroll reads an index of several shards where no point in time is granted: whole, in parts, and on from a mark.
func TestRealScanByScroll(t *testing.T) {
	eachEngine(t, func(t *testing.T, kind string) {
		index, transport := fmt.Sprintf("neardup_test_scroll_%d", os.Getpid()), &withoutPoints{}
		s, send := realStore(t, kind, index, transport)
		t.Cleanup(func() { send("DELETE", "/"+index, "") })
		send("PUT", "/"+index, `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`)
		var lines strings.Builder
		for i := range 700 {
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"%d\"}\n", i, i)
		}
		send("POST", "/"+index+"/_bulk", lines.String())
		names, err := Split(t.Context(), s, index, 4)
		if err != nil || len(names) < 2 {
			t.Fatal(names, err)
		}
		for _, parts := range [][]string{{""}, names} {
			seen, marks := map[string]int{}, map[string]string{}
			for _, part := range parts {
				err := s.Scan(t.Context(), index, nil, adapters.Selection{Part: part}, func(p adapters.Page) error {
					for _, d := range p.Documents {
						seen[d.ID]++
					}
					marks[part] = p.After
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range 700 {
				if n := seen[fmt.Sprint(i)]; n != 1 {
					t.Errorf("in %q, document %d comes %d times", parts, i, n)
				}
			}
			for part, mark := range marks {
				err := s.Scan(t.Context(), index, nil, adapters.Selection{Part: part, After: mark}, func(p adapters.Page) error {
					if len(p.Documents) > 0 {
						t.Errorf("behind %s of %q comes %s", mark, part, p.Documents[0].ID)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}
		if transport.scrolls == 0 {
			t.Error("nothing was scrolled")
		}
	})
}

// TestRealLargeDocuments reads and patches documents of a megabyte behind many small ones: no reply holds more of them than is meant.
func TestRealLargeDocuments(t *testing.T) {
	eachEngine(t, func(t *testing.T, kind string) {
		index := fmt.Sprintf("neardup_test_large_%d", os.Getpid())
		s, send := realStore(t, kind, index, http.DefaultTransport)
		t.Cleanup(func() { send("DELETE", "/"+index, "") })
		send("PUT", "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
		var lines strings.Builder
		for i := range 1500 {
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"%d\"}\n", i, i)
		}
		send("POST", "/"+index+"/_bulk", lines.String())
		large := `{"title":"` + strings.Repeat("words ", 1<<20/6) + `"}` + "\n"
		for i := range 4 {
			lines.Reset()
			for j := range 9 {
				fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"large %d\"}}\n%s", 9*i+j, large)
			}
			send("POST", "/"+index+"/_bulk", lines.String())
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
	eachEngine(t, func(t *testing.T, kind string) {
		index := fmt.Sprintf("neardup_test_lines_%d", os.Getpid())
		s, send := realStore(t, kind, index, http.DefaultTransport)
		t.Cleanup(func() { send("DELETE", "/"+index, "") })
		send("PUT", "/"+index, `{"settings":{"number_of_shards":2},"mappings":{"properties":{"title":{"type":"text"}}}}`)
		if list, err := s.Prepare(t.Context(), index, false); err != nil || !list[0].Ready {
			t.Fatal(list, err)
		}
		want := map[string]string{}
		for i := range 30 {
			id := fmt.Sprintf("a/b c+%d", i)
			want[id] = fmt.Sprintf("{\r\n  \"title\" : \"one two %d\" ,\n\t\"n\":1\n}", i)
			send("PUT", "/"+index+"/_doc/"+url.PathEscape(id)+"?routing=r"+fmt.Sprint(i%3), want[id])
		}
		patch := func(ours func([]byte) adapters.Ours) {
			t.Helper()
			var patches []adapters.Patch
			err := s.Scan(t.Context(), index, nil, adapters.Selection{}, func(p adapters.Page) error {
				for _, d := range p.Documents {
					patches = append(patches, adapters.Patch{Stored: d, Ours: ours(d.Source)})
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
		}
		rule := s.rules[0]
		patch(func(document []byte) adapters.Ours { o, _ := rule.Wanted(document, 1); return o })
		for i := range 30 {
			id := fmt.Sprintf("a/b c+%d", i)
			got := send("GET", "/"+index+"/_source/"+url.PathEscape(id)+"?routing=r"+fmt.Sprint(i%3), "")
			bare, err := adapters.Cut(got, adapters.Our)
			if _, right := rule.Wanted(got, 1); err != nil || !right || string(bare) != want[id] {
				t.Errorf("%q, not %q: %v", got, want[id], err)
			}
		}
		patch(func([]byte) adapters.Ours { return adapters.Ours{} })
		for i := range 30 {
			id := fmt.Sprintf("a/b c+%d", i)
			if got := send("GET", "/"+index+"/_source/"+url.PathEscape(id)+"?routing=r"+fmt.Sprint(i%3), ""); string(got) != want[id] {
				t.Errorf("%q is left, not %q", got, want[id])
			}
		}
	})
}

// TestRealRemoved declares all fields of ours in templates and indices made from them, and takes that out again: the templates are
// what they were.
func TestRealRemoved(t *testing.T) {
	eachEngine(t, func(t *testing.T, kind string) {
		prefix := fmt.Sprintf("neardup_test_gone_%d", os.Getpid())
		s, send := realStore(t, kind, prefix, http.DefaultTransport)
		paths := map[string]string{
			"/_index_template/" + prefix + "a": `{"index_patterns":["` + prefix + `-a*"],"priority":900,"template":{"settings":{"index":{"mapping":{` +
				`"total_fields":{"limit":"7"}}}},"mappings":{"properties":{"title":{"type":"text"}}}}}`,
			"/_index_template/" + prefix + "b": `{"index_patterns":["` + prefix + `-b*"],"priority":900}`,
			"/_template/" + prefix + "c": `{"index_patterns":["` + prefix + `-c*"],"order":9,"settings":{"index.mapping.total_fields.limit":"8"},` +
				`"mappings":{"properties":{"title":{"type":"text"}}}}`,
		}
		t.Cleanup(func() {
			for path := range paths {
				send("DELETE", path, "")
			}
			for _, name := range []string{"-a-000001", "-b-000001", "-c-000001"} {
				send("DELETE", "/"+prefix+name, "")
			}
		})
		before := map[string][]byte{}
		for path, body := range paths {
			if reply := send("PUT", path, body); !bytes.Contains(reply, []byte("true")) {
				t.Fatalf("%s", reply)
			}
			before[path] = send("GET", path, "")
		}
		list, err := s.Templates(t.Context(), s.rules, false)
		for _, done := range list {
			if strings.HasPrefix(done.Name, prefix) && !done.Ready {
				t.Errorf("%+v", done)
			}
		}
		if err != nil || len(list) < 3 {
			t.Fatal(list, err)
		}
		for _, name := range []string{"-a-000001", "-b-000001", "-c-000001"} {
			index := prefix + name
			send("PUT", "/"+index, "")
			made := send("GET", "/"+index, "")
			is, err := s.Resolve(t.Context(), index)
			if err != nil || len(is) != 1 || !is[0].Ready || bytes.Count(made, []byte(markKey)) != 3 {
				t.Errorf("%+v, %v: %s", is, err, made)
			}
			for range 2 {
				note, err := Remove(t.Context(), s, index)
				if err != nil || !strings.Contains(note, adapters.SketchField+", "+adapters.BandsField+", "+adapters.ClusterField) {
					t.Errorf("%q, %v", note, err)
				}
			}
			if left := send("GET", "/"+index, ""); bytes.Contains(left, []byte(markKey)) {
				t.Errorf("%s", left)
			}
		}
		for path := range paths {
			after := send("GET", path, "")
			var was, is any
			if err := json.Unmarshal(before[path], &was); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(after, &is); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(was, is, cmp.FilterPath(func(p cmp.Path) bool { // what the engine adds to any template that is put again
				return strings.Contains(p.GoString(), "modified_date") || strings.Contains(p.GoString(), "composed_of")
			}, cmp.Ignore())); diff != "" {
				t.Errorf("%s: %s", path, diff)
			}
		}
	})
}
