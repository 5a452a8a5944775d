package proxy

import (
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
)

// maxReasons bounds how many values a label takes whose values the dialects choose. They are words of their own and never a
// client's; more of them than this, or one of another form, count as "other".
const maxReasons = 64

// Bounds of the histograms' buckets, in seconds.
var (
	engineBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	addedBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .5, 1, 2.5}
)

// Metrics are what the handlers of one engine show to Prometheus. They outlive a Handler: one made anew for the same engine
// goes on with them. docs/metrics.md says what each means. They are safe for concurrent use.
type Metrics struct {
	requests, searches, documents, writesBypassed, duplicates, hits, nativeFell, engineErrors *prometheus.CounterVec
	folded, wouldFold, refills, gone, cursorsLost, writesRefused                              prometheus.Counter
	inFlight                                                                                  prometheus.Gauge
	engine, added                                                                             *prometheus.HistogramVec
	all                                                                                       []prometheus.Collector
	times                                                                                     map[string]*kindTimes

	mu       sync.Mutex
	handlers []weak.Pointer[Handler]
	reasons  map[string]bool // reasons seen so far
}

// kindTimes are the histograms of one kind of request.
type kindTimes struct{ engine, added prometheus.Observer }

// NewMetrics returns the metrics of an engine, registered with r unless it is nil. It panics where r holds such metrics
// already: give each engine's a label of its own.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{reasons: map[string]bool{}, times: map[string]*kindTimes{}}
	m.requests = m.counters("requests_total", "Requests by what they mean to the sidecar.", "kind")
	m.searches = m.counters("searches_total", "Searches by what became of them, and why.", "outcome", "reason")
	m.documents = m.counters("documents_total", "Documents written by what was done to them.", "change")
	m.writesBypassed = m.counters("writes_bypassed_total", "Writes that went on as they came, unread.", "reason")
	m.duplicates = m.counters("duplicates_total", "Documents looked up among those stored, by what came of it.", "what")
	m.hits = m.counters("hits_total", "Hits looked at by where their sketch is from.", "sketch")
	m.nativeFell = m.counters("native_fell_total", "Searches that were to be collapsed by clusters and were not.", "reason")
	m.engineErrors = m.counters("engine_errors_total", "Requests to the engine that got no whole answer, by what happened.", "what")
	m.folded = m.counters("folded_total", "Hits folded into one with a better rank.").WithLabelValues()
	m.wouldFold = m.counters("would_fold_total", "Hits that dry runs would have folded.").WithLabelValues()
	m.refills = m.counters("refill_rounds_total", "Readings of a list of hits after the first.").WithLabelValues()
	m.gone = m.counters("clients_gone_total", "Requests that their client broke off.").WithLabelValues()
	m.cursorsLost = m.counters("cursors_lost_total", "Pages of a cursor whose earlier pages were forgotten.").WithLabelValues()
	m.writesRefused = m.counters("writes_refused_total", "Writes refused: the body is not of its encoding.").WithLabelValues()
	m.engine = m.histograms("engine_seconds", "How long a request waited for the engine in all.", engineBuckets)
	m.added = m.histograms("added_seconds", "How long a request took beside waiting for engine and client.", addedBuckets)
	flight := prometheus.NewGauge(prometheus.GaugeOpts{Name: "neardup_requests_in_flight", Help: "Requests under way."})
	m.inFlight, m.all = flight, append(m.all, flight)
	m.gauge("cursors", "Cursors of clients that are remembered.", func(h *Handler) float64 { return float64(h.cursors.count()) })
	m.gauge("held_bytes", "Bytes of bodies and replies that are held.", func(h *Handler) float64 { return float64(h.HeldBytes()) })
	m.start()
	if r != nil {
		r.MustRegister(m)
	}
	return m
}

func (m *Metrics) counters(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "neardup_" + name, Help: help}, labels)
	m.all = append(m.all, v)
	return v
}

