package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/buildinfo"
	"github.com/neardup/sidecar/internal/expect"
)

// running is a sidecar that serves.
type running struct {
	engine, admin string // base URLs
	stop          context.CancelFunc
	ended         chan error
}

// serving runs the program until it listens. The first engine's address is the one given back.
func serving(t *testing.T, file string) *running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	logs, stderr := io.Pipe()
	r := &running{stop: stop, ended: make(chan error, 1)}
	go func() {
		err := Run(ctx, file, stderr, Options{Drain: DefaultDrain})
		_ = stderr.Close()
		r.ended <- err
	}()
	lines := bufio.NewScanner(logs)
	for r.engine == "" || r.admin == "" {
		if !lines.Scan() {
			t.Fatal("the sidecar ended before it listened")
		}
		var line struct{ Msg, Addr string }
		expect.JSON(t, lines.Bytes(), &line)
		switch line.Msg {
		case "listening":
			r.engine = "http://" + line.Addr
		case "admin listening":
			r.admin = "http://" + line.Addr
		}
	}
	go func() { _, _ = io.Copy(io.Discard, logs) }()
	return r
}

// call sends a request and returns status and body.
func call(t *testing.T, method, url, body string) (int, string) {
	t.Helper()
	request := expect.Value(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	request.Header.Set("Content-Type", "application/json")
	response := expect.Value(http.DefaultClient.Do(request))(t)
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode, string(expect.Value(io.ReadAll(response.Body))(t))
}

// ids returns the ids of a search's hits.
func ids(t *testing.T, base string) string {
	t.Helper()
	code, reply := call(t, "POST", base+"/news/_search", `{"query":{"match":{"title":"ferry"}}}`)
	var found struct {
		Hits struct {
			Hits []struct {
				ID string `json:"_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(reply), &found); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s", code, reply)
	}
	var all []string
	for _, hit := range found.Hits.Hits {
		all = append(all, hit.ID)
	}
	return strings.Join(all, " ")
}

const ferry = "the ferry to Saltmere was late again on Monday because the tide took its time and nobody on the quay was surprised"

// fill writes three documents, of which two say the same.
func fill(t *testing.T, base string) {
	t.Helper()
	for id, title := range map[string]string{"1": ferry, "2": strings.ToUpper(ferry), "3": "no ferry today"} {
		code, reply := call(t, "PUT", base+"/news/_doc/"+id+"?refresh=true", `{"title":"`+title+`"}`)
		expect.Must(t, http.StatusCreated, code, "%s", reply)
	}
}

func TestServeEmbedded(t *testing.T) {
	r := serving(t, configFile(t, `
log: {format: json}
admin: 127.0.0.1:0
engines:
  - {kind: embedded, listen: "127.0.0.1:0", indices: [{match: news, fields: [title]}]}
`))
	code, reply := call(t, "PUT", r.engine+"/news", `{}`)
	expect.Must(t, http.StatusOK, code, "%s", reply)
	fill(t, r.engine)
	if got := ids(t, r.engine); len(got) != len("1 3") || !strings.Contains(got, "3") {
		t.Errorf("hits: %s", got)
	}
	for path, want := range map[string]string{"/livez": "ok\n", "/readyz": "engine embedded: ok\n", "/version": buildinfo.Of().String() + "\n"} {
		if code, got := call(t, "GET", r.admin+path, ""); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %q", path, code, got)
		}
	}
	for _, length := range []int{100_000, 200_000} {
		code, got := call(t, "GET", r.engine+"/news/_search?size=1"+strings.Repeat("&a", length/2), "")
		expect.Same(t, length > maxHeader, code == http.StatusRequestHeaderFieldsTooLarge, "a URL of %d bytes is refused: %d %.200s", length, code, got)
	}
	r.stop()
	expect.OK(t, <-r.ended)
	if _, err := net.Dial("tcp", strings.TrimPrefix(r.engine, "http://")); err == nil {
		t.Error("it still listens")
	}
}

func TestServeSaysWhatItCanNotBind(t *testing.T) {
	taken := expect.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	err := Run(t.Context(), configFile(t, fmt.Sprintf(`
admin: ""
engines:
  - {kind: embedded, listen: "127.0.0.1:0", indices: [{match: a, fields: [t]}]}
  - {kind: embedded, name: second, listen: %q, indices: [{match: a, fields: [t]}]}
`, taken.Addr())), io.Discard, Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "engines[1].listen: ") || !strings.Contains(err.Error(), "in use: choose another") {
		t.Error(err)
	}
}

// TestServeDrains stops the sidecar while a request is under way: the request ends well, a new one is not taken.
func TestServeDrains(t *testing.T) {
	arrived, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-answer
		_, _ = io.WriteString(w, "late")
	}))
	defer server.Close()
	r := serving(t, configFile(t, fmt.Sprintf(`
log: {format: json}
admin: 127.0.0.1:0
engines:
  - {kind: elasticsearch, listen: "127.0.0.1:0", urls: [%q], indices: [{match: a, fields: [t]}]}
`, server.URL)))
	body := make(chan string, 1)
	go read(r.engine+"/slow", body)
	<-arrived
	r.stop()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		connection, err := net.Dial("tcp", strings.TrimPrefix(r.engine, "http://"))
		if err != nil {
			break
		}
		_ = connection.Close()
		if time.Now().After(deadline) {
			t.Fatal("it still listens")
		}
	}
	select {
	case err := <-r.ended:
		t.Fatalf("ended before the request did: %v", err)
	default:
	}
	close(answer)
	expect.Same(t, "late<nil>", <-body, "the request under way")
	expect.OK(t, <-r.ended)
}

// configFile puts a configuration into a file of its own and returns its name.
func configFile(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
