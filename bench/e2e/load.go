package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"
)

// request is a request to a contender. The path is added to its address.
type request struct {
	method, path string
	header       http.Header
	body         []byte
}

// reply is an answer read whole.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// contender is one way to the same answers.
type contender struct {
	name     string
	base     string
	requests []request
	// check says what is wrong with the reply to a request; it is called once for each request.
	check func(reply) error
	// collapsed is set of what must say of each reply that it is collapsed.
	collapsed bool
	// watch are the processes whose processor time counts; the first is the one that requests per core-second are of.
	watch []*process
	// clocks is the address of a sidecar's metrics, which part the time of a search into the engine's and ours.
	clocks string
	// before says that it is an older sidecar.
	before bool
	// checked is set where checkAll has found nothing wrong and need not be called again.
	checked bool
	// absent says why it can't take part.
	absent string
}

// sample is what one attack has found. Times are in milliseconds.
type sample struct {
	p50, p95, p99 float64
	requests      int                // that these are of
	rate          float64            // answered requests a second
	kilobytes     float64            // mean size of a reply's body on the wire
	cpu           map[string]float64 // processor time for each request, by the process's name
	proxy         float64            // that of the first of the watched
	engine, own   float64            // means of what a search waited for the engine, and of what the sidecar took besides
}

// client reads replies as they come: what is compressed stays so.
var client = &http.Client{
	Transport: &http.Transport{MaxIdleConnsPerHost: 2000, DisableCompression: true},
	Timeout:   5 * time.Minute, // to merge, or to reindex, on a busy machine
}

// send sends a request to an address.
func send(ctx context.Context, base string, q request) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, q.method, base+q.path, bytes.NewReader(q.body))
	if err != nil {
		return reply{}, err
	}
	maps.Copy(r.Header, q.header)
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, body}, err
}

// fault says what is wrong with a reply at a glance.
func (c *contender) fault(status int, header http.Header, body []byte) error {
	switch said := header.Get("Neardup"); {
	case status != http.StatusOK:
		return fmt.Errorf("status %d: %.300s", status, body)
	case c.collapsed && !strings.HasPrefix(said, "collapsed"):
		return fmt.Errorf("the sidecar says %q", said)
	}
	return nil
}

// checkAll asks for everything once and checks each reply.
func (c *contender) checkAll(ctx context.Context) error {
	for _, q := range c.requests {
		r, err := send(ctx, c.base, q)
		if err == nil {
			err = c.fault(r.status, r.header, r.body)
		}
		if err == nil && c.check != nil {
			err = c.check(r)
		}
		if err != nil {
			return fmt.Errorf("%s: %s %s: %w", c.name, q.method, q.path, err)
		}
	}
	return nil
}

// probe returns how many requests a second the contender can answer, to a number of clients that each wait for their answer.
func (c *contender) probe(ctx context.Context, clients int, length time.Duration) (float64, error) {
	s, err := c.closed(ctx, clients, length)
	return s.rate, err
}

// closed asks as fast as so many clients can that wait for each answer, for whole passes through the requests: those of a slow contender
// are the same as those of a fast one.
func (c *contender) closed(ctx context.Context, clients int, length time.Duration) (sample, error) {
	before, err := readClocks(ctx, c.clocks)
	if err != nil {
		return sample{}, err
	}
	began, spent := time.Now(), c.spent()
	deadline := began.Add(length)
	pass := int64(len(c.requests))
	var next, last atomic.Int64 // how many have begun; the end of the last pass, once it is known
	var mutex sync.Mutex
	var times []float64
	var read atomic.Int64 // bytes
	var wrong error
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			var own []float64
			for ctx.Err() == nil {
				n, asked := next.Add(1)-1, time.Now()
				if asked.After(deadline) {
					last.CompareAndSwap(0, max(pass, (n+pass-1)/pass*pass))
				}
				if end := last.Load(); end > 0 && n >= end {
					break
				}
				r, err := send(ctx, c.base, c.requests[n%pass])
				if err == nil {
					err = c.fault(r.status, r.header, r.body)
				}
				if err != nil {
					mutex.Lock()
					wrong = errors.Join(wrong, err)
					mutex.Unlock()
					return
				}
				own = append(own, time.Since(asked).Seconds()*1000)
				read.Add(int64(len(r.body)))
			}
			mutex.Lock()
			times = append(times, own...)
			mutex.Unlock()
		})
	}
	group.Wait()
	if wrong == nil && len(times) == 0 {
		wrong = errors.New("no request was answered")
	}
	if wrong != nil {
		return sample{}, fmt.Errorf("%s: %w", c.name, wrong)
	}
	slices.Sort(times)
	at := func(q float64) float64 { return times[min(len(times)-1, int(q*float64(len(times))))] }
	s := sample{p50: at(.5), p95: at(.95), p99: at(.99), requests: len(times), rate: float64(len(times)) / time.Since(began).Seconds()}
	s.kilobytes = float64(read.Load()) / float64(len(times)) / 1000
	s.cpu, s.proxy = c.perRequest(spent, len(times))
	err = c.parted(ctx, before, &s)
	return s, err
}