func (m *Metrics) histograms(name, help string, buckets []float64) *prometheus.HistogramVec {
	o := prometheus.HistogramOpts{Name: "neardup_" + name, Help: help, Buckets: buckets}
	v := prometheus.NewHistogramVec(o, []string{"kind"})
	m.all = append(m.all, v)
	return v
}

// gauge adds one that sums up over the handlers that are still there: one that was replaced holds what it holds until its last
// request ends.
func (m *Metrics) gauge(name, help string, of func(*Handler) float64) {
	m.all = append(m.all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "neardup_" + name, Help: help}, func() (sum float64) {
		for _, h := range m.living() {
			sum += of(h)
		}
		return sum
	}))
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, c := range m.all {
		c.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, c := range m.all {
		c.Collect(to)
	}
}

// serves takes note of a handler that counts here.
func (m *Metrics) serves(h *Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handlers = slices.DeleteFunc(m.handlers, func(p weak.Pointer[Handler]) bool { return p.Value() == nil })
	m.handlers = append(m.handlers, weak.Make(h))
}

func (m *Metrics) living() (list []*Handler) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.handlers {
		if h := p.Value(); h != nil {
			list = append(list, h)
		}
	}
	return list
}

// counter returns what is exported of a count; nil for nothing.
func (m *Metrics) counter(name, label string) prometheus.Counter {
	switch name {
	case "requests":
		return m.requests.WithLabelValues(label)
	case "collapsed", "dry_run", "native":
		return m.searches.WithLabelValues(name, "")
	case "passed":
		if label == "refused" {
			return m.searches.WithLabelValues("refused", "engine")
		}
		return m.searches.WithLabelValues("bypassed", m.reason(label))
	case "failed":
		return m.searches.WithLabelValues("failed", m.reason(label))
	case "control_refused":
		return m.searches.WithLabelValues("refused", "control")
	case "write_passed":
		return m.writesBypassed.WithLabelValues(m.reason(label))
	case "documents":
		return m.documents.WithLabelValues(label)
	case "duplicates":
		return m.duplicates.WithLabelValues(label)
	case "hits":
		return m.hits.WithLabelValues(label)
	case "native_fell":
		return m.nativeFell.WithLabelValues(m.reason(label))
	case "engine_errors":
		return m.engineErrors.WithLabelValues(label)
	}
	return map[string]prometheus.Counter{
		"folded": m.folded, "would_fold": m.wouldFold, "refills": m.refills, "broken_off": m.gone, "cursor_lost": m.cursorsLost,
		"refused": m.writesRefused,
	}[name]
}

// reason returns a label's value for a reason that a dialect chose.
func (m *Metrics) reason(text string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reasons[text] {
		return text
	}
	strange := strings.Trim(text, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" || len(text) > 32
	if strange || len(m.reasons) >= maxReasons {
		return "other"
	}
	m.reasons[text] = true
	return text
}

// start makes the series whose labels are known beforehand, so that they begin at zero.
func (m *Metrics) start() {
	for _, kind := range []string{"pass", "write", "read", "search", "similar", "compare"} {
		m.requests.WithLabelValues(kind)
		m.times[kind] = &kindTimes{m.engine.WithLabelValues(kind), m.added.WithLabelValues(kind)}
	}
	for _, outcome := range []string{"collapsed", "dry_run", "native"} {
		m.searches.WithLabelValues(outcome, "")
	}
	for _, by := range []string{"engine", "control"} {
		m.searches.WithLabelValues("refused", by)
	}
	for _, what := range []string{"dial", "timeout", "cut", "garbage"} {
		m.engineErrors.WithLabelValues(what)
	}
	for _, from := range []string{"stored", "computed", "missing", "stale", "foreign"} {
		m.hits.WithLabelValues(from)
	}
}

// count returns how many cursors are remembered.
func (c *cursors) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expire()
	return c.used.Len()
}

// observed takes the times of a request that came to its end.
func (m *Metrics) observed(kind string, engine, added time.Duration, asked bool) {
	t := m.times[kind]
	if asked {
		t.engine.Observe(engine.Seconds())
	}
	t.added.Observe(added.Seconds())
}
