package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
)

func TestDemoPrintsBothLists(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"demo", "--once", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs)
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	text := out.String()
	for _, q := range demoQueries {
		if !strings.Contains(text, "search: "+q+"\n") {
			t.Errorf("no search for %q in:\n%s", q, text)
		}
	}
	if folds := regexp.MustCompile(`Neardup: collapsed; raw=\d+; folded=([1-9]\d*);`).FindAllString(text, -1); len(folds) != len(demoQueries) {
		t.Errorf("not every search folded something:\n%s", text)
	}
}

// TestDemoPage asks for what the page asks for: ten hits from the engine, and ten through the sidecar of which hardly any two are
// versions of one article.
func TestDemoPage(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read, write := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"demo", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0"}, strings.NewReader(""), write, io.Discard)
		_ = write.Close()
	}()
	var text strings.Builder
	for buffer := make([]byte, 4096); !strings.Contains(text.String(), "Ctrl-C"); {
		n, err := read.Read(buffer)
		if err != nil {
			t.Fatalf("%v after:\n%s", err, text.String())
		}
		text.Write(buffer[:n])
	}
	found := regexp.MustCompile(`A page to look at: +(http://\S+)`).FindStringSubmatch(text.String())
	if found == nil {
		t.Fatalf("no page in:\n%s", text.String())
	}
	if status, html := call(t, "GET", found[1]+"/", ""); status != 200 || !strings.Contains(html, "<h1>") {
		t.Errorf("the page: %d %.100s", status, html)
	}
	group := map[string]string{}
	for _, d := range corpus.Documents() {
		group[d.ID] = d.Group
	}
	repeats := map[string]int{}
	for _, base := range []string{"/plain", "/collapsed"} {
		_, body := call(t, "POST", found[1]+base+"/news/_search", `{"size":60,"query":{"match":{"body":"the old town by the river and its people"}},"_source":false}`)
		var result struct {
			Hits struct {
				Hits []struct {
					ID string `json:"_id"`
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &result); err != nil || len(result.Hits.Hits) != 60 {
			t.Fatalf("%s: %v, %d hits: %.200s", base, err, len(result.Hits.Hits), body)
		}
		seen := map[string]bool{}
		for _, h := range result.Hits.Hits {
			if seen[group[h.ID]] {
				repeats[base]++
			}
			seen[group[h.ID]] = true
		}
	}
	t.Logf("repeated articles among 60 hits: %v", repeats)
	if repeats["/collapsed"] > 3 || repeats["/plain"] < 15 {
		t.Errorf("repeated articles among 60 hits: %v", repeats)
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, read) }()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
