package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/neardup/sidecar/internal/faults"
	"github.com/neardup/sidecar/internal/rule"

	dto "github.com/prometheus/client_model/go"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// exported returns what a registry shows: the value of each series as "name label=value", of histograms their count, and their
// sum behind _sum.
func exported(t testing.TB, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families := expect.Value(from.Gather())(t)
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			key := strings.TrimPrefix(family.GetName(), "neardup_")
			labels := ""
			for _, pair := range m.Label {
				labels += " " + pair.GetName() + "=" + pair.GetValue()
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				all[key+labels] = m.Counter.GetValue()
			case dto.MetricType_GAUGE:
				all[key+labels] = m.Gauge.GetValue()
			default:
				all[key+labels] = float64(m.Histogram.GetSampleCount())
				all[key+"_sum"+labels] = m.Histogram.GetSampleSum()
			}
		}
	}
	return all
}

// metered is a sidecar whose metrics can be read.
type metered struct {
	front
	*prometheus.Registry
}

func serveMetered(t testing.TB, e http.Handler, change func(*proxy.Engine)) metered {
	t.Helper()
	registry := prometheus.NewRegistry()
	f := serve(t, e, func(e *proxy.Engine) {
		e.Metrics = proxy.NewMetrics(registry)
		e.Open = nil
		if change != nil {
			change(e)
		}
	})
	return metered{f, registry}
}

// want fails the test unless the series come to have the values.
func (m metered) want(t *testing.T, want map[string]float64) {
	t.Helper()
	var got map[string]float64
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		got = exported(t, m.Registry)
		good := true
		for key, value := range want {
			v, ok := got[key]
			good = good && ok && v == value
		}
		if good {
			return
		}
	}
	for key, value := range want {
		expect.Same(t, value, got[key], "%s", key)
	}
	t.Logf("%v", got)
}

func TestMetricsOfEachFlow(t *testing.T) {
	e := newEngine("news-1", "other-1")
	e.answer = func(w http.ResponseWriter, a arrival) {
		if strings.Contains(a.uri, "_search") {
			searching(t)(w, a)
			return
		}
		io.WriteString(w, `{"took":1,"errors":false,"items":[]}`)
	}
	m := serveMetered(t, e, nil)
	do(t, "GET", m.url+"/_cat/health", "")
	do(t, "GET", m.url+"/news-1/_doc/1", "")
	do(t, "POST", m.url+"/_bulk", bulk("news-1", 3)+bulk("other-1", 2))
	do(t, "POST", m.url+"/news-1/_doc/1", `{"title":"x"}`, "Content-Encoding: gzip")
	refills := 0.0
	for _, query := range []string{"", "?neardup=dry_run"} {
		var rounds float64
		_, text, _ := strings.Cut(do(t, "POST", m.url+"/news-1/_search"+query, `{}`).header.Get("Neardup"), "rounds=")
		expect.Value(fmt.Sscan(strings.ReplaceAll(text, ";", " "), &rounds))(t)
		refills += rounds - 1
	}
	do(t, "POST", m.url+"/news-1/_search?neardup=off", `{}`)
	do(t, "POST", m.url+"/news-1/_search?neardup=perhaps", `{}`)
	do(t, "POST", m.url+"/other-1/_search", `{}`)
	m.want(t, map[string]float64{
		"requests_total kind=pass": 1, "requests_total kind=read": 1, "requests_total kind=write": 2, "requests_total kind=search": 5,
		"documents_total change=enriched":                     3,
		"writes_refused_total":                                1,
		"searches_total outcome=collapsed reason=":            1,
		"searches_total outcome=dry_run reason=":              1,
		"searches_total outcome=bypassed reason=off":          1,
		"searches_total outcome=bypassed reason=unconfigured": 1,
		"searches_total outcome=refused reason=control":       1,
		"folded_total":                          1,
		"would_fold_total":                      1,
		"hits_total sketch=stored":              8,
		"hits_total sketch=missing":             0,
		"requests_in_flight":                    0,
		"engine_seconds kind=search":            4, // the bad control never came there
		"added_seconds kind=search":             5,
		"added_seconds kind=pass":               1,
		"engine_errors_total what=dial":         0,
		"clients_gone_total":                    0,
		"cursors":                               0,
		"refill_rounds_total":                   refills,
		"searches_total outcome=native reason=": 0,
	})
}

