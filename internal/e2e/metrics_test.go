package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// monitored is a sidecar whose admin listener and log are looked at.
type monitored struct {
	*daemon
	base, admin string
}

// monitor starts a sidecar with a configuration file. It ends with the test, or by stop.
func monitor(t *testing.T, file string, env []string, args ...string) *monitored {
	t.Helper()
	d := &daemon{file: file, cmd: command(t, context.Background(), append([]string{"serve", "--config", file}, args...)...)}
	d.cmd.Env = append(os.Environ(), env...)
	d.start(t)
	engine, admin := d.await(t, "listening", 1), d.await(t, "admin listening", 1)
	return &monitored{d, fmt.Sprint("http://", engine[0]["addr"]), fmt.Sprint("http://", admin[0]["addr"])}
}

func (w *monitored) lines() (list []string) {
	for _, line := range w.with("") {
		list = append(list, fmt.Sprint(line))
	}
	return list
}

// stop ends the sidecar in an orderly way, and returns how long that took.
func (w *monitored) stop(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	w.signal(t, syscall.SIGTERM)
	if code := w.ended(t); code != 0 {
		t.Errorf("serve ended with %d: %s", code, w.lines())
	}
	return time.Since(began)
}

// scraped returns the page of metrics, and the value of each series by its name and labels.
func scraped(t *testing.T, admin string) (text string, series map[string]float64) {
	t.Helper()
	resp := must(http.Get(admin + "/metrics"))(t)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode, err)
	}
	series = map[string]float64{}
	for line := range strings.Lines(string(body)) {
		if name, value, found := cutLast(strings.TrimSpace(line), " "); found && !strings.HasPrefix(line, "#") {
			if series[name], err = strconv.ParseFloat(value, 64); err != nil {
				t.Fatal(line, err)
			}
		}
	}
	return string(body), series
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// TestMetricsOfEngines: what a real engine's traffic shows on /metrics of the built program: what was sent, and nothing of what
// it said.
func TestMetricsOfEngines(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "meter-canary"
		w := monitor(t, config(t, e, setup{match: "meter-*"}), nil)
		through := api{e, w.base}
		through.create(t, index)
		list := documents(t)[:120]
		through.load(t, index, list)
		found := through.search(t, index, "*", 0, 10, "")
		through.search(t, index, "canaryword", 0, 10, "&neardup=off")
		folded := 0
		if _, rest, ok := strings.Cut(found.outcome, "folded="); ok {
			_, _ = fmt.Sscanf(rest, "%d", &folded)
		}
		text, series := scraped(t, w.admin)
		of := func(name, labels string) float64 {
			return series["neardup_"+name+"{"+strings.Replace(labels, "ENGINE", fmt.Sprintf("engine=%q", e.Kind), 1)+"}"]
		}
		for deadline := time.Now().Add(30 * time.Second); of("requests_in_flight", "ENGINE") > 0 && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond) // the last request's client has its answer before we are done with it
			text, series = scraped(t, w.admin)
		}
		for name, want := range map[string][2]float64{
			"documents enriched": {of("documents_total", `change="enriched",ENGINE`), float64(len(list))},
			"searches":           {of("requests_total", `ENGINE,kind="search"`), 2},
			"searches timed":     {of("engine_seconds_count", `ENGINE,kind="search"`), 2},
			"ours timed":         {of("added_seconds_count", `ENGINE,kind="search"`), 2},
			"collapsed":          {of("searches_total", `ENGINE,outcome="collapsed",reason=""`), 1},
			"off":                {of("searches_total", `ENGINE,outcome="bypassed",reason="off"`), 1},
			"folded":             {of("folded_total", "ENGINE"), float64(folded)},
			"under way":          {of("requests_in_flight", "ENGINE"), 0},
			"held":               {of("held_bytes", "ENGINE"), 0},
			"errors":             {of("engine_errors_total", `ENGINE,what="cut"`), 0},
		} {
			if want[0] != want[1] {
				t.Errorf("%s: %v, want %v", name, want[0], want[1])
			}
		}
		if of("hits_total", `ENGINE,sketch="stored"`) < 10 || of("engine_seconds_sum", `ENGINE,kind="write"`) <= 0 {
			t.Errorf("%s", text)
		}
		for _, canary := range []string{"canary", list[0].Title, e.Key + "\"", "127.0.0.1"} {
			if canary != "\"" && strings.Contains(text, canary) {
				t.Errorf("the page holds %q", canary)
			}
		}
		w.stop(t)
	})
}
