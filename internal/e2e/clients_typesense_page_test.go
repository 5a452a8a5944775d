package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/clients"
	"github.com/neardup/sidecar/internal/engines"
)

// visit is what a browser showed, asked and complained of: instantsearch.js says of what.
type visit struct {
	Steps      []shown          `json:"steps"`
	Requests   []map[string]any `json:"requests"`
	Complaints []string         `json:"complaints"`
}

// shown is one page of a list as it is shown, or, of the visit "replies", an answer.
type shown struct {
	List string   `json:"list"`
	Page int      `json:"page"`
	Size int      `json:"size"`
	IDs  []string `json:"ids"`
	shownAround

	Status int    `json:"status"`
	Text   string `json:"text"`
}

// shownAround is what stands around the hits, and so is the engine's own whatever is folded.
type shownAround struct {
	Found   int      `json:"found"`
	Stats   []string `json:"stats"`
	Pages   []string `json:"pages"`
	Facets  []string `json:"facets"`
	Address string   `json:"address"`
}

// TestInstantSearch has a visitor use a page of InstantSearch in a real browser, directly and through the sidecar. Both visits take place
// at once, in collections of their own.
func TestInstantSearch(t *testing.T) {
	e, list := engines.Shared(t, engines.Typesense), documents(t)
	browser := clients.Browser(t)
	dead := serve(t, e, setup{match: "*", urls: []string{"http://127.0.0.1:1"}})
	bases := [2]string{e.URL, serve(t, e, setup{match: "page-*"})}
	var seen [2]map[string]visit
	t.Run("visits", func(t *testing.T) {
		for i, base := range bases {
			t.Run([]string{"directly", "through"}[i], func(t *testing.T) {
				t.Parallel()
				prefix := fmt.Sprintf("page-%d-%d", os.Getpid(), i)
				defer wipe(t, e, prefix)
				out := clients.Run(t, "instantsearch.js", "--url", base, "--key", e.Key, "--index", prefix, "--corpus", corpusFile(t, list),
					"--browser", browser, "--dead", dead)
				if err := json.Unmarshal(bytes.ReplaceAll(out, []byte(prefix), []byte("page")), &seen[i]); err != nil {
					t.Fatal(err)
				}
			})
		}
	})
	if t.Failed() || len(seen[1]) == 0 {
		t.FailNow()
	}
	untroubled(t, seen[1])
	folded := 0
	for name, direct := range seen[0] {
		t.Run(name, func(t *testing.T) {
			if name == "replies" {
				readable(t, direct.Steps, seen[1][name].Steps)
				return
			}
			o := newOracle(t, api{e, e.URL}, list)
			if name == "with a threshold" {
				o.threshold = 0.95
			}
			folded += o.checkVisit(t, direct, seen[1][name])
		})
	}
	if folded < 200 {
		t.Errorf("only %d hits fold over all visits", folded)
	}
}

// untroubled checks that no script raised an error, and no request failed or was refused.
func untroubled(t *testing.T, visits map[string]visit) {
	t.Helper()
	for name, v := range visits {
		if len(v.Complaints) > 0 || len(v.Steps) == 0 {
			t.Errorf("%s: %d steps, %q", name, len(v.Steps), v.Complaints)
		}
		for _, r := range v.Requests {
			if r["status"] != 200.0 {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// checkVisit holds the pages that were seen against the definition, over what was seen directly, and returns how many hits fold.
func (o *oracle) checkVisit(t *testing.T, direct, through visit) (folded int) {
	if len(direct.Steps) != len(through.Steps) {
		t.Fatalf("%d steps, want %d", len(through.Steps), len(direct.Steps))
	}
	for i, request := range direct.Requests {
		for _, part := range []string{"request", "body"} {
			if diff := cmp.Diff(request[part], through.Requests[i][part]); diff != "" {
				t.Errorf("request %d: %s", i, diff)
			}
		}
	}
	raw, complete := map[string][]string{}, map[string]bool{}
	for _, s := range direct.Steps {
		if s.Page*s.Size == len(raw[s.List]) { // not seen before
			raw[s.List] = append(raw[s.List], s.IDs...)
		}
		complete[s.List] = len(raw[s.List]) == s.Found
	}
	for i, s := range through.Steps {
		where := fmt.Sprintf("%q, page %d", s.List, s.Page)
		if diff := cmp.Diff(direct.Steps[i].shownAround, s.shownAround); diff != "" {
			t.Errorf("%s, around the hits: %s", where, diff)
		}
		if want := o.collapsed(raw[s.List]); complete[s.List] {
			from := min(s.Page*s.Size, len(want))
			if want := want[from:min(from+s.Size, len(want))]; !slices.Equal(want, s.IDs) {
				t.Errorf("%s: %s", where, cmp.Diff(want, s.IDs))
			}
			if s.Page == 0 {
				folded += len(raw[s.List]) - len(want)
			}
			continue
		}
		if len(s.IDs) != s.Size || !slices.Equal(o.collapsed(s.IDs), s.IDs) {
			t.Errorf("%s: %q, want %d leaders", where, s.IDs, s.Size)
		}
	}
	return folded
}

// readable checks that a page's own script can read each answer, ours too.
func readable(t *testing.T, direct, through []shown) {
	t.Helper()
	ours := map[string]struct {
		status int
		text   string
	}{
		"a bad control":            {400, "neardup_threshold"},
		"a bad control of several": {400, "neardup_threshold"},
		"a dead engine":            {502, "message"},
	}
	for i, s := range through {
		want, known := ours[s.List]
		if known && (s.Status != want.status || !strings.Contains(s.Text, want.text)) {
			t.Errorf("%s: %d %q, want %d and %s", s.List, s.Status, s.Text, want.status, want.text)
		}
		if !known && !cmp.Equal(direct[i].Status, s.Status) || !known && direct[i].Text != s.Text {
			t.Errorf("%s: %d %q, want %d %q", s.List, s.Status, s.Text, direct[i].Status, direct[i].Text)
		}
	}
	if len(through) != 7 {
		t.Errorf("%d answers", len(through))
	}
}
