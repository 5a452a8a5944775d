package proxy

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/neardup/sidecar/adapters"
)

// Bounds of the histograms' buckets, in seconds.
var (
	engineBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	addedBuckets  = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .2, .5, 1, 2.5}
)

// Metrics are what the handlers of one engine show to Prometheus. They outlive a Handler: the next one of the same engine goes on with them.
// docs/metrics.md says what each means. They are safe for concurrent use.
type Metrics struct {
	*prometheus.Registry
	requests, searches, documents, writesBypassed, duplicates, hits, nativeFell, engineErrors *prometheus.CounterVec
	folded, wouldFold, refills, gone, cursorsLost, writesRefused, decidedFailed               prometheus.Counter
	inFlight, held, decidedPairs                                                              prometheus.Gauge
	engine, added                                                                             *prometheus.HistogramVec

	cursors atomic.Pointer[cursors] // of the newest handler
}

// NewMetrics returns the metrics of an engine, registered with r unless it is nil. It panics where r holds such metrics
// already: give each engine's a label of its own.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry()}
	with := promauto.With(prometheus.WrapRegistererWithPrefix("neardup_", m.Registry))
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return with.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return with.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"kind"})
	}
	m.requests = vec("requests_total", "Requests by what they mean to the sidecar.", "kind")
	m.searches = vec("searches_total", "Searches by what became of them, and why.", "outcome", "reason")
	m.documents = vec("documents_total", "Documents written by what was done to them.", "change")
	m.writesBypassed = vec("writes_bypassed_total", "Writes that went on as they came, unread.", "reason")
	m.duplicates = vec("duplicates_total", "Documents looked up among those stored, by what came of it.", "what")
	m.hits = vec("hits_total", "Hits looked at by where their sketch is from.", "sketch")
	m.nativeFell = vec("native_fell_total", "Searches that were to be collapsed by clusters and were not.", "reason")
	m.engineErrors = vec("engine_errors_total", "Requests to the engine that got no whole answer, by what happened.", "what")
	m.folded = counter("folded_total", "Hits folded into one with a better rank.")
	m.wouldFold = counter("would_fold_total", "Hits that dry runs would have folded.")
	m.refills = counter("refill_rounds_total", "Readings of a list of hits after the first.")
	m.gone = counter("clients_gone_total", "Requests that their client broke off.")
	m.cursorsLost = counter("cursors_lost_total", "Pages of a cursor whose earlier pages were forgotten.")
	m.writesRefused = counter("writes_refused_total", "Writes refused: the body is not of its encoding.")
	m.decidedFailed = counter("decided_failed_total", "Failed attempts to read the decided pairs.")
	m.decidedPairs = with.NewGauge(prometheus.GaugeOpts{Name: "decided_pairs", Help: "Decided pairs that were read. Those whose text has changed since are ignored, but counted."})
	m.engine = histogram("engine_seconds", "How long a request waited for the engine in all.", engineBuckets)
	m.added = histogram("added_seconds", "How long a request took beside waiting for engine and client.", addedBuckets)
	m.inFlight = with.NewGauge(prometheus.GaugeOpts{Name: "requests_in_flight", Help: "Requests under way."})
	m.held = with.NewGauge(prometheus.GaugeOpts{Name: "held_bytes", Help: "Bytes of bodies and replies that are held."})
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "cursors", Help: "Cursors of clients that are remembered."}, func() float64 {
		if c := m.cursors.Load(); c != nil {
			return float64(c.at.Len())
		}
		return 0
	})
	m.start()
	if r != nil {
		r.MustRegister(m)
	}
	return m
}

// start makes the series whose labels are known beforehand, so that they begin at zero.
func (m *Metrics) start() {
	for _, kind := range []string{"pass", "write", "read", "search", "similar", "compare", "dedupe"} {
		m.requests.WithLabelValues(kind)
		m.engine.WithLabelValues(kind)
		m.added.WithLabelValues(kind)
	}
	for _, labels := range [][]string{{"collapsed", ""}, {"dry_run", ""}, {"native", ""}, {"refused", "engine"}, {"refused", "control"}} {
		m.searches.WithLabelValues(labels...)
	}
	for _, what := range []string{"dial", "timeout", "cut", "garbage"} {
		m.engineErrors.WithLabelValues(what)
	}
	for _, from := range []string{"stored", "computed", "missing", "stale", "foreign"} {
		m.hits.WithLabelValues(from)
	}
}

// ReadDecided notes how a reading of the decided pairs went, and how many there are.
func (m *Metrics) ReadDecided(pairs int, err error) {
	if err != nil {
		m.decidedFailed.Inc()
	}
	m.decidedPairs.Set(float64(pairs))
}

// search counts a search by what became of it, and why.
func (m *Metrics) search(outcome string, reason adapters.Reason) {
	m.searches.WithLabelValues(outcome, string(reason)).Inc()
}

// outcome counts what was done with one search.
func (m *Metrics) outcome(o adapters.Outcome) {
	folded, outcome := m.folded, "collapsed"
	switch {
	case o.Reason != "":
		outcome = "bypassed"
	case o.DryRun:
		folded, outcome = m.wouldFold, "dry_run"
	case o.Native:
		outcome = "native"
	}
	m.search(outcome, o.Reason)
	folded.Add(float64(o.Folded))
	m.refills.Add(float64(max(o.Rounds-1, 0)))
	for from, hits := range map[string]int{
		"stored": o.Sketches.Stored, "computed": o.Sketches.Computed, "missing": o.Sketches.Missing, "stale": o.Sketches.Stale,
		"foreign": o.Sketches.Foreign,
	} {
		m.hits.WithLabelValues(from).Add(float64(hits))
	}
	if o.Fell != "" {
		m.nativeFell.WithLabelValues(string(o.Fell)).Inc()
	}
	if o.CursorLost {
		m.cursorsLost.Inc()
	}
}
