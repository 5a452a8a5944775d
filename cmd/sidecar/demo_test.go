package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

func TestDemoPrintsBothLists(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"demo", "--once", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs)
	if code != 0 || errs.Len() > 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	text := out.String()
	queries := []string{"ferry crossing", "library open midnight"}
	for _, q := range queries {
		if !strings.Contains(text, "search: "+q+"\n") {
			t.Errorf("no search for %q in:\n%s", q, text)
		}
	}
	folds := regexp.MustCompile(`Neardup: collapsed; raw=\d+; folded=([1-9]\d*);`).FindAllString(text, -1)
	expect.Same(t, len(queries), len(folds), "searches that folded something:\n%s", text)
}

// TestDemoOfDocuments takes documents from a file: any fields, hits of an engine, and errors with their lines.
func TestDemoOfDocuments(t *testing.T) {
	demo := func(text string) (result, string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "my.jsonl")
		expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
		return sidecar(t, "demo", "--once", "--listen", "127.0.0.1:0", "--page", "127.0.0.1:0", "--documents", file), file
	}
	const text = "The ferry sails again in spring, says the council of the town by the river, after eleven years."
	got, file := demo("\uFEFF" + `{"id":"a","meta":{"note":"` + text + `","tags":["x"]},"n":1,"on":"2026-01-02"}
{"_index":"old","_id":7,"_score":1,"_source":{"meta":{"note":"` + strings.ToUpper(text) + `"},"n":"one","on":"2026-01-03"}}

{"meta":{"note":"A cat sat on the mat of the house near the sea and looked at all the birds."},"n":{}}`)
	said := strings.Split(got.stdout, "\n")
	if got.code != exitDone || got.stderr != "" || !strings.HasPrefix(said[0], "3 documents of "+file+", compared by meta.note, written through the sidecar in ") ||
		!strings.Contains(got.stdout, "raw=2; folded=1;") {
		t.Errorf("%+v", got)
	}
	const hint = `write one JSON object in each line`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	for i := range 1000 {
		_, _ = fmt.Fprintf(z, `{"t":"one line of %d"}`+"\n", i)
	}
	expect.OK(t, z.Close())
	for text, want := range map[string]string{
		"":                         ": has no document: " + hint,
		"\x1f\x8b, not packed":     ": starts like a gzip file but is not one: ",
		packed.String()[:1000]:     ":391: the gzip file is cut off or damaged here: ",
		`{"text":"a b c"}` + "\n{": `:2: is not valid JSON: ` + hint,
		"\n[1]":                    ":2: is not a JSON object: " + hint,
		`{"n":1,"id":"a-b"}`:       ": no field holds a text: id (no sentences)",
		`{"n":1}`:                  ": no field holds a text: none has a value in quotes",
		`{"id":1,"t":"a b c"}` + "\n" + `{"_id":"1","t":"a b c"}`: ":2: the id 1 is in line 1 too: give each document its own",
		`{"t":["a b c",{"u":1}]}`:                                 ":1: the engine refuses the document: ",
		strings.Repeat(" ", 9<<20):                                ":1: is longer than 8 MB",
	} {
		if got, file := demo(text); got.code != exitFailed || !strings.HasPrefix(got.stderr, "error: "+file+want) {
			t.Errorf("%.40q: %+v", text, got)
		}
	}
	got, file = demo(`{"t":"a b c"}` + "\n" + `{"t":{"u":1}}` + "\n" + `{"t":{"u":2}}`)
	if !strings.HasPrefix(got.stdout, "1 document of ") || !strings.HasPrefix(got.stderr, "note: 2 documents left out, the first one: "+file+":2: the engine refuses the document: ") {
		t.Errorf("refused documents: %+v", got)
	}
	if got, _ = demo(`{"id":7,"t":"a b c"}` + "\n" + `{"id":7,"t":"d e f"}`); !strings.HasPrefix(got.stdout, "2 documents of ") {
		t.Errorf("one id twice: %+v", got)
	}
	got, _ = demo(strings.Repeat(`{"t":"one line of a log with words"}`+"\n", 10_001))
	if !strings.HasPrefix(got.stdout, "10000 documents of ") || !strings.Contains(got.stderr, "is left out from line 10001 on") {
		t.Errorf("%d %.200s %s", got.code, got.stdout, got.stderr)
	}
}

// TestDemoPage asks what the page asks: the engine's list, and what is left of it when it is collapsed.
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
	if status, html := request(t, "GET", found[1]+"/", ""); status != 200 || !strings.Contains(html, "<title>") {
		t.Errorf("the page: %d %.100s", status, html)
	}
	const body = `{"engine":"demo","index":"news","preset":"","query":"the old town by the river and its people"}`
	status, reply := request(t, "POST", found[1]+"/playground/api/search", body)
	var page struct {
		Hits    []struct{ ID string }
		Sidecar struct{ IDs []string }
	}
	err := json.Unmarshal([]byte(reply), &page)
	if err != nil || status != 200 || len(page.Hits) != 200 || len(page.Sidecar.IDs) > 180 {
		t.Errorf("%d %v, %d hits, collapsed %d: %.200s", status, err, len(page.Hits), len(page.Sidecar.IDs), reply)
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, read) }()
	expect.Same(t, 0, <-ended, "the exit code")
}

// request sends a request and returns status and body.
func request(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	req := expect.Value(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	response := expect.Value(http.DefaultClient.Do(req))(t)
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, string(expect.Value(io.ReadAll(response.Body))(t))
}
