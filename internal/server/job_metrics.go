package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/jobs"
	"github.com/neardup/sidecar/jobs/cluster"
)

// commandLabel is the label for the command. (Prometheus uses job for itself.)
const commandLabel = "command"

// JobMetrics serve metrics of a job's progress while it runs. The zero value serves nothing. They are safe for concurrent use.
type JobMetrics struct {
	Address string // to listen on; empty for none

	server    *http.Server // nil if nothing is served
	documents *prometheus.CounterVec
	indices   *prometheus.CounterVec
	of, done  *prometheus.GaugeVec
	step      *prometheus.GaugeVec
	retries   prometheus.Gauge
	waited    prometheus.Gauge
}

// Start serves the metrics of the job if there is an address. Call Stop at the end.
func (j *JobMetrics) Start(job string, log io.Writer) error {
	if j.Address == "" {
		return nil
	}
	l, err := net.Listen("tcp", j.Address)
	if err != nil {
		return fmt.Errorf("--metrics: %w: name a free address, such as 127.0.0.1:7611", err)
	}
	status := status{meters: &meters{registry: j.register(job)}}
	status.now.Store(&state{config: &config.Config{Admin: j.Address}})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", status.checkHost(status.meters.handler()))
	j.server = &http.Server{Handler: withHeaders(mux), ReadHeaderTimeout: config.ReadHeaderTimeout, IdleTimeout: config.IdleTimeout}
	go func() {
		if err := j.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			_, _ = fmt.Fprintf(log, "--metrics: %v\n", err) // the job continues without
		}
	}()
	_, _ = fmt.Fprintf(log, "metrics: http://%s/metrics\n", l.Addr())
	return nil
}

// Stop stops serving the metrics.
func (j *JobMetrics) Stop() {
	if j.server != nil {
		_ = j.server.Close() // the program ends anyway
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
	j.indices = counters("indices_total", "Indices that the job has finished: done, or failed.", engineLabel, "result")
	j.of = gauges("index_documents", "Documents of the current index, 0 if the engine does not say.", engineLabel)
	j.done = gauges("index_scanned", "Documents of the current index that were read, by all workers of the job.", engineLabel)
	j.step = gauges("step_ratio", "How much of a step of cluster is done, 0 to 1.", "step")
	j.retries = gauges("retries", "Documents and requests that were sent again because the engine had no room.").WithLabelValues()
	j.waited = gauges("waited_seconds", "How long nothing was sent because the engine had no room.").WithLabelValues()
	return r
}

// IndexMetrics are the metrics of one index that a job works on.
type IndexMetrics struct {
	all    *JobMetrics
	engine string
	mu     sync.Mutex
	last   map[string]int
}

// Index returns the metrics of the next index. Call End when the job is done with it.
func (j *JobMetrics) Index(engine string) *IndexMetrics {
	m := &IndexMetrics{all: j, engine: engine, last: map[string]int{}}
	if j.server == nil {
		m.all = &JobMetrics{}
		m.all.register("") // nobody reads it
	}
	m.At(0, 0)
	return m
}

// At sets how many documents were read, and how many there are.
func (m *IndexMetrics) At(scanned, total int) {
	m.all.done.WithLabelValues(m.engine).Set(float64(scanned))
	m.all.of.WithLabelValues(m.engine).Set(float64(total))
}

// Count sets the counts so far, by what was counted.
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

// End counts the index as done or failed.
func (m *IndexMetrics) End(err error) {
	result := "done"
	if err != nil {
		result = "failed"
	}
	m.all.indices.WithLabelValues(m.engine, result).Inc()
}

// Reindexed sets the progress of a reindex.
func (m *IndexMetrics) Reindexed(p jobs.Progress) {
	m.At(p.All, p.Total)
	m.Count(map[string]int{
		"scanned": p.Scanned, "written": p.Written, "right": p.Skipped, "textless": p.Textless, "changed": p.Changed, "gone": p.Gone,
		"refused": p.Refused,
	})
}

// Slowed sets how often a job has retried, and for how many seconds it has waited for the engine.
func (m *IndexMetrics) Slowed(retries int, waited float64) {
	m.all.retries.Set(float64(retries))
	m.all.waited.Set(waited)
}

// Verified sets the findings of a verification.
func (m *IndexMetrics) Verified(f jobs.Findings) {
	m.At(f.Scanned, f.Total)
	m.Count(map[string]int{
		"scanned": f.Scanned, "right": f.Right, "textless": f.Textless, "absent": f.Absent, "incomparable": f.Incomparable,
		"stale": f.Wrong(), "mended": f.Repair.Mended, "changed": f.Repair.Changed, "gone": f.Repair.Gone, "refused": f.Repair.Refused,
	})
}

// Clustered sets how many clusters were written.
func (m *IndexMetrics) Clustered(w cluster.Written) {
	m.Count(map[string]int{"written": w.Written, "right": w.Right, "changed": w.Changed, "gone": w.Gone, "refused": w.Refused})
}

// Stepped sets how much of a step is done.
func (j *JobMetrics) Stepped(step string, done, of int) {
	if j.server != nil {
		j.step.WithLabelValues(step).Set(float64(done) / float64(max(of, done, 1)))
	}
}
