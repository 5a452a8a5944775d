package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// Secrets, each of which begins with the same letters.
const (
	bird        = "canary7bird"
	ofOperator  = bird + "-operator"
	ofSeed      = bird + "-seed"
	ofFile      = bird + "-file"
	ofVariable  = bird + "-variable"
	ofClient    = bird + "-client"
	ofDocument  = bird + "-document"
	ofCollector = bird + "-collector"
)

// shows returns a place of the text where a secret stands, in clear or in one of the forms in which it may travel.
func shows(text string) string {
	forms := []string{bird, hex.EncodeToString([]byte(bird)), url.QueryEscape("7" + bird)[1:]}
	for shift := range 3 { // base64 of it, wherever it begins in what is encoded
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + bird))
		forms = append(forms, whole[4:len(whole)-4])
	}
	for _, form := range forms {
		if at := strings.Index(strings.ToLower(text), strings.ToLower(form)); at >= 0 {
			return text[max(0, at-200):min(len(text), at+100)]
		}
	}
	return ""
}

// moody is an engine that answers as it is told to, and repeats to whoever asks what he said.
type moody struct {
	mood atomic.Pointer[string]
	addr string
}

var moods = []string{"refuses", "garbage", "wrong JSON", "cuts the head", "cuts the body", "says more than asked", "busy", "lies about gzip", "panics", "hangs up"}

func newMoody(t *testing.T) *moody {
	t.Helper()
	m := &moody{}
	m.be(moods[0])
	m.addr = inject.Listen(t, nil, m.talk)
	return m
}

func (m *moody) be(mood string) { m.mood.Store(&mood) }

func (m *moody) talk(conn net.Conn, _ int) {
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, _ := io.ReadAll(r.Body)
		said := fmt.Sprintf("%s %v %.300s", r.RequestURI, r.Header, body)
		quoted := fmt.Sprintf("%q", said)
		status, text, extra := "200 OK", `{"took":1,"hits":{"total":1,"hits":[{"_id":"1","_source":{"title":`+quoted+`}}]}}`, ""
		switch *m.mood.Load() {
		case "refuses":
			status, text = "401 Unauthorized", `{"error":{"type":"security_exception","reason":`+quoted+`},"status":401,"message":`+quoted+`}`
		case "garbage":
			status, text = "200 OK", "\x00\xff<html>"+said
		case "wrong JSON":
			text = `{"hits":{"hits":` + quoted
		case "busy":
			status, text = "503 Service Unavailable", quoted
		case "lies about gzip":
			extra = "Content-Encoding: gzip\r\n"
		case "cuts the head":
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Said: "+strings.ReplaceAll(said, "\n", " "))
			return
		case "cuts the body":
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 2*len(text), text)
			return
		case "panics":
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK "+said+"\r\n"+said+"\r\n: "+said+"\r\n\r\n")
			return
		case "hangs up":
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", status, extra, len(text), text)
		if *m.mood.Load() == "says more than asked" {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nX-Said: "+strings.ReplaceAll(said, "\n", " ")+"\r\n\r\n")
			time.Sleep(20 * time.Millisecond)
			return
		}
	}
}

// secretConfigs are configurations with a secret in every place where one may stand, by kind and way to log in.
func secretConfigs(t *testing.T, address string) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(file, []byte(ofFile+"\n"), 0o600))
	all := map[string]string{}
	for name, c := range map[string]struct{ kind, credentials string }{
		"key":       {engines.Elasticsearch, "{api_key: " + ofOperator + "}"},
		"password":  {engines.OpenSearch, "{username: " + ofOperator + ", password: '${file:" + file + "}'}"},
		"bearer":    {engines.Elasticsearch, "{bearer: '${NEARDUP_CANARY}'}"},
		"typesense": {engines.Typesense, "{api_key: 'x${file:" + file + "}${NEARDUP_CANARY}'}"},
	} {
		all[name] = fmt.Sprintf(`log: {format: json, level: debug}
admin: 127.0.0.1:0
sketch: {seed: %s}
engines:
  - name: e
    listen: 127.0.0.1:0
    kind: %s
    urls: ["%s"]
    credentials: %s
    indices:
      - {match: "a-*", fields: [title], bands: auto, on_duplicate: tag}
      - {match: "b-*", fields: [title], expand: source, sketch: {seed: %s}}
`, ofSeed, c.kind, address, c.credentials, ofSeed)
	}
	return all
}

