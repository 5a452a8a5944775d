package main

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/logtest"
	"github.com/neardup/sidecar/internal/server"
)

// TestServeTo serves in front of an engine without a file, whether or not it shows its indices.
func TestServeTo(t *testing.T) {
	for name, want := range map[string]string{
		"open":   `In front of Elasticsearch 8\.19\.13 at URL: compares hits of news \(title, body\), and of all other indices by fields named title, body`,
		"locked": `In front of Elasticsearch at URL: compares hits by fields named title, body`,
	} {
		t.Run(name, func(t *testing.T) {
			engine := &surveyedEngine{t: t, version: "8.19.13", locked: name == "locked", indices: map[string]*surveyedIndex{"news": articles()}}
			url := engine.at()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			read, write := io.Pipe()
			var log logtest.Lines
			ended := make(chan int, 1)
			go func() {
				ended <- run(ctx, []string{"serve", "--to", url, "--listen", server.FreeNear("127.0.0.1:19201")}, strings.NewReader(""), write, &log)
				_ = write.Close()
			}()
			text := make([]byte, 2000)
			n, _ := io.ReadAtLeast(read, text, 100)
			said := string(text[:n])
			lines := regexp.MustCompile(strings.ReplaceAll("^"+want, "URL", regexp.QuoteMeta(url)) + ".*\nSend clients to (http://\\S+) instead.*\nIt writes no file.*\n$").FindStringSubmatch(said)
			if lines == nil {
				t.Fatalf("it says %q %s", said, log.String())
			}
			response := expect.Value(http.Get(lines[1] + "/"))(t)
			_ = response.Body.Close()
			stop()
			if code := <-ended; code != exitDone || name == "locked" != strings.Contains(log.String(), "note: Elasticsearch shows its indices only with credentials") {
				t.Errorf("exit code %d: %s", code, log.String())
			}
		})
	}
}

func TestServeToRefuses(t *testing.T) {
	e := &surveyedEngine{t: t, version: "8.19.13", indices: map[string]*surveyedIndex{}}
	url := e.at()
	for args, want := range map[string]string{
		"--to http://127.0.0.1:1":                                  "no engine can be reached at http://127.0.0.1:1: ",
		"--to " + url + " --config x.yaml":                         "--to serves without a configuration, and --config names one: ",
		"--listen :1":                                              "--listen goes with --to: ",
		"--to http://127.0.0.1:1 --listen x":                       `--listen: "x" is not an address`,
		"--to http://127.0.0.1:1 --listen " + url[len("http://"):]: " is taken: name another address with --listen",
	} {
		got := sidecar(t, append([]string{"serve"}, strings.Fields(args)...)...)
		if got.code != exitFailed || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
