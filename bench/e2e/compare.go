package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/neardup/sidecar/internal/measured"
)

// comparison is what contenders that took turns at one rate have shown.
type comparison struct {
	contenders []*contender
	rate       float64
	samples    [][]sample // by contender, then by round
}

// pace says how contenders are asked.
type pace struct {
	// rate is how many requests a second; 0 has it found: share of what the slowest can do at most.
	rate, share float64
	// clients, if above 0, is how many ask in place of a rate, each waiting for its answer, for whole passes through the requests.
	clients int
	length  time.Duration
	// enough is how many requests a turn has at least: it takes up to three times as long for them.
	enough float64
}

// pace is the usual one.
func (b *bench) pace() pace {
	if b.short {
		return pace{share: .3, length: 300 * time.Millisecond}
	}
	return pace{share: .4, length: 500 * time.Millisecond, enough: 60}
}

// How many rounds there are: at least and at most, and how narrow the interval of a median ratio is that ends them, as a part of it.
const (
	leastRounds, mostRounds = 5, 8
	narrow                  = .1
)

// known reports whether the rounds until now have shown enough of a ratio.
func (b *bench) known(ratios []float64) bool {
	if b.short {
		return true
	}
	low, high := interval(ratios)
	return len(ratios) >= mostRounds || len(ratios) >= leastRounds && high-low <= narrow*median(ratios)
}

// interval returns between which two of the values their median lies with a certainty of nine tenths or more, however they are spread: the
// least and the greatest of few, of more those further inside.
func interval(list []float64) (low, high float64) {
	sorted, n := slices.Sorted(slices.Values(list)), len(list)
	// outside is the chance that the median lies below the k-th value or above the k-th last. ways is in how many ways k of n values can lie on one
	// side of the median.
	within, outside, ways := 0, 0.0, 1.0
	for k := range n / 2 {
		if outside += 2 * ways / math.Pow(2, float64(n)); outside > .1 {
			break
		}
		within, ways = k, ways*float64(n-k)/float64(k+1)
	}
	return sorted[within], sorted[n-1-within]
}

// compare checks every reply once, then has the contenders take turns, each round beginning with another one, at one rate that all
// of them can take, until the time of ours divided by that of against is known; after the first rounds these two
// alone. A reply that is not as it should be is an error.
func (b *bench) compare(list []*contender, p pace, against string) (*comparison, error) {
	c := &comparison{rate: p.rate}
	for _, one := range list {
		if one.absent == "" {
			c.contenders = append(c.contenders, one)
		}
	}
	slowest := 0.0
	for _, one := range c.contenders {
		if err := one.checkAll(b.ctx); err != nil {
			return nil, err
		}
		most, err := one.probe(b.ctx, cmp.Or(p.clients, 8), p.length/2)
		if err != nil {
			return nil, err
		}
		if slowest == 0 || most < slowest {
			slowest = most
		}
	}
	if c.rate == 0 {
		c.rate = max(1, p.share*slowest)
	}
	length := max(p.length, min(3*p.length, time.Duration(p.enough/c.rate*float64(time.Second))))
	c.samples = make([][]sample, len(c.contenders))
	first, second := c.index(ours), c.index(against)
	for round := 0; round == 0 || !b.known(quotients(c.samples[first], c.samples[second], p50)); round++ {
		for i := range c.contenders {
			i := (i + round) % len(c.contenders)
			if round >= leastRounds && i != first && i != second {
				continue
			}
			turn := func() (sample, error) { return c.contenders[i].attack(b.ctx, c.rate, length) }
			if p.clients > 0 {
				turn = func() (sample, error) { return c.contenders[i].closed(b.ctx, p.clients, p.length) }
			}
			s, err := turn()
			if err != nil {
				return nil, err
			}
			c.samples[i] = append(c.samples[i], s)
		}
	}
	b.log("%d rounds at %.0f requests a second: %.2f times as long as %s", len(c.samples[first]), c.rate,
		median(quotients(c.samples[first], c.samples[second], p50)), against)
	return c, nil
}

// index returns the place of a contender, or -1 if it did not take part.
func (c *comparison) index(name string) int {
	return slices.IndexFunc(c.contenders, func(one *contender) bool { return one.name == name })
}

// figure is the median over the rounds of a figure of one contender, 0 of one that did not take part.
func (c *comparison) figure(name string, of func(sample) float64) float64 {
	if c.index(name) < 0 {
		return 0
	}
	return medianOf(c.samples[c.index(name)], of)
}

// cpu is the processor time that a contender's own process takes for a request, in milliseconds.
func (c *comparison) cpu(name string) float64 {
	return c.figure(name, func(s sample) float64 { return s.proxy })
}

// engineCPU is the engine's, in milliseconds.
func (c *comparison) engineCPU(name string) float64 {
	return c.figure(name, func(s sample) float64 { return s.cpu["engine"] })
}