// clientsSecrets are the ways in which clients log in, as headers and as queries.
var clientsSecrets = []struct{ header, value, query string }{
	{"Authorization", "ApiKey " + ofClient, ""},
	{"Authorization", "Bearer " + ofClient, ""},
	{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+ofClient)), ""},
	{"Authorization", "AWS4-HMAC-SHA256 Credential=" + ofClient + "/20260101/eu/es/aws4_request, SignedHeaders=host, Signature=" + ofClient, ""},
	{"Authorization", "Negotiate " + ofClient, ""},
	{"Es-Secondary-Authorization", "ApiKey " + ofClient, ""},
	{"Proxy-Authorization", "Basic " + ofClient, ""},
	{"Cookie", "security=" + ofClient, ""},
	{"X-Typesense-Api-Key", ofClient, ""},
	{"", "", "x-typesense-api-key=" + ofClient},
	{"", "", "x-typesense-api-key=" + base64.StdEncoding.EncodeToString([]byte("HASH"+ofClient+`{"filter_by":"user:1"}`))},
	{"", "", "q=" + ofClient + "&query_by=title&;=" + ofClient + "%zz"},
	{"Content-Encoding", ofClient, ""},
	{"Content-Type", ofClient, ""},
	{"Expect", ofClient, ""},
	{"Neardup", ofClient, ""},
}

// requestsWithSecrets are requests of every kind, with a secret in the body too.
func requestsWithSecrets(kind string) []string {
	document := `{"title":"` + ofDocument + ` of some words and others"}`
	if kind == engines.Typesense {
		return []string{
			"GET /health", "GET /collections/a-1/documents/search?q=" + ofClient + "&query_by=title", "POST /collections/a-1/documents " + document,
			"POST /collections/a-1/documents/import?action=upsert " + document + "\n" + document, "POST /multi_search " + `{"searches":[{"collection":"b-1","q":"` + ofDocument + `"}]}`,
			"GET /collections/b-1/documents/" + ofDocument, "POST /_neardup/b-1 " + document, "GET /_neardup/b-1/" + ofDocument, "POST /multi_search {" + ofDocument,
		}
	}
	return []string{
		"GET /", "GET /b-1/_search?q=" + ofClient, "POST /a-1/_search " + `{"query":{"match":{"title":"` + ofDocument + `"}}}`, "PUT /a-1/_doc/" + ofDocument + " " + document,
		"POST /_bulk " + `{"index":{"_index":"b-1"}}` + "\n" + document + "\n", "POST /a-1/_update/1 " + `{"doc":` + document + `}`, "GET /b-1/_doc/" + ofDocument,
		"POST /_msearch " + `{"index":"a-1"}` + "\n" + `{"query":"` + ofDocument + `"}` + "\n", "POST /_neardup/b-1 " + document, "GET /_neardup/b-1/" + ofDocument, "POST /a-1/_search {" + ofDocument,
	}
}

