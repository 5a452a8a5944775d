package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// config writes the configuration of a sidecar with a seed, under which no sketch of another one counts.
func (s *stored) config(seed string) (file string, err error) {
	return s.bench.config(s.engine, setup{more: fmt.Sprintf("sketch: {seed: %q}\n", seed)})
}

// worker is a process of `sidecar reindex`.
type worker struct {
	cmd     *exec.Cmd
	metrics string
	out     bytes.Buffer // its report
	said    bytes.Buffer
	ended   chan error
	killed  bool
	written int // when it was last asked
}

// startWorker starts a reindex of the index.
func (s *stored) startWorker(config string, more ...string) (*worker, error) {
	base, err := free()
	if err != nil {
		return nil, err
	}
	w := &worker{metrics: base, ended: make(chan error, 1)}
	arguments := []string{"reindex", "--config", config, "--index", s.index, "--output", "json", "--metrics", strings.TrimPrefix(base, "http://")}
	w.cmd = exec.CommandContext(s.ctx, s.program, append(arguments, more...)...)
	w.cmd.Stdout, w.cmd.Stderr = &w.out, &w.said
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { w.ended <- w.cmd.Wait() }()
	return w, nil
}

// ask asks a worker how many documents it has written. What does not answer has not begun, or has ended.
func (s *stored) ask(w *worker) int {
	if r, err := send(s.ctx, w.metrics, request{method: "GET", path: "/metrics"}); err == nil && !w.killed {
		lines := bufio.NewScanner(bytes.NewReader(r.body))
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), "} ")
			if strings.HasPrefix(name, "neardup_job_documents_total{") && strings.Contains(name, `what="written"`) {
				if n, err := strconv.ParseFloat(value, 64); err == nil {
					w.written = int(n)
				}
			}
		}
	}
	return w.written
}

// work has count sidecars reindex the index together. It kills some of them: of two, one after a third of the work and one after two thirds. It returns
// the processor time of all.
func (s *stored) work(config string, count, kills int) (spent time.Duration, err error) {
	workers := make([]*worker, count)
	for i := range workers {
		if workers[i], err = s.startWorker(config); err != nil {
			return 0, err
		}
	}
	for killed := 0; killed < kills; {
		sum, ended := 0, false
		for _, w := range workers {
			sum += s.ask(w)
			ended = ended || len(w.ended) > 0 && !w.killed
		}
		if sum*(kills+1) >= s.documents*(killed+1) {
			workers[killed].killed = true
			err = errors.Join(err, workers[killed].cmd.Process.Kill())
			killed++
		} else if ended {
			err = errors.Join(err, fmt.Errorf("a sidecar ended before %d were killed", kills))
			break
		}
		time.Sleep(500 * time.Millisecond) // the answers are part of the processor time of sidecars
	}
	for i, w := range workers {
		if ended := <-w.ended; ended != nil && !w.killed {
			err = errors.Join(err, fmt.Errorf("sidecar %d: %w: %.500s", i, ended, w.said.Bytes()))
		} else if ended == nil && w.killed {
			err = errors.Join(err, fmt.Errorf("sidecar %d had ended before it was killed", i))
		}
		spent += w.cmd.ProcessState.UserTime() + w.cmd.ProcessState.SystemTime()
		s.log("%s, sidecar %d of %d: killed %t, %s", s.engine.name, i+1, count, w.killed, short(w.out.Bytes()))
	}
	return spent, err
}

// short is the part of a report that says what a worker has done.
func short(report []byte) string {
	var list struct {
		Indices []struct {
			Written, Parts int
			Done           int `json:"parts_done"`
			Taken          int `json:"leases_taken_over"`
			Retries        int
			Seconds        float64
		}
	}
	if json.Unmarshal(report, &list) != nil || len(list.Indices) == 0 {
		return "no report"
	}
	return fmt.Sprintf("%+v", list.Indices[0])
}

// verify has `sidecar verify` find the right sketch in each document.
func (s *stored) verify(config string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(s.ctx, s.program, "verify", "--config", config, "--index", s.index, "--output", "json")
	cmd.Stderr = &said
	out, err := cmd.Output()
	var list struct {
		Indices []struct{ Right, Scanned int }
	}
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		return fmt.Errorf("verify: %w: %s%s", err, out, said.Bytes())
	}
	if len(list.Indices) != 1 || list.Indices[0].Right != s.documents || list.Indices[0].Scanned != s.documents {
		return fmt.Errorf("verify: not all of %d documents are right: %s", s.documents, out)
	}
	return nil
}

// hash returns the hash of a document without our fields.
func (s *stored) hash(document []byte) (uint64, error) {
	var d map[string]any
	if err := json.Unmarshal(document, &d); err != nil {
		return 0, err
	}
	for name := range d {
		if strings.HasPrefix(name, "neardup_") {
			delete(d, name)
		}
	}
	text, err := json.Marshal(d) // in the order of the names
	return maphash.Bytes(s.seed, text), err
}

// balance compares the documents of the index with those that were loaded.
func (s *stored) balance() error {
	count, sum := 0, uint64(0)
	err := s.each(func(document []byte) error {
		h, err := s.hash(document)
		count, sum = count+1, sum+h
		return err
	})
	if err == nil && (count != s.documents || sum != s.sum) {
		err = fmt.Errorf("%d documents of %d, or their content is another one: the sum of hashes is %x, of what was loaded %x", count, s.documents, sum, s.sum)
	}
	return err
}

// each calls a function with each document of the index.
func (s *stored) each(do func(document []byte) error) error {
	e := s.engine
	if e.typesense() {
		r, err := send(s.ctx, e.base, request{"GET", "/collections/" + s.index + "/documents/export", e.header(), nil})
		if err != nil {
			return err
		}
		for line := range bytes.Lines(r.body) {
			if err := do(line); err != nil {
				return err
			}
		}
		return nil
	}
	q := request{method: "POST", path: "/" + s.index + "/_search?scroll=5m", body: []byte(`{"size":2000,"sort":["_doc"]}`)}
	for {
		var page struct {
			Scroll string `json:"_scroll_id"`
			Hits   struct {
				Hits []struct {
					Source json.RawMessage `json:"_source"`
				}
			}
		}
		if err := e.do(s.ctx, e.base, q, &page); err != nil {
			return err
		}
		if len(page.Hits.Hits) == 0 {
			return e.do(s.ctx, e.base, request{method: "DELETE", path: "/_search/scroll", body: fmt.Appendf(nil, `{"scroll_id":%q}`, page.Scroll)}, nil)
		}
		for _, h := range page.Hits.Hits {
			if err := do(h.Source); err != nil {
				return err
			}
		}
		q = request{method: "POST", path: "/_search/scroll", body: fmt.Appendf(nil, `{"scroll":"5m","scroll_id":%q}`, page.Scroll)}
	}
}