// The figures that are compared, in milliseconds.
func p50(s sample) float64 { return s.p50 }
func p95(s sample) float64 { return s.p95 }
func p99(s sample) float64 { return s.p99 }

// ratio judges a figure of one contender divided by another one's, round by round.
func (c *comparison) ratio(what, ours, against string, of func(sample) float64) measured.Verdict {
	a, z := c.index(ours), c.index(against)
	if a < 0 || z < 0 {
		return measured.Verdict{Of: what, Against: against, Unit: "×", Absent: against + " did not take part"}
	}
	return over(what, against, "×", quotients(c.samples[a], c.samples[z], of))
}

// forTail is how many requests a turn must have for its p99 to be shown: with fewer that is the slowest or the one before.
const forTail = 200

// tailless says why there are no p99, if so.
func (c *comparison) tailless() string {
	for _, rounds := range c.samples {
		for _, s := range rounds {
			if s.requests < forTail {
				return fmt.Sprintf("a turn has %d requests, too few for a p99", s.requests)
			}
		}
	}
	return ""
}

// tailRatio is ratio for the p99.
func (c *comparison) tailRatio(ours, against string) measured.Verdict {
	v := c.ratio("p99", ours, against, p99)
	if why := c.tailless(); v.Absent == "" && why != "" {
		v = measured.Verdict{Of: v.Of, Against: against, Unit: v.Unit, Absent: why}
	}
	return v
}

// over is the verdict on what rounds have shown: the median, and how far they lie apart.
func over(what, against, unit string, rounds []float64) measured.Verdict {
	return measured.Verdict{Of: what, Against: against, Unit: unit, Value: median(rounds), Low: slices.Min(rounds), High: slices.Max(rounds)}
}

// quotients divides a figure by another one, round by round, as long as both took part.
func quotients[T any](of, by []T, figure func(T) float64) (list []float64) {
	for round := range min(len(of), len(by)) {
		list = append(list, figure(of[round])/figure(by[round]))
	}
	return list
}

// medianOf is the median of a figure over the rounds.
func medianOf[T any](rounds []T, figure func(T) float64) float64 {
	var list []float64
	for _, r := range rounds {
		list = append(list, figure(r))
	}
	return median(list)
}

// rows are the contenders with their figures: p50, p95, p99, the rate, requests in a turn, the size of a reply, and processor time for each
// request by process.
func (c *comparison) rows(all []*contender) []measured.Contender {
	var list []measured.Contender
	for _, one := range all {
		if one.absent != "" {
			list = append(list, measured.Contender{Name: one.name, Absent: one.absent})
			continue
		}
		f := map[string]float64{
			"p50": c.figure(one.name, p50), "p95": c.figure(one.name, p95),
			"rate":     c.figure(one.name, func(s sample) float64 { return s.rate }),
			"requests": c.figure(one.name, func(s sample) float64 { return float64(s.requests) }),
			"reply":    c.figure(one.name, func(s sample) float64 { return s.kilobytes }),
		}
		if c.tailless() == "" {
			f["p99"] = c.figure(one.name, p99)
		}
		if v := c.engineCPU(one.name); v > 0 {
			f["engine CPU"] = v
		}
		if v := c.cpu(one.name); v > 0 && one.watch[0].name != "engine" {
			f["CPU"], f["per core-second"] = v, 1000/v
		}
		if v := c.figure(one.name, func(s sample) float64 { return s.engine }); v > 0 {
			f["engine"], f["own"] = v, c.figure(one.name, func(s sample) float64 { return s.own })
		}
		list = append(list, measured.Contender{Name: one.name, Figures: f})
	}
	return list
}

// timeColumns are the columns of the figures that rows returns.
var timeColumns = []measured.Column{
	{Name: "p50", Unit: "ms"}, {Name: "p95", Unit: "ms"}, {Name: "p99", Unit: "ms"}, {Name: "rate", Unit: "requests a second"},
	{Name: "requests", Unit: "a turn"}, {Name: "reply", Unit: "kB"},
	{Name: "CPU", Unit: "ms a request"}, {Name: "per core-second", Unit: "requests"}, {Name: "engine CPU", Unit: "ms a request"},
}

// median returns the middle of a list, or the mean of its two middles.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// within judges a figure: at most so much.
func within(v measured.Verdict, target float64) measured.Verdict {
	v.Target = target
	return v
}

// reaching judges a figure: at least so much.
func reaching(v measured.Verdict, target float64) measured.Verdict {
	v.Target, v.AtLeast = target, true
	return v
}

// judged gives the limit to a figure that misses its target.
func judged(v measured.Verdict, limit string) measured.Verdict {
	if v.Absent == "" && !v.Reached() {
		v.Limit = limit
	}
	return v
}

func (b *bench) log(format string, args ...any) {
	fmt.Fprintf(b.progress, "%s  %s\n", time.Since(b.began).Round(time.Second), fmt.Sprintf(format, args...))
}
