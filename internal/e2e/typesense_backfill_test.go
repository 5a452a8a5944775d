package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// summary returns the last line of what a job printed: those before it tell how far it was.
func summary(out string) string {
	out = strings.TrimSpace(out)
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// scrawl writes one document of a Typesense collection at random, in the ways that there are, and returns the status.
func (s scribbler) scrawl(t *testing.T, through, direct api, collection string) int {
	path := "/collections/" + collection + "/documents"
	with := func(id, part string) string { return strings.Replace(part, "{", `{"id":"`+id+`",`, 1) }
	whole := `{"title":` + s.text() + `,"body":` + s.text() + `,"n":1}`
	send := func(a api, method, path, body string) int {
		return call(t, a.e, method, a.base+path, strings.ReplaceAll(body, ",}", "}")).status
	}
	switch s.IntN(9) {
	case 0:
		return send(through, "POST", path+"?action="+s.of("upsert", "create"), with(s.id(), whole))
	case 1, 2:
		return send(through, "PATCH", path+"/"+s.id(), s.part())
	case 3:
		return send(through, "POST", path+"?action="+s.of("update", "emplace"), with(s.id(), s.part()))
	case 4:
		return send(through, "DELETE", path+"/"+s.id(), "")
	case 5, 6: // written past the sidecar, and so without a sketch
		return send(direct, "POST", path+"?action=upsert", with(s.id(), whole))
	}
	var lines strings.Builder
	for range 1 + s.IntN(8) {
		lines.WriteString(with(s.id(), s.part()) + "\n")
	}
	return send(through, "POST", path+"/import?action="+s.of("update", "emplace", "upsert"), lines.String())
}

// watch exports a collection again and again until ctx ends, and says of how many documents read how many had another text's
// sketch, and for how long one was seen with it at most.
func watch(ctx context.Context, t *testing.T, direct api, collection string) (read, stale int, longest time.Duration) {
	rule, since := ruleOfTests(t), map[string]time.Time{}
	for ctx.Err() == nil {
		body := call(t, direct.e, "GET", direct.base+"/collections/"+collection+"/documents/export", "").body
		now := time.Now()
		for line := range bytes.Lines(body) {
			read++
			id := idOf(t, bytes.TrimSpace(line), "id")
			switch _, was := since[id]; {
			case wrong(rule, line) == "":
				delete(since, id)
				continue
			case !was:
				since[id] = now
			}
			stale++
			longest = max(longest, now.Sub(since[id]))
		}
	}
	return read, stale, longest
}

// TestTypesenseWritesBesideBackfill has several clients write the same few documents at once in every way while reindex runs over
// them again and again. When all have come to rest every sketch is that of the text that stands there; while they are at work,
// next to all are.
func TestTypesenseWritesBesideBackfill(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bcon-1"
	s := setup{match: "bcon-*"}
	through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
	direct.drop(t, collection)
	call(t, e, "POST", through.base+"/collections", `{"name":"`+collection+`","fields":[{"name":"title","type":"string","optional":true},`+
		`{"name":"body","type":"string","optional":true},{"name":"n","type":"int32","optional":true}]}`).want(t, 201)
	file, start, rounds, rule := config(t, e, s), seeded(t), 3, ruleOfTests(t)
	if soaking() {
		rounds = 100
	}
	writes, written, read, stale, sketched, longest := int64(0), 0, 0, 0, 0, time.Duration(0)
	for round := range rounds {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		var all sync.WaitGroup
		var done atomic.Int64
		for client := range 5 {
			all.Go(func() {
				s := scribbler{rand.New(rand.NewPCG(start+uint64(round)<<8, uint64(client))), 40}
				for ctx.Err() == nil {
					switch status := s.scrawl(t, through, direct, collection); {
					case status < 300:
						done.Add(1)
					case status != http.StatusConflict && status != http.StatusNotFound && status != http.StatusBadRequest:
						t.Errorf("status %d", status)
						return
					}
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				out, code := sidecar(t, "reindex", "--config", file)
				if code != 0 {
					t.Errorf("reindex ended with %d: %s", code, out)
					return
				}
				written += number(t, summary(out), "written")
			}
		})
		all.Go(func() {
			r, s, l := watch(ctx, t, direct, collection)
			read, stale, longest = read+r, stale+s, max(longest, l)
		})
		all.Wait()
		stop()
		writes += done.Load()
		for id, h := range stored(t, direct, collection) {
			if why := wrong(rule, h.source); why != "" || bytes.Contains(h.source, []byte("forged")) {
				t.Errorf("round %d, %s: %s: %s", round, id, why, h.source)
			}
			if adapters.HasSketch(h.source) {
				sketched++
			}
		}
	}
	t.Logf("%d writes, %d documents patched; of %d documents read meanwhile %d had another text's sketch, one for %v", writes, written, read, stale, longest)
	if writes < 30 || written == 0 || sketched == 0 || read < 200 {
		t.Error("too little was done")
	}
	if stale > 5+read/100 || longest > 5*time.Second {
		t.Error("sketches of other texts stand there for too long")
	}
}

// interposed passes requests on to an engine. Before an import, and behind it with the reply still to come, it calls a function.
type interposed struct {
	engine        *httputil.ReverseProxy
	before, after func(body string)
}

// ServeHTTP implements http.Handler.
func (i *interposed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/import") {
		i.engine.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	i.before(string(body))
	held := httptest.NewRecorder()
	i.engine.ServeHTTP(held, r)
	i.after(string(body))
	w.WriteHeader(held.Code)
	_, _ = w.Write(held.Body.Bytes())
}

// interpose starts a server that passes requests on to the engine.
func interpose(t *testing.T, e *engines.Engine, before, after func(body string)) string {
	t.Helper()
	u, err := url.Parse(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&interposed{httputil.NewSingleHostReverseProxy(u), before, after})
	t.Cleanup(s.Close)
	return s.URL
}

// TestTypesenseKilledInAPatch ends reindex without warning when the engine has done its update and the reply is under way. A
// document that changed just before the update is left with the sketch of its former text: verify finds it, a search that holds
// the text folds nothing by it, and the next run mends it.
func TestTypesenseKilledInAPatch(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bkill-1"
	s := setup{match: "bkill-*"}
	through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
	direct.drop(t, collection)
	through.create(t, collection)
	list := documents(t)[:6]
	changed, twin := &list[2], &list[3]
	twin.Title, twin.Body = changed.Title, changed.Body
	direct.load(t, collection, list)
	through.load(t, collection, list[3:4])

	var cmd *exec.Cmd
	other := documents(t)[100].Body
	concerned := func(body string) bool { return strings.Contains(body, `"id":"`+changed.ID+`"`) }
	before := func(body string) {
		if concerned(body) {
			call(t, e, "PATCH", through.base+"/collections/"+collection+"/documents/"+changed.ID, `{"body":`+string(adapters.AppendString(nil, other))+`}`).want(t, 201)
		}
	}
	after := func(body string) {
		if concerned(body) {
			_ = cmd.Process.Kill()
		}
	}
	s.urls = []string{interpose(t, e, before, after)}
	cmd = command(t, t.Context(), "reindex", "--config", config(t, e, s))
	if err := cmd.Run(); err == nil {
		t.Fatal("reindex ended by itself")
	}

	s.urls = nil
	file := config(t, e, s)
	f := verify(t, file, collection) // of other parts some may have been left
	if f.Stale != 1 || f.Right+f.Absent != len(list)-1 || !slices.Equal(f.Examples, []string{changed.ID}) {
		t.Fatalf("after the kill: %+v", f)
	}
	ids := through.search(t, collection, "*", 0, 20, "").ids
	if !slices.Contains(ids, changed.ID) || !slices.Contains(ids, twin.ID) {
		t.Errorf("a search folds by the sketch of another text: %v", ids)
	}
	if out, code := sidecar(t, "reindex", "--config", file); code != 0 || number(t, summary(out), "written") != 1+f.Absent {
		t.Errorf("the next run ended with %d: %s", code, out)
	}
	if f := verify(t, file, collection); f.Right != len(list) {
		t.Errorf("after the next run: %+v", f)
	}
}

// oddIDs are ids that mean something to a filter, a path or JSON.
func oddIDs() []string {
	ids := []string{
		"`", "``a`", "a`b,`c", "a`+b", "+", "a+b", " ", " lead", "trail ", "a,b", "a]b", "[a]", "a/b", "/", "..", ".", "%2F", "%", "a?b#c", "a&&b", "a||b", "a && id:=b", ":=", "=x", "!x", "*", "x*",
		"\"", "a\"b", "'", "\\", "a\\b", "\\n", "é", "日本語", "e\u0301", "😀", "\u200b", "0", "1", "01", "-1", "1e3", "9007199254740993", "true", "null", "id", "a\tb", "a\nb", "(a)", "{}", "$x", "@", "<b>",
		strings.Repeat("x", 1024), strings.Repeat("é,`", 300), strings.Repeat("y", 5000),
	}
	return ids
}

// TestTypesenseOddIDs backfills documents whose ids are hard to name.
func TestTypesenseOddIDs(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bodd-1"
	direct, s := api{e, e.URL}, setup{match: "bodd-*"}
	direct.drop(t, collection)
	direct.create(t, collection)
	var lines strings.Builder
	for i, id := range oddIDs() {
		fmt.Fprintf(&lines, `{"id":%s,"title":"the title","body":"the body of number %d is none but its own"}`+"\n", adapters.AppendString(nil, id), i)
	}
	for i := range 200 {
		fmt.Fprintf(&lines, `{"id":"%0300d","title":"the title","body":"the body of number %d is long"}`+"\n", i, i)
	}
	direct.loadLines(t, collection, lines.String())
	file := config(t, e, s)
	before := stored(t, direct, collection)
	if len(before) != 200+len(oddIDs()) {
		t.Fatalf("%d documents are stored", len(before))
	}
	out, code := sidecar(t, "reindex", "--config", file)
	if code != 0 || number(t, summary(out), "written") != len(before) {
		t.Fatalf("reindex ended with %d: %s", code, out)
	}
	rule := ruleOfTests(t)
	for id, h := range stored(t, direct, collection) {
		plain, err := adapters.Cut(h.source, adapters.Our)
		if why := wrong(rule, h.source); err != nil || why != "" || !adapters.HasSketch(h.source) || !bytes.Equal(plain, before[id].source) {
			t.Errorf("%q: %v %s: %s", id, err, why, h.source)
		}
	}
	for _, sample := range []string{"0", "120"} {
		if f := verify(t, file, collection, "--sample", sample); f.Right != f.Scanned || f.Scanned < 100 {
			t.Errorf("verify --sample %s: %+v", sample, f)
		}
	}
}

// TestTypesenseLongDocuments backfills documents of a megabyte, in objects and beside them, in little memory.
func TestTypesenseLongDocuments(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection, documents = "blong-1", 24
	direct := api{e, e.URL}
	direct.drop(t, collection)
	// An object that is stored and not indexed: the engine would take long over a megabyte of text.
	call(t, e, "POST", e.URL+"/collections", `{"name":"`+collection+`","fields":[{"name":"title","type":"string"}]}`).want(t, 201)
	for i := range documents {
		text := strings.Repeat(fmt.Sprintf("ferry %d leaves, ", i), 1<<20/20)
		direct.loadLines(t, collection, fmt.Sprintf(`{"id":"%d","title":"title %d","meta":{"text":"%s"}}`, i, i, text))
	}
	file := withRules(t, config(t, e, setup{match: "blong-*"}), "blong-*", "title, meta.text")
	out, code, used := sidecarPeak(t, "reindex", "--config", file)
	if code != 0 || number(t, summary(out), "written") != documents {
		t.Fatalf("reindex ended with %d: %s", code, out)
	}
	t.Logf("the job took %d MB at most", used>>20)
	if used < 10<<20 || used > 300<<20 { // some are held at once
		t.Errorf("%d MB for %d MB of documents", used>>20, documents)
	}
	for _, sample := range []string{"0", "10"} {
		if f := verify(t, file, collection, "--sample", sample); f.Right != f.Scanned || f.Scanned < 10 {
			t.Errorf("verify --sample %s: %+v", sample, f)
		}
	}
}

// TestTypesenseKeysOfJobs gives the jobs keys that lack one right each: doctor names it, and reindex says what the engine
// answers.
func TestTypesenseKeysOfJobs(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	const collection = "bkeys-1"
	direct := api{e, e.URL}
	needed := map[string]string{
		"collections:get": "read collection", "collections:update": "change its schema", "documents:export": "export", "documents:search": "search its documents",
		"documents:import": "write its documents", "nothing": "",
	}
	for lacking, says := range needed {
		t.Run(lacking, func(t *testing.T) {
			direct.drop(t, collection)
			direct.create(t, collection)
			direct.load(t, collection, documents(t)[:3])
			var actions []string
			for action := range needed {
				if action != lacking && action != "nothing" {
					actions = append(actions, `"`+action+`"`)
				}
			}
			file := config(t, e, setup{match: collection, key: newKey(t, e, strings.Join(actions, ","), `"`+collection+`"`)})
			before, _ := sidecar(t, "doctor", "--config", file)
			out, code := sidecar(t, "reindex", "--config", file)
			if lacking != "nothing" {
				if !strings.Contains(before, says) || !strings.Contains(before, "401") || code != 1 || !strings.Contains(out, "401") {
					t.Errorf("reindex ended with %d: %s\ndoctor: %s", code, out, before)
				}
				return
			}
			after, _ := sidecar(t, "doctor", "--config", file)
			if code != 0 || number(t, summary(out), "written") != 3 || strings.Contains(after, "fail ") {
				t.Errorf("reindex ended with %d: %s\ndoctor: %s", code, out, after)
			}
		})
	}
}

// sidecarPeak runs a command of the sidecar to its end, and returns its peak memory too, in bytes. (What the system tells of a process
// that ended includes that of the process which started it.)
func sidecarPeak(t *testing.T, args ...string) (out string, code int, used int64) {
	t.Helper()
	cmd := command(t, t.Context(), args...)
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return both.String(), exitCode(t, err), used
		case <-time.After(10 * time.Millisecond):
			if now, err := peakOf(cmd.Process.Pid); err == nil { // else it has just ended
				used = max(used, now)
			}
		}
	}
}