// TestServeShowsNoSecret runs a sidecar at its most talkative while everything goes wrong, and looks through all that it ever shows but
// what an engine itself answered.
func TestServeShowsNoSecret(t *testing.T) {
	for name := range secretConfigs(t, "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // much of it is waiting
			engine := newMoody(t)
			text := secretConfigs(t, "http://"+engine.addr)[name]
			kind := engines.Elasticsearch
			if name == "typesense" {
				kind = engines.Typesense
			}
			var out bytes.Buffer
			d := &daemon{file: filepath.Join(t.TempDir(), "config.yaml")}
			d.write(t, text)
			d.cmd = command(t, context.Background(), "serve", "--config", d.file, "--pprof", "--drain", "1s")
			d.cmd.Stdout = &out
			d.cmd.Env = append(os.Environ(), "NEARDUP_CANARY="+ofVariable, "OTEL_EXPORTER_OTLP_HEADERS=authorization="+ofCollector)
			d.start(t)
			d.await(t, "admin listening", 1)
			base, admin := d.base(t, "e"), d.base(t, "")
			see := func(what, text string) {
				same(t, "", shows(text), "%s", what)
			}
			pages := func(when string) {
				for _, page := range []string{"/", "/livez", "/readyz", "/readyz?verbose", "/version", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline",
					"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/symbol", "/nothing"} {
					_, body, err := once(&http.Transport{}, admin+page)
					if err != nil {
						t.Error(err)
					}
					see(when+": "+page, body)
				}
			}
			for i, mood := range moods {
				engine.be(mood)
				sendSecrets(base, kind, i, nil)
			}
			pages("in a bad mood")
			engineDown := strings.Replace(text, engine.addr, "127.0.0.1:1", 1)
			d.reload(t, engineDown)
			sendSecrets(base, kind, 0, func(request string, resp *http.Response) {
				head := fmt.Sprint(resp.Header)
				body, _ := io.ReadAll(resp.Body)
				see("the answer of a sidecar without an engine to "+request, head+string(body))
			})
			pages("without an engine")
			d.reload(t, strings.Replace(engineDown, "http:", "https:", 1))
			sendSecrets(base, kind, 0, nil)
			for _, wrong := range wrongConfigs(text) {
				d.reload(t, wrong)
			}
			_ = d.cmd.Process.Signal(syscall.SIGQUIT) // the stacks of all goroutines
			<-d.done
			_ = d.cmd.Wait()
			lines := 0
			for _, line := range d.lines {
				lines++
				see("log", fmt.Sprint(line))
			}
			see("standard output", out.String())
			if lines < 30 {
				t.Errorf("only %d lines of log: nothing went wrong", lines)
			}
			t.Logf("%d lines of log", lines)
		})
	}
}

