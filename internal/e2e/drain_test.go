package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// answerOf is how a request ended that was under way.
type answerOf struct {
	status int
	body   string
	close  bool // the reply said that the connection ends
	err    error
}

// under sends a request in the background.
func under(e *engines.Engine, method, url string, body io.Reader) <-chan answerOf {
	ended := make(chan answerOf, 1)
	go func() {
		r, err := requestOf(context.Background(), e, method, url, body, "Content-Type", "application/x-ndjson")
		if err != nil {
			ended <- answerOf{err: err}
			return
		}
		resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
		if err != nil {
			ended <- answerOf{err: err}
			return
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		ended <- answerOf{resp.StatusCode, string(data), resp.Close, err}
	}()
	return ended
}

// slowly downloads a URL, and reads on behind the first bytes when it is told to.
func slowly(t *testing.T, e *engines.Engine, method, url, body string) (goOn func() string) {
	t.Helper()
	r := must(requestOf(context.Background(), e, method, url, strings.NewReader(body)))(t)
	// The system is to hold little of the reply, or all of it would be on its way before the client reads.
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			err = conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		}
		return conn, err
	}
	resp := must((&http.Client{Transport: &http.Transport{DialContext: dial, DisableCompression: true}}).Do(r))(t)
	start := make([]byte, 100)
	if _, err := io.ReadFull(resp.Body, start); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode, err)
	}
	return func() string {
		defer resp.Body.Close()
		rest, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return string(start) + string(rest)
	}
}

// TestDrain sends SIGTERM while a bulk is being uploaded and a large reply downloaded: /readyz says so at once, new connections are
// refused, both requests end well, the reply is whole and all documents are stored; and the sidecar ends with 0.
func TestDrain(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index := "o-drain-1"
		direct := api{e, e.URL}
		direct.drop(t, index)
		if e.Kind == engines.Typesense {
			direct.create(t, index) // it indexes what is declared alone
		} else {
			call(t, e, "PUT", e.URL+"/"+index, `{"mappings":{"properties":{"filler":{"type":"object","enabled":false}}}}`).want(t, 200)
		}
		listen := map[string]string{"one": "127.0.0.1:0"}
		d := daemonOf(t, engineText(e, listen, "o-drain-*", [2]string{"one", "threshold: 0.7"}))
		base := d.base(t, "one")
		filler := strings.Repeat("many different words stand here to be read ", 1000)
		line := func(i int) string {
			filler := filler
			if i >= 200 {
				filler = filler[:4000]
			}
			document := fmt.Sprintf(`{"id":"d%03d","title":"title %d","body":"some words","place":%d,"filler":%q}`+"\n", i, i, i, filler)
			if e.Kind == engines.Typesense {
				return document
			}
			return fmt.Sprintf(`{"index":{"_index":%q,"_id":"d%03d"}}`+"\n%s", index, i, document)
		}
		var first strings.Builder
		for i := range 200 {
			first.WriteString(line(i))
		}
		direct.loadLines(t, index, first.String())

		path, method, ask := "/"+index+"/_search?neardup=off", "POST", `{"size":200,"sort":[{"place":"asc"}]}`
		bulk := "/_bulk"
		if e.Kind == engines.Typesense {
			path, method, ask = "/collections/"+index+"/documents/export?exclude_fields=neardup_sketch", "GET", ""
			bulk = "/collections/" + index + "/documents/import"
		}
		whole := call(t, e, method, base+path, ask).want(t, 200).body
		goOn := slowly(t, e, method, base+path, ask)
		upload, end := io.Pipe()
		answer := under(e, "POST", base+bulk, upload)
		for i := 200; i < 300; i++ {
			must(io.WriteString(end, line(i)))(t)
		}

		d.serves(t, 2) // what was written can be as far as a connection that is not accepted yet
		d.signal(t, syscall.SIGTERM)
		same(t, any(2.0), d.await(t, "draining", 1)[0]["requests"], "requests under way")
		if status, body := statusAt(t, d.base(t, "")+"/readyz"); status != 503 || !strings.HasPrefix(body, "draining\n") {
			t.Errorf("/readyz says %d %s", status, body)
		}
		if !until(func() bool { return !listens(base) }) {
			t.Error("it still listens")
		}
		for i := 300; i < 400; i++ {
			must(io.WriteString(end, line(i)))(t)
		}
		end.Close()
		if got := <-answer; got.err != nil || got.status != 200 || strings.Contains(got.body, `"errors":true`) || !got.close {
			t.Errorf("the bulk: %d %v, closes: %v, %.300s", got.status, got.err, got.close, got.body)
		}
		if got := goOn(); untimedText(got) != untimedText(string(whole)) {
			t.Errorf("the download has %d bytes, want %d", len(got), len(whole))
		}
		same(t, 0, d.ended(t), "exit code")
		same(t, 400, storedIn(t, e, index), "stored documents")
	})
}

