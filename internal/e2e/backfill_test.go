package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/engines"
)

// TestBackfill indexes the corpus directly, looks at it through the sidecar before any document has a sketch, and lets reindex
// store them, killed halfway and started again.
func TestBackfill(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, list := "fill-1", documents(t)
		direct := api{e, e.URL}
		direct.drop(t, index)
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index, list)
		o := newOracle(t, direct, list)

		computing := api{e, serve(t, e, setup{match: "fill-*"})}
		o.checkPages(t, computing, index, "")
		alone := api{e, serve(t, e, setup{match: "fill-*", missing: "alone"})}
		for _, q := range queries {
			if diff := cmp.Diff(o.raw(t, index, q), slices.Concat(alone.whole(t, index, q, 20, "")...)); diff != "" {
				t.Errorf("missing: alone must hide nothing, %q: %s", q, diff)
			}
		}

		file := config(t, e, setup{match: "fill-*"})
		killHalfway(t, file)
		half := sketched(t, direct, index, list)
		if half == 0 || half == len(list) {
			t.Fatalf("%d of %d documents have a sketch: the kill was not halfway", half, len(list))
		}
		o.checkPages(t, computing, index, "") // half done, the pages are the same

		out, code := sidecar(t, "reindex", "--config", file)
		if code != 0 {
			t.Fatalf("reindex ended with %d: %s", code, out)
		}
		if written := number(t, out, "written"); written != len(list)-half {
			t.Errorf("the second run wrote %d documents, %d lacked a sketch: %s", written, len(list)-half, out)
		}
		after := stored(t, direct, index, list)
		for id, document := range after {
			plain, err := adapters.Cut(document, adapters.Our)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(before[id]), string(plain)); diff != "" {
				t.Fatalf("reindex changed %s: %s", id, diff)
			}
		}
		direct.refresh(t, index)
		o.checkPages(t, alone, index, "")

		states := versions(t, direct, index, list)
		if out, code = sidecar(t, "reindex", "--config", file); code != 0 || number(t, out, "written") != 0 {
			t.Errorf("a further run ended with %d and wrote: %s", code, out)
		}
		if diff := cmp.Diff(states, versions(t, direct, index, list)); diff != "" {
			t.Errorf("a further run wrote documents: %s", diff)
		}
	})
}

// killHalfway starts a slow reindex and ends it without warning.
func killHalfway(t *testing.T, file string) {
	t.Helper()
	cmd := command(t, context.Background(), "reindex", "--config", file, "--documents-per-second", "60")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("reindex ended by itself: %s", out.Bytes())
	}
}

func number(t *testing.T, out, word string) int {
	t.Helper()
	m := regexp.MustCompile(`(\d+) ` + word + `|` + word + `[=: ]+(\d+)`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no number of %s in: %s", word, out)
	}
	n, err := strconv.Atoi(m[1] + m[2])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stored returns every document as the engine holds it.
func stored(t *testing.T, direct api, index string, list []corpus.Document) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, d := range list {
		all[d.ID] = direct.get(t, index, d.ID)
	}
	return all
}

func sketched(t *testing.T, direct api, index string, list []corpus.Document) int {
	t.Helper()
	n := 0
	for _, document := range stored(t, direct, index, list) {
		if bytes.Contains(document, []byte(adapters.SketchField)) {
			n++
		}
	}
	return n
}

// versions returns what changes whenever a document is written: the engine's version of it, or else its bytes.
func versions(t *testing.T, direct api, index string, list []corpus.Document) map[string]string {
	t.Helper()
	all := map[string]string{}
	for id, document := range stored(t, direct, index, list) {
		all[id] = string(document)
		if !direct.typesense() {
			var v struct {
				Version int `json:"_version"`
				SeqNo   int `json:"_seq_no"`
			}
			body := call(t, direct.e, "GET", direct.base+"/"+index+"/_doc/"+id, "").want(t, 200).body
			if err := json.Unmarshal(body, &v); err != nil {
				t.Fatal(err)
			}
			all[id] = fmt.Sprint(v.Version, "/", v.SeqNo)
		}
	}
	return all
}

// TestSetup prepares indices that are there already, and says what it did.
func TestSetup(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		index, direct := "setup-1", api{e, e.URL}
		direct.drop(t, index)
		direct.create(t, index)
		file := config(t, e, setup{match: "setup-*"})
		for range 2 {
			out, code := sidecar(t, "setup", "--config", file)
			if code != 0 || !strings.Contains(out, index) || !strings.Contains(out, "ready") {
				t.Fatalf("setup ended with %d: %s", code, out)
			}
		}
		path := "/" + index + "/_mapping"
		if direct.typesense() {
			path = "/collections/" + index
		}
		if body := call(t, e, "GET", e.URL+path, "").want(t, 200).body; !bytes.Contains(body, []byte(adapters.SketchField)) {
			t.Errorf("our field is not declared: %s", body)
		}
	})
}