// sendSecrets sends requests of every kind with every secret of clients; what is not nil gets the answers.
func sendSecrets(base, kind string, turn int, got func(request string, resp *http.Response)) {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i, line := range requestsWithSecrets(kind) {
		method, rest, _ := strings.Cut(line, " ")
		path, body, _ := strings.Cut(rest, " ")
		// A few of the ways each time: over all turns every pair comes.
		for j := range 3 {
			c := clientsSecrets[(i+turn*3+j*5)%len(clientsSecrets)]
			target := base + path
			if c.query != "" {
				target += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + c.query
			}
			r, err := http.NewRequest(method, target, strings.NewReader(body))
			if err != nil {
				continue
			}
			r.Header.Set("Content-Type", "application/json")
			if c.header != "" {
				r.Header.Set(c.header, c.value)
			}
			resp, err := client.Do(r)
			if err != nil {
				continue // the connection was cut, as the engine cut ours
			}
			if got != nil {
				got(line, resp)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
}

// wrongConfigs are configurations that are refused, of which each has a secret in the wrong place or of the wrong form.
func wrongConfigs(text string) (all []string) {
	change := func(old, new string) { all = append(all, strings.Replace(text, old, new, 1)) }
	for _, url := range []string{
		"http://u:" + ofOperator + "@h:1", "htp://u:" + ofOperator + "@h:1", "u:" + ofOperator + "@h:1", "http://h:1/?key=" + ofOperator, "http://h:1/#" + ofOperator,
		"http://u:%zz" + ofOperator + "@h:1", ofOperator, "http://u:a@b/" + ofOperator + "@h:1",
	} {
		before, after, _ := strings.Cut(text, `urls: ["`)
		_, after, _ = strings.Cut(after, `"]`)
		all = append(all, before+`urls: ["`+url+`"]`+after)
	}
	change("credentials: {", "credentials: {token: "+ofOperator+", ")
	change("credentials: {", "credentials: ["+ofOperator+"] #")
	change("credentials: {", "credentials: "+ofOperator+" #")
	change("credentials: {", "credentials: {api_key: ["+ofOperator+"], bearer: {x: "+ofOperator+"}} #")
	change("credentials: {", "credentials: {username: "+ofOperator+"} #")
	change("credentials: {", "credentials: {username: a, password: b, api_key: '${"+ofOperator+"}'} #")
	change("credentials: {", "credentials: {api_key: '${file:/nothing/"+"there}', password: "+ofOperator+"} #")
	change("seed: ", "seed: {x: "+ofSeed+"} #")
	change("seed: ", "seed: [] # ")
	change("seed: ", "seed: '"+ofSeed)
	change("credentials: {", "credentials: {{"+ofOperator)
	change("engines:", "traces: {endpoint: 'http://u:"+ofCollector+"@h:1/?x="+ofCollector+"'}\nengines:")
	change("engines:", "traces: {endpoint: '"+ofCollector+"'}\nengines:")
	return all
}

// TestCommandsShowNoSecret runs every command while the engine is away, refuses or talks rubbish, and with configurations that are wrong.
func TestCommandsShowNoSecret(t *testing.T) {
	engine := newMoody(t)
	t.Setenv("NEARDUP_CANARY", ofVariable)
	folder := t.TempDir()
	run := func(name, text string, args ...string) (shown string, code int) {
		file := filepath.Join(folder, "config.yaml")
		check(t, os.WriteFile(file, []byte(text), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
		defer cancel()
		cmd := command(t, ctx, append(args, "--config", file)...)
		cmd.Stdin = strings.NewReader(`{"title":"` + ofDocument + ` of some words"}`)
		var both bytes.Buffer
		cmd.Stdout, cmd.Stderr = &both, &both
		err := cmd.Run()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && ctx.Err() == nil {
			t.Fatal(err)
		}
		same(t, "", shows(both.String()), "%s: %v", name, args)
		if strings.Contains(both.String(), "panic:") {
			t.Errorf("%s: %v: %s", name, args, both.String())
		}
		return both.String(), cmd.ProcessState.ExitCode()
	}
	commands := []string{"doctor", "doctor --output json", "setup", "setup --dry-run", "verify --index a-1", "reindex --index a-1", "similar --index b-1 1", "remove --index a-1"}
	ways := 0
	for name, text := range secretConfigs(t, "http://"+engine.addr) {
		for _, args := range []string{"config check", "config print"} {
			if out, code := run(name, text, strings.Fields(args)...); code != 0 || args == "config print" && !strings.Contains(out, "…") {
				t.Errorf("%s: %s: code %d: %s", name, args, code, out)
			}
		}
		for i, args := range commands { // over all ways to log in, each command meets every mood
			mood := []string{"refuses", "garbage", "wrong JSON", "hangs up"}[(i+ways)%4]
			engine.be(mood)
			run(name+", the engine "+mood, text, strings.Fields(args)...)
		}
		ways++
		run(name+", no engine", strings.Replace(text, engine.addr, "127.0.0.1:1", 1), "doctor")
		run(name+", no TLS", strings.Replace(text, "http:", "https:", 1), "setup")
	}
	for name, text := range secretConfigs(t, "http://"+engine.addr) {
		if name != "key" && name != "typesense" {
			continue
		}
		for i, wrong := range wrongConfigs(text) {
			args := []string{"config", []string{"check", "print"}[i%2]}
			if out, code := run(fmt.Sprintf("%s, wrong %d", name, i), wrong, args...); code == 0 {
				t.Errorf("%s, wrong %d: taken: %s", name, i, out)
			}
		}
	}
}
