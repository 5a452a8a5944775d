package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// asks returns a command of the sidecar that asks an engine, with the engine's key in its environment, in a folder of its own.
func asks(t *testing.T, e *engines.Engine, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*minute)
	t.Cleanup(cancel)
	cmd := command(t, ctx, append([]string{"init"}, args...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ENGINE_API_KEY="+e.Key)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// surveyed runs init to its end and returns what it printed, its exit code and what it wrote.
func surveyed(t *testing.T, e *engines.Engine, args ...string) (out string, code int, text string) {
	t.Helper()
	cmd := asks(t, e, args...)
	both, err := cmd.CombinedOutput()
	code = exitCode(t, err)
	written, err := os.ReadFile(filepath.Join(cmd.Dir, "config.yaml"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(both), code, string(written)
}

var ruleOf = regexp.MustCompile(`- match: (\S+)\n(?: +#.*\n)* +fields: \[(.*)\]`)

// rulesIn returns the rules of a configuration that init wrote, by what they match, with their fields.
func rulesIn(text string) map[string]string {
	rules := map[string]string{}
	for _, m := range ruleOf.FindAllStringSubmatch(text, -1) {
		rules[strings.Trim(m[1], `"`)] = m[2]
	}
	return rules
}

// TestInit has init serve in front of each engine with what it found there, and searches.
func TestInit(t *testing.T) {
	eachEngine(t, func(t *testing.T, e *engines.Engine) {
		const index = "init-articles"
		direct, list := api{e, e.URL}, documents(t)
		direct.drop(t, index)
		direct.create(t, index)
		direct.load(t, index, list)
		before := stored(t, direct, index)

		f := &first{e: e, index: index}
		serving := asks(t, e, "--serve", "--index", index, e.URL)
		at, end := f.begin(t, serving)
		through := api{e, "http://" + at}
		o := initOracle(t, direct)
		for _, q := range []string{"ferry", "town"} {
			if diff := cmp.Diff(o.list(t, index, q), slices.Concat(through.whole(t, index, q, 10, "")...)); diff != "" {
				t.Errorf("%q: %s", q, diff)
			}
		}
		text, err := os.ReadFile(filepath.Join(serving.Dir, "config.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if fields := rulesIn(string(text))[index]; fields != "title, body" {
			t.Errorf("the rule compares %q:\n%s", fields, text)
		}
		if !strings.Contains(string(text), fmt.Sprintf("# %s: %d documents.", index, len(list))) || e.Key != "" && strings.Contains(string(text), " "+e.Key+"\n") {
			t.Errorf("%s", text)
		}
		end()
		if diff := cmp.Diff(before, stored(t, direct, index), cmp.AllowUnexported(hit{})); diff != "" {
			t.Errorf("init changed documents: %s", diff)
		}
		t.Run("doctor", func(t *testing.T) {
			file := filepath.Join(serving.Dir, "config.yaml")
			t.Setenv("ENGINE_API_KEY", e.Key)
			checks := doctor(t, file)
			holds(t, checks, "ok", "configuration", "1 engine, 1 rule")
			holds(t, checks, "ok", "search", "a search of "+index+", asked of the engine itself: answered in")
			holds(t, checks, "fail", "index", index+" is not ready: .*setup")
			login := "it answers without credentials"
			if e.Key != "" {
				login = "it takes the api_key"
			}
			holds(t, checks, "ok", "credentials", login)
		})
	})
}

// initOracle returns the oracle of the defaults, which are what init writes.
func initOracle(t *testing.T, direct api) *oracle {
	t.Helper()
	sketcher, err := sketch.New(sketch.DefaultScheme())
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{direct: direct, sketches: map[string]sketch.Sketch{}, threshold: rerank.Default.Threshold, window: 1000}
	for _, d := range documents(t) {
		o.sketches[d.ID], _ = sketcher.Sketch(d.Title, d.Body)
	}
	return o
}

// TestInitOnManyIndices lays out what a cluster may hold, and has init make rules of it.
func TestInitOnManyIndices(t *testing.T) {
	e := engines.Shared(t, engines.OpenSearch)
	direct := api{e, e.URL}
	lay := func(name, body, document string) {
		direct.drop(t, name)
		call(t, e, "PUT", e.URL+"/"+name, body).want(t, 200)
		if document != "" {
			call(t, e, "POST", e.URL+"/"+name+"/_doc?refresh=true", document).want(t, 201)
		}
	}
	const message = `{"aliases":{"initm":{}},"mappings":{"properties":{"message":{"type":"text"},"at":{"type":"date"}}}}`
	for _, day := range []string{"01", "02", "03"} {
		lay("initm-logs-2026.01."+day, message, `{"message":"the line of a log that has words","at":"2026-01-01"}`)
	}
	lay("initm-deep", `{"aliases":{"initm":{}},"mappings":{"properties":{"meta":{"properties":{"title":{"type":"text"}}},`+
		`"parts":{"type":"nested","properties":{"text":{"type":"text"}}},"name":{"type":"keyword","fields":{"words":{"type":"text"}}}}}}`,
		`{"meta":{"title":"a title of five words"},"parts":[{"text":"one part of it"},{"text":"another"}],"name":"what the name is"}`)
	lay("initm-empty", `{"aliases":{"initm":{}},"mappings":{"properties":{"headline":{"type":"text"},"other":{"type":"text"},"body":{"type":"text"}}}}`, "")
	lay("initm-metrics", `{"aliases":{"initm":{}},"mappings":{"properties":{"load":{"type":"float"},"node":{"type":"keyword"}}}}`, `{"load":1,"node":"a"}`)
	lay("initm-closed", `{"aliases":{"initm":{}},"mappings":{"properties":{"title":{"type":"text"}}}}`, "")
	call(t, e, "POST", e.URL+"/initm-closed/_close", "").want(t, 200)
	lay("initm-hidden", `{"settings":{"index.hidden":true},"mappings":{"properties":{"title":{"type":"text"}}}}`, "")
	initStream(t, e)

	out, code, text := surveyed(t, e, "--index", "initm,initm-stream,initm-hidden", e.URL)
	if code != 0 {
		t.Fatalf("init ended with %d: %s", code, out)
	}
	want := map[string]string{
		"initm-logs-*": "message", "initm-deep": "meta.title, name, parts.text", "initm-empty": "headline, body",
		"initm-stream": "title", "initm-hidden": "title",
	}
	if diff := cmp.Diff(want, rulesIn(text)); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
	for _, said := range []string{
		"# initm-logs-*: 3 indices, 3 documents.", "initm-stream: a data stream, ", "initm-metrics: no field holds a text", "#date_field: at",
		"initm-closed: is closed", "# Of all of them, 2 are near-duplicates of another one among these.",
	} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing says %q:\n%s", said, text)
		}
	}

	out, code, text = surveyed(t, e, e.URL) // all that there is, be it whose it may
	if rules := rulesIn(text); code != 0 || rules["initm-hidden"] != "" || rules["initm-closed"] != "" {
		t.Errorf("init ended with %d: %s\n%s", code, out, text)
	}
}

// initStream makes a data stream with a document.
func initStream(t *testing.T, e *engines.Engine) {
	t.Helper()
	const name = "initm-stream"
	call(t, e, "PUT", e.URL+"/_index_template/"+name, `{"index_patterns":["`+name+`"],"data_stream":{},"priority":500,`+
		`"template":{"mappings":{"properties":{"title":{"type":"text"}}}}}`).want(t, 200)
	t.Cleanup(func() {
		for _, path := range []string{"/_data_stream/", "/_index_template/"} {
			r, err := http.NewRequest("DELETE", e.URL+path+name, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close() // there are Elasticsearches that can't delete one
		}
	})
	call(t, e, "POST", e.URL+"/"+name+"/_doc?refresh=true", `{"@timestamp":"2026-01-01","title":"A report of the day"}`).want(t, 201)
}

// TestInitOnCollections has more collections than are looked at one by one, and a key that may not list them.
func TestInitOnCollections(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	direct := api{e, e.URL}
	for i := range 3 {
		name := fmt.Sprintf("initc_2026_0%d", i+1)
		direct.drop(t, name)
		call(t, e, "POST", e.URL+"/collections", `{"name":"`+name+`","enable_nested_fields":true,"fields":[{"name":"meta","type":"object"},`+
			`{"name":"title","type":"string"},{"name":"site","type":"string","facet":true},{"name":"published_at","type":"int64"}]}`).want(t, 201)
		call(t, e, "POST", e.URL+"/collections/"+name+"/documents", `{"title":"A title with some words","site":"a","published_at":1,`+
			`"meta":{"text":"And a text with more words than the title has, which lies deeper"}}`).want(t, 201)
	}
	out, code, text := surveyed(t, e, "--index", "initc_*", e.URL)
	if code != 0 || rulesIn(text)["initc_*"] != "title, meta.text" {
		t.Errorf("init ended with %d: %s\n%s", code, out, text)
	}
	for _, said := range []string{"# initc_*: 3 indices, 3 documents.", "#date_field: published_at", "#host_field: site", "listen: 127.0.0.1:81", "api_key: ${ENGINE_API_KEY:-}"} {
		if !strings.Contains(text, said) {
			t.Errorf("nothing says %q:\n%s", said, text)
		}
	}

	wrong := *e
	wrong.Key = "wrong"
	if out, code, _ := surveyed(t, &wrong, e.URL); code != 1 || !strings.Contains(out, "Typesense does not take the credentials in ENGINE_API_KEY") {
		t.Errorf("init ended with %d: %s", code, out)
	}
	wrong.Key = newKey(t, e, `"documents:search","debug:list"`, `"initc_*"`)
	if out, code, _ := surveyed(t, &wrong, e.URL); code != 1 || !strings.Contains(out, "export ENGINE_API_KEY") {
		t.Errorf("init ended with %d: %s", code, out)
	}
}

// TestInitOnATerminal answers the questions of init on a pseudo terminal: to choose, to log in, and to trust.
func TestInitOnATerminal(t *testing.T) {
	if _, err := exec.LookPath("script"); err != nil {
		t.Skip("there is no script(1), which makes pseudo terminals")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	t.Run("a key", func(t *testing.T) {
		e := engines.Shared(t, engines.Typesense)
		direct := api{e, e.URL}
		for _, name := range []string{"inity-a", "inity-b"} {
			direct.drop(t, name)
			direct.create(t, name)
		}
		out := typed(t, path+" init --output t.yaml "+e.URL, []shownThenTyped{{"Key (it is not shown): ", "wrong"}, {"not take these", ""}, {"Key (it is not shown): ", e.Key}, {"Which of them?", "900"}, {"is none of them", ""}, {"Which of them?", "1"}})
		if strings.Contains(strings.ReplaceAll(out, e.URL, ""), e.Key) || !strings.Contains(out, "t.yaml is written") {
			t.Errorf("%s", out)
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		e := engines.Shared(t, engines.Typesense)
		out := typed(t, path+" init --output t.yaml "+e.URL+"; stty -a | grep -o '[-]*echo '", []shownThenTyped{{"Key (it is not shown): ", "\x03"}})
		if !strings.Contains(out, "interrupted") || !strings.Contains(out, "\necho ") || strings.Contains(out, "written.\n") {
			t.Errorf("%s", out)
		}
	})
	t.Run("a certificate", func(t *testing.T) {
		e := engines.Shared(t, engines.Elasticsearch)
		u, err := url.Parse(e.URL)
		if err != nil {
			t.Fatal(err)
		}
		p := newPKI(t)
		behind := relayTLS(t, &tls.Config{Certificates: []tls.Certificate{p.pair(t)}}, u.Host)
		out := typed(t, path+" init --output t.yaml http://"+behind, []shownThenTyped{{"Trust it from now on? [y/N] ", "n"}})
		if !strings.Contains(out, "the certificate is not trusted: give that of its authority with --ca-file") {
			t.Errorf("%s", out)
		}
		out = typed(t, path+" init --index none-such --output t.yaml http://"+behind, []shownThenTyped{{"Trust it from now on? [y/N] ", "y"}})
		if !strings.Contains(out, "the engine holds no none-such") {
			t.Errorf("%s", out)
		}
	})
}

// TestInitOnASecuredEngine asks an Elasticsearch with users and certificates.
func TestInitOnASecuredEngine(t *testing.T) {
	if os.Getenv("NEARDUP_SOAK") == "" {
		t.Skip("it starts an engine: set NEARDUP_SOAK")
	}
	p := newPKI(t)
	if err := os.Chmod(p.dir, 0o755); err != nil { // an engine may run as another user
		t.Fatal(err)
	}
	t.Setenv("NEARDUP_ENGINE_TLS", p.dir)
	e := engines.Own(t, engines.Elasticsearch)
	run := func(env ...string) (string, int, string) {
		cmd := asks(t, e, "--ca-file", p.file("ca.crt"), "--cert-file", p.file("tls.crt"), "--key-file", p.file("tls.key"), e.URL)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		text, _ := os.ReadFile(filepath.Join(cmd.Dir, "config.yaml"))
		return string(out), exitCode(t, err), string(text)
	}
	if out, code, _ := run(); code != 1 || !strings.Contains(out, "Elasticsearch wants credentials: export ENGINE_USERNAME and ENGINE_PASSWORD, or ENGINE_API_KEY") {
		t.Errorf("init ended with %d: %s", code, out)
	}
	out, code, text := run("ENGINE_USERNAME=neardup", "ENGINE_PASSWORD=neardup-test")
	if code != 0 || !strings.Contains(text, "password: ${ENGINE_PASSWORD:-}") || strings.Contains(out+text, "neardup-test") {
		t.Errorf("init ended with %d: %s\n%s", code, out, text)
	}
	cmd := asks(t, e, e.URL)
	if both, err := cmd.CombinedOutput(); exitCode(t, err) != 1 || !strings.Contains(string(both), "--ca-file") {
		t.Errorf("%s", both)
	}
}

// shownThenTyped is what a program shows, and what is then typed.
type shownThenTyped struct{ shows, types string }

// typed runs a command line on a pseudo terminal in a folder of its own, and returns all that the terminal showed.
func typed(t *testing.T, line string, exchanges []shownThenTyped) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "script", "-qec", "tty >tty; "+line, "/dev/null")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "SHELL=/bin/bash", "TERM=xterm", "ENGINE_API_KEY=", "ENGINE_USERNAME=", "ENGINE_PASSWORD=")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	shown, part := "", make([]byte, 4096)
	read := func(until string) bool {
		for from := len(shown); until == "" || !strings.Contains(shown[from:], until); {
			n, err := out.Read(part)
			shown += string(part[:n])
			if err != nil {
				return until == ""
			}
		}
		return true
	}
	for _, e := range exchanges {
		if e.types == "" {
			continue
		}
		if !read(e.shows) {
			t.Fatalf("it never showed %q: %s", e.shows, shown)
		}
		if strings.Contains(e.shows, "not shown") {
			unseen(t, ctx, filepath.Join(cmd.Dir, "tty"))
		}
		if _, err := in.Write([]byte(e.types + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	read("")
	_ = cmd.Wait() // what it showed tells how it ended
	for _, e := range exchanges {
		if !strings.Contains(shown, e.shows) {
			t.Errorf("it never showed %q: %s", e.shows, shown)
		}
	}
	return shown
}

// unseen waits until a terminal, whose name stands in a file, shows no more what is typed.
func unseen(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	for ctx.Err() == nil {
		name, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		state, err := exec.CommandContext(ctx, "stty", "-F", strings.TrimSpace(string(name)), "-a").Output()
		if err == nil && strings.Contains(string(state), " -echo ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("what is typed is still shown")
}