func untimedText(s string) string { return string(untimed([]byte(s))) }

// stuck is an engine that takes connections and never answers.
func stuck(t *testing.T) *engines.Engine {
	t.Helper()
	addr := inject.Listen(t, nil, func(conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) })
	return &engines.Engine{Kind: engines.Elasticsearch, URL: "http://" + addr}
}

// serves waits until so many requests for the engine one are under way.
func (d *daemon) serves(t *testing.T, n int) {
	t.Helper()
	line := fmt.Sprintf("neardup_requests_in_flight{engine=\"one\"} %d\n", n)
	serving := until(func() bool {
		_, metrics := statusAt(t, d.base(t, "")+"/metrics")
		return strings.Contains(metrics, line)
	})
	if !serving {
		t.Fatalf("there are not %d requests under way", n)
	}
}

// TestDrainEnds has requests that never end: at the end of the drain, or at a second signal, the sidecar does.
func TestDrainEnds(t *testing.T) {
	e := stuck(t)
	text := engineText(e, map[string]string{"one": "127.0.0.1:0"}, "x-*", [2]string{"one", "threshold: 0.7"})
	begin := func(t *testing.T, flags ...string) (*daemon, <-chan answerOf) {
		d := daemonOf(t, text, flags...)
		answer := under(e, "GET", d.base(t, "one")+"/slow", nil)
		d.serves(t, 1)
		d.signal(t, syscall.SIGTERM)
		same(t, any(1.0), d.await(t, "draining", 1)[0]["requests"], "requests under way")
		return d, answer
	}
	t.Run("at the end of the drain", func(t *testing.T) {
		began := time.Now()
		d, answer := begin(t, "--drain", "1s")
		if code := d.ended(t); code != 1 || !strings.Contains(fmt.Sprint(d.with("ended")), "requests were cut off at the end of the drain of 1s: 1") {
			t.Errorf("exit code %d", code)
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("it took %v", took)
		}
		if got := <-answer; got.err == nil {
			t.Errorf("the client got %d", got.status)
		}
	})
	t.Run("at a second signal", func(t *testing.T) {
		d, _ := begin(t)
		d.signal(t, syscall.SIGTERM)
		same(t, -int(syscall.SIGTERM), d.ended(t), "exit code")
	})
}

// TestDrainDelay goes on taking connections for as long as the delay is, while /readyz says that it drains and replies tell clients to
// come no more. Clients that follow that see no failure.
func TestDrainDelay(t *testing.T) {
	e := engines.Shared(t, engines.Elasticsearch)
	d := daemonOf(t, engineText(e, map[string]string{"one": "127.0.0.1:0"}, "x-*", [2]string{"one", "threshold: 0.7"}), "--drain-delay", "1s")
	base := d.base(t, "one")
	conn := must(net.Dial("tcp", strings.TrimPrefix(base, "http://")))(t)
	defer conn.Close()
	reader := bufio.NewReader(conn)
	again := func() *http.Response {
		t.Helper()
		must(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		resp := must(http.ReadResponse(reader, nil))(t)
		_, _ = io.Copy(io.Discard, resp.Body)
		return resp
	}
	if again().Close {
		t.Error("the connection ends before the end")
	}
	began := time.Now()
	d.signal(t, syscall.SIGTERM)
	d.await(t, "draining", 1)
	if status, _ := statusAt(t, d.base(t, "")+"/readyz"); status != 503 {
		t.Errorf("/readyz says %d", status)
	}
	if resp := again(); !resp.Close || resp.StatusCode != 200 {
		t.Errorf("the reply on a connection that was open: %d, closes: %v", resp.StatusCode, resp.Close)
	}
	if status, _ := statusAt(t, base+"/"); status != 200 {
		t.Errorf("a new connection within the delay: %d", status)
	}
	if code := d.ended(t); code != 0 || time.Since(began) < time.Second {
		t.Errorf("exit code %d after %v", code, time.Since(began))
	}
}

// TestDrainWithoutAReader ends who reads the log: the sidecar goes on.
func TestDrainWithoutAReader(t *testing.T) {
	d := daemonOf(t, embeddedText("one", "127.0.0.1:0", ""))
	d.deaf(t)
	for i := range 3 {
		d.signal(t, syscall.SIGHUP) // each makes a line
		read := fmt.Sprintf("neardup_config_reloads_total{result=\"ok\"} %d\n", i+1)
		if !until(func() bool {
			_, metrics := statusAt(t, d.base(t, "")+"/metrics")
			return strings.Contains(metrics, read)
		}) {
			t.Fatalf("metrics do not say %s", read)
		}
		if status, _ := statusAt(t, d.base(t, "one")+"/"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
	d.signal(t, syscall.SIGTERM)
	same(t, 0, d.ended(t), "exit code")
}
