package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
)

// commandLabel says which command it is. (What scrapes has a label job of its own.)
const commandLabel = "command"

// JobMetrics show how far a job is, while it runs. The zero value shows nothing. They are safe for concurrent use.
type JobMetrics struct {
	Address string // to listen on; empty for none

	server    *http.Server // nil where nothing is shown
	documents *prometheus.CounterVec
	indices   *prometheus.CounterVec
	of, done  *prometheus.GaugeVec
	step      *prometheus.GaugeVec
	retries   prometheus.Gauge
	waited    prometheus.Gauge
}

// Start shows the metrics of the job, if the flag says where. Stop follows.
func (j *JobMetrics) Start(job string, log io.Writer) error {
	if j.Address == "" {
		return nil
	}
	l, err := net.Listen("tcp", j.Address)
	if err != nil {
		return fmt.Errorf("--metrics: %w: name a free address, such as 127.0.0.1:9601", err)
	}
	status := status{meters: &meters{registry: j.register(job)}}
	status.now.Store(&state{config: &config.Config{Admin: j.Address}})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", status.guarded(status.meters.handler()))
	j.server = &http.Server{Handler: withHeaders(mux), ReadHeaderTimeout: config.ReadHeaderTimeout, IdleTimeout: config.IdleTimeout}
	go func() {
		if err := j.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintf(log, "--metrics: %v\n", err) // the job goes on without
		}
	}()
	_, _ = fmt.Fprintf(log, "metrics: http://%s/metrics\n", l.Addr())
	return nil
}

// Stop ends showing.
func (j *JobMetrics) Stop() {
	if j.server != nil {
		_ = j.server.Close() // nothing is left to be done about it
	}
}

// register makes the metrics of a job.
func (j *JobMetrics) register(job string) *prometheus.Registry {
	r := newRegistry()
	to := promauto.With(prometheus.WrapRegistererWith(prometheus.Labels{commandLabel: job}, r))
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return to.NewCounterVec(prometheus.CounterOpts{Name: "neardup_job_" + name, Help: help}, labels)
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return to.NewGaugeVec(prometheus.GaugeOpts{Name: "neardup_job_" + name, Help: help}, labels)
	}
	j.documents = counters("documents_total", "Documents by what was found or done; scanned are all of them.", engineLabel, "what")
	j.indices = counters("indices_total", "Indices that the job is through with: done, or failed.", engineLabel, "result")
	j.of = gauges("index_documents", "Documents of the index at hand, 0 where the engine does not say.", engineLabel)
	j.done = gauges("index_scanned", "Documents of the index at hand that were read, by all workers of the job.", engineLabel)
	j.step = gauges("step_ratio", "How much of a step of cluster is done, 0 to 1.", "step")
	j.retries = gauges("retries", "Documents and requests that were sent again because the engine had no room.").WithLabelValues()
	j.waited = gauges("waited_seconds", "How long nothing was sent because the engine had no room.").WithLabelValues()
	return r
}

// IndexMetrics are those of one index at hand.
type IndexMetrics struct {
	all    *JobMetrics
	engine string
	mu     sync.Mutex
	last   map[string]int
}

// Index begins with an index.
func (j *JobMetrics) Index(engine string) *IndexMetrics {
	m := &IndexMetrics{all: j, engine: engine, last: map[string]int{}}
	if j.server == nil {
		m.all = &JobMetrics{}
		m.all.register("") // which nobody reads
	}
	m.At(0, 0)
	return m
}

// At takes how many documents were read of how many.
func (m *IndexMetrics) At(scanned, total int) {
	m.all.done.WithLabelValues(m.engine).Set(float64(scanned))
	m.all.of.WithLabelValues(m.engine).Set(float64(total))
}

// Count takes how many of what there were so far.
func (m *IndexMetrics) Count(counts map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what, n := range counts {
		if more := n - m.last[what]; more > 0 {
			m.all.documents.WithLabelValues(m.engine, what).Add(float64(more))
			m.last[what] = n
		}
	}
}

// End ends the index.
func (m *IndexMetrics) End(err error) {
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.all.indices.WithLabelValues(m.engine, result).Inc()
}

// Reindexed takes the progress of a reindex.
func (m *IndexMetrics) Reindexed(p jobs.Progress) {
	m.At(p.All, p.Total)
	m.Count(map[string]int{
		"scanned": p.Scanned, "written": p.Written, "right": p.Skipped, "textless": p.Textless, "changed": p.Changed, "gone": p.Gone,
		"refused": p.Refused,
	})
}

// Slowed takes what became of a run's waiting for the engine.
func (m *IndexMetrics) Slowed(retries int, waited time.Duration) {
	m.all.retries.Set(float64(retries))
	m.all.waited.Set(waited.Seconds())
}

// Verified takes what a verification has found.
func (m *IndexMetrics) Verified(f jobs.Findings) {
	m.At(f.Scanned, f.Total)
	m.Count(map[string]int{
		"scanned": f.Scanned, "right": f.Right, "textless": f.Textless, "absent": f.Absent, "incomparable": f.Incomparable,
		"stale": f.Wrong(), "mended": f.Repair.Mended, "changed": f.Repair.Changed, "gone": f.Repair.Gone, "refused": f.Repair.Refused,
	})
}

// Clustered takes what became of clusters that are stored.
func (m *IndexMetrics) Clustered(w cluster.Written) {
	m.Count(map[string]int{"written": w.Written, "right": w.Right, "changed": w.Changed, "gone": w.Gone, "refused": w.Refused})
}

// Stepped takes how much of a step is done.
func (j *JobMetrics) Stepped(step string, done, of int) {
	if j.server != nil {
		j.step.WithLabelValues(step).Set(float64(done) / float64(max(of, done, 1)))
	}
}
