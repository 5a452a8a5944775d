package adaptertest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// testOperations holds the dialect to telling of each operation of a write, in order, and to leaving out those that are to go
// and nothing else; and, where it says that replies can be taken apart, to putting them together again.
func testOperations(t *testing.T, s Subject) {
	const some = 4
	for _, partial := range []bool{false, true} {
		for n := 1; n <= some; n++ {
			documents := make([]string, n)
			for i := range documents {
				documents[i] = fmt.Sprintf(`{"title":"document %d","id":"i%d"}`, i, i)
			}
			r := s.Write("news-1", partial, documents...)
			if r == nil {
				continue
			}
			what := fmt.Sprintf("%s %s (%d documents)", r.Method, r.Path, n)
			parts := make([]string, n)
			for i := range parts {
				parts[i] = remaining(t, s, r, partial, n, func(o rule.Operation) bool { return o.Number == i })
				if !strings.Contains(parts[i], documents[i]) {
					t.Errorf("%s: operation %d is %q", what, i, parts[i])
				}
			}
			if whole := strings.Join(parts, ""); whole != string(r.Body) {
				t.Errorf("%s: its operations make up %q, not %q", what, whole, r.Body)
			}
			for stay := range 1 << n {
				want := ""
				for i, part := range parts {
					if stay>>i&1 == 1 {
						want += part
					}
				}
				got := remaining(t, s, r, partial, n, func(o rule.Operation) bool { return stay>>o.Number&1 == 1 })
				if got != want {
					t.Errorf("%s: of %b stays %q, not %q", what, stay, got, want)
				}
			}
		}
	}
}

// remaining returns what stays of a write of n documents.
func remaining(t *testing.T, s Subject, r *adapters.Request, partial bool, n int, stays func(rule.Operation) bool) string {
	t.Helper()
	class := s.Dialect.Classify(r)
	var out bytes.Buffer
	var told []rule.Operation
	w := Starting{Writing: Always(nil), Starts: func(o rule.Operation) bool { told = append(told, o); return stays(o) }}
	replies, err := s.Dialect.EnrichWrite(class, &out, bytes.NewReader(r.Body), w, 1<<20)
	expect.OK(t, err)
	numbers, want := []int{}, []int{}
	for i, o := range told {
		numbers, want = append(numbers, o.Number), append(want, i)
		if o.Index != "news-1" || o.Plain && (partial || replies == nil) {
			t.Errorf("%s %s: operation %+v", r.Method, r.Path, o)
		}
	}
	if diff := cmp.Diff(want, numbers); diff != "" || len(told) != n {
		t.Errorf("%s %s: of %d documents it tells %+v", r.Method, r.Path, n, told)
	}
	if replies != nil {
		testReplies(t, replies, told)
	}
	return out.String()
}

// testReplies puts together the reply to a write of which nothing was sent, and takes it apart.
func testReplies(t *testing.T, r adapters.Replies, told []rule.Operation) {
	t.Helper()
	var entries [][]byte
	for _, o := range told {
		of := adapters.Standing{Index: "news-1", Stored: &adapters.Stored{ID: "other"}, Reply: []byte(`{"id":"other"}`)}
		entry, err := r.NoOp(o, of)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		entries = append(entries, entry)
	}
	reply := expect.Value(r.Join(nil, entries))(t)
	got, refused, err := r.Split(reply)
	if diff := cmp.Diff(entries, got); diff != "" || err != nil || len(refused) != len(entries) {
		t.Errorf("%s: %v %s", reply, err, diff)
	}
	for _, no := range refused {
		if no {
			t.Errorf("%s: a no-op counts as refused", reply)
		}
	}
	for _, reply := range []string{`{"errors"`, `<html>`, `{"items":{}}`, `{"items":[{}]}`, `{"items":[{"index":{}}]}`, "null", `{"success":1}`} {
		entries, refused, err := r.Split([]byte(reply))
		if err == nil && len(entries) != len(refused) {
			t.Errorf("%s is taken apart to %q", reply, entries)
		}
	}
}