// attack sends requests at a constant rate, whether earlier ones are answered or not (open loop), and measures from when each was sent.
func (c *contender) attack(ctx context.Context, rate float64, length time.Duration) (sample, error) {
	attacker := vegeta.NewAttacker(vegeta.Client(client), vegeta.Workers(16), vegeta.MaxWorkers(2000))
	every := vegeta.Rate{Freq: int(math.Round(rate * 1000)), Per: 1000 * time.Second}
	var next atomic.Int64
	targeter := func(t *vegeta.Target) error {
		q := c.requests[int(next.Add(1)-1)%len(c.requests)]
		t.Method, t.URL, t.Body, t.Header = q.method, c.base+q.path, q.body, q.header
		return nil
	}
	before, err := readClocks(ctx, c.clocks)
	if err != nil {
		return sample{}, err
	}
	spent := c.spent()
	var m vegeta.Metrics
	var wrong error
	results := attacker.Attack(targeter, every, length, c.name)
	for ended := false; !ended; {
		select {
		case r, ok := <-results:
			if ended = !ok; ok {
				if wrong == nil && r.Code != 0 {
					wrong = c.fault(int(r.Code), r.Headers, r.Body)
				}
				m.Add(r)
			}
		case <-ctx.Done():
			attacker.Stop()
			return sample{}, ctx.Err()
		}
	}
	m.Close()
	if wrong != nil {
		return sample{}, fmt.Errorf("%s: %w", c.name, wrong)
	}
	if m.Success < 1 {
		return sample{}, fmt.Errorf("%s: %.2f%% of %d requests were answered as they should: %v", c.name, 100*m.Success, m.Requests, m.Errors)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	s := sample{
		p50: ms(m.Latencies.P50), p95: ms(m.Latencies.P95), p99: ms(m.Latencies.P99), rate: m.Throughput,
		requests: int(m.Requests), kilobytes: m.BytesIn.Mean / 1000,
	}
	s.cpu, s.proxy = c.perRequest(spent, int(m.Requests))
	err = c.parted(ctx, before, &s)
	return s, err
}

// parted adds to a sample what the searches since an earlier reading of the clocks waited for the engine, and what the sidecar took.
func (c *contender) parted(ctx context.Context, before clocks, s *sample) error {
	after, err := readClocks(ctx, c.clocks)
	if n := after.searches - before.searches; n > 0 {
		s.engine, s.own = 1000*(after.engine-before.engine)/n, 1000*(after.own-before.own)/n
	}
	return err
}

// clocks are what a sidecar's metrics say of all searches until now: how many, at how many hits
// they looked and of how many of these the sketch was stored, and seconds.
type clocks struct{ searches, hits, stored, engine, own float64 }

// readClocks reads the metrics at an address, if there is one.
func readClocks(ctx context.Context, base string) (c clocks, err error) {
	if base == "" {
		return c, nil
	}
	r, err := send(ctx, base, request{method: "GET", path: "/metrics"})
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(r.body)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "} ")
		metric, labels, _ := strings.Cut(name, "{")
		into := map[string]*float64{
			"neardup_engine_seconds_sum": &c.engine, "neardup_added_seconds_sum": &c.own, "neardup_added_seconds_count": &c.searches,
			"neardup_hits_total": &c.hits,
		}[metric]
		if into == nil || into != &c.hits && !strings.Contains(labels, `kind="search"`) {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return c, fmt.Errorf("read the metrics: %w", err)
		}
		if *into += number; strings.Contains(labels, `sketch="stored"`) {
			c.stored += number
		}
	}
	return c, nil
}

// spent returns the processor time that the watched have taken until now. One that has ended has failed its requests, too.
func (c *contender) spent() map[string]time.Duration {
	all := map[string]time.Duration{}
	for _, p := range c.watch {
		all[p.name], _ = p.cpu()
	}
	return all
}

// perRequest returns the processor time since an earlier reading for each of so many requests, in milliseconds, and that of the first.
func (c *contender) perRequest(before map[string]time.Duration, requests int) (each map[string]float64, first float64) {
	each = map[string]float64{}
	for name, now := range c.spent() {
		each[name] = (now - before[name]).Seconds() * 1000 / float64(requests)
	}
	if len(c.watch) > 0 {
		first = each[c.watch[0].name]
	}
	return each, first
}