func TestEngineErrorsByWhatHappened(t *testing.T) {
	for what, reply := range map[string]string{
		"dial": "", "cut": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "garbage": "SSH-2.0-OpenSSH_9\r\n\r\n", "timeout": "",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			registry := prometheus.NewRegistry()
			node := "http://" + faults.Listen(t, nil, func(conn net.Conn, _ int) {
				_, _ = conn.Read(make([]byte, 4096))
				if io.WriteString(conn, reply); reply == "" {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
			if what == "dial" {
				node = nobody(t)
			}
			f := serveNodes(t, []string{node}, func(e *proxy.Engine) {
				transport := proxy.NewTransport()
				transport.ResponseHeaderTimeout = time.Second
				e.Metrics, e.Transport = proxy.NewMetrics(registry), transport
			})
			_, _ = try(t, "GET", f.url+"/_cat/health", nil) // what the client sees is another test's
			want := map[string]float64{"engine_errors_total what=dial": 0, "engine_errors_total what=cut": 0,
				"engine_errors_total what=garbage": 0, "engine_errors_total what=timeout": 0}
			want["engine_errors_total what="+what] = 1
			metered{f, registry}.want(t, want)
		})
	}
}

// TestClientsThatGo end the engine's work, however far its reply has come and whether it is looked through. They are counted as such and
// never as errors of the engine.
func TestClientsThatGo(t *testing.T) {
	for _, begun := range []bool{false, true} {
		known := newEngine("news-1")
		waiting, ended := make(chan bool), make(chan bool)
		m := serveMetered(t, known.beside(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if begun {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"_source":{`)
				w.(http.Flusher).Flush()
			}
			waiting <- true
			<-r.Context().Done()
			ended <- true
		}), nil)
		paths := []string{"/_cat/health", "/news-1/_doc/1", "/news-1/_search", "/_all/_mget"}
		for _, path := range paths {
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-waiting
				cancel()
			}()
			r := expect.Value(http.NewRequestWithContext(ctx, "POST", m.url+path, strings.NewReader("{}")))(t)
			if resp, err := client.Do(r); err == nil {
				if _, err = io.Copy(io.Discard, resp.Body); err == nil {
					t.Errorf("%s: the reply ends whole", path)
				}
				resp.Body.Close()
			}
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatalf("%s: the engine goes on", path)
			}
		}
		m.want(t, map[string]float64{
			"clients_gone_total": float64(len(paths)), "requests_in_flight": 0,
			"engine_errors_total what=cut": 0, "engine_errors_total what=garbage": 0, "engine_errors_total what=timeout": 0,
		})
		if strings.Contains(m.log.String(), unreachable) {
			t.Errorf("begun=%v: the engine is blamed for it", begun)
		}
	}
}

// answering is a transport that is a function.
type answering func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

// pausing is a text of which each part but the first comes after a pause.
type pausing struct {
	parts []string
	pause time.Duration
	begun bool
}

func (p *pausing) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	if p.begun {
		time.Sleep(p.pause)
	}
	n := copy(b, p.parts[0])
	p.parts, p.begun = p.parts[1:], true
	return n, nil
}

// dawdling is a dialect that takes a second for a write.
type dawdling struct{ adapters.Dialect }

func (d dawdling) EnrichWrite(_ adapters.Class, dst io.Writer, src io.Reader, _ rule.Writing, _ int64) (adapters.Replies, error) {
	time.Sleep(time.Second)
	_, err := io.Copy(dst, src)
	return nil, err
}

// TestOwnTimeOfStreams: what enriching a long write takes, while it streams, is ours and not the engine's.
func TestOwnTimeOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times proxy.Times
		f := handler(t, []string{"http://engine"}, func(e *proxy.Engine) {
			e.Dialect = dawdling{e.Dialect}
			e.Transport = answering(func(r *http.Request) (*http.Response, error) {
				_, err := io.Copy(io.Discard, r.Body)
				time.Sleep(3 * time.Second)
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, err
			})
		})
		r := httptest.NewRequestWithContext(proxy.WithTimes(t.Context(), &times), "POST", "/_bulk", strings.NewReader(fat("news-1", 1100)))
		if f.ServeHTTP(httptest.NewRecorder(), r); times.Engine != 3*time.Second || times.Own != time.Second {
			t.Errorf("%+v", times)
		}
	})
}

// TestTimesApart: of a request's time the engine's is what was waited for it, the client's is no one's, and the rest is ours. Who asks for the
// times of a request gets them.
func TestTimesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = time.Second
		registry := prometheus.NewRegistry()
		f := handler(t, []string{"http://engine"}, func(e *proxy.Engine) {
			e.Metrics = proxy.NewMetrics(registry)
			e.Transport = answering(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				time.Sleep(pause)
				body := &pausing{parts: []string{"first", "second"}, pause: pause}
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/csv"}}, ContentLength: -1, Body: io.NopCloser(body), Request: r}, nil
			})
		})
		var times proxy.Times
		ctx := proxy.WithTimes(t.Context(), &times)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "/_some/thing", &pausing{parts: []string{"a", "b"}, pause: 3 * pause}))
		if w.Body.String() != "firstsecond" || times.Engine != 2*pause || times.Own != 0 || times.Total != 5*pause {
			t.Errorf("%q, %+v", w.Body, times)
		}
		got := exported(t, registry)
		expect.Same(t, 2*pause.Seconds(), got["engine_seconds_sum kind=pass"], "the engine's time")
		expect.Same(t, 0.0, got["added_seconds_sum kind=pass"], "our time")
		expect.Same(t, [2]float64{1, 1}, [2]float64{got["engine_seconds kind=pass"], got["added_seconds kind=pass"]}, "how often both were told")
	})
}
