package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
)

// meterEvery is how often a line is written if there is no terminal.
const meterEvery = 5 * time.Second

// meter reports a job's progress on an index: in its metrics, and as a bar on a terminal or a line every few seconds.
type meter struct {
	metrics *server.IndexMetrics
	w       io.Writer
	title   string
	bar     *progressbar.ProgressBar // nil without a terminal
	next    time.Time
	// first is how many were scanned at the first update, at the time start. Earlier runs may have scanned some.
	first int
	start time.Time
}

// newMeter returns a meter that writes to w.
func newMeter(w io.Writer, title string, metrics *server.IndexMetrics) *meter {
	m := &meter{metrics: metrics, w: w, title: title, next: time.Now().Add(meterEvery)}
	if terminal.Movable(w) {
		m.bar = progressbar.NewOptions64(-1,
			progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title), progressbar.OptionShowCount(),
			progressbar.OptionShowIts(), progressbar.OptionSetItsString("documents"), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
	}
	return m
}

// at reports how many documents were scanned, how many there are (0 if unknown), and more text for the line.
func (m *meter) at(scanned, total int, more string) {
	m.metrics.At(scanned, total)
	if m.start.IsZero() {
		m.start, m.first = time.Now(), scanned
	}
	if m.bar != nil {
		if total := int64(total); total > 0 && total != m.bar.GetMax64() {
			m.bar.ChangeMax64(total)
		}
		_ = m.bar.Set(scanned) // the job continues if the bar can't be drawn
		return
	}
	if now := time.Now(); now.After(m.next) {
		m.next = now.Add(meterEvery)
		of := ""
		if total > 0 {
			of = fmt.Sprintf(" of %d", total)
		}
		_, _ = fmt.Fprintf(m.w, "%s: %d%s scanned, %s%s\n", m.title, scanned, of, more, m.left(now, scanned, total))
	}
}

// left returns the rate, and the time that is left at that rate.
func (m *meter) left(now time.Time, scanned, total int) string {
	rate := float64(scanned-m.first) / now.Sub(m.start).Seconds()
	if rate <= 0 {
		return ""
	}
	text := fmt.Sprintf(", %.0f documents/s", rate)
	if total > scanned {
		text += fmt.Sprintf(", %v left", time.Duration(float64(total-scanned)/rate*float64(time.Second)).Round(time.Second))
	}
	return text
}

// clearBar removes the bar.
func (m *meter) clearBar() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}
