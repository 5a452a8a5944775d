package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/proxy"
)

// purchase is what a benchmark asks for: a page, or a walk over some.
type purchase struct {
	name string
	// index is the one searched, rule the sidecar's.
	index  string
	rule   adapters.Rule
	limits proxy.Limits
	// from and size cut the page, extra holds further members of the search or parameters of its URL: of the sidecar's, and of both.
	from, size       int
	control, members string
	walk             string // "", search_after or scroll: so many pages one after the other
	wants            string // what the sidecar says of it
}

// walkedPages is how many pages a walk has.
const walkedPages = 20

// purchases are all that is measured at an engine.
func (s *shop) purchases() []purchase {
	rule := benchRule(s.b, "")
	plain := purchase{index: s.sketched, rule: rule, size: 10, wants: "collapsed"}
	var list []purchase
	add := func(name string, change func(p *purchase)) {
		p := plain
		p.name = name
		change(&p)
		list = append(list, p)
	}
	add("page 1", func(*purchase) {})
	add("page 5", func(p *purchase) { p.from = 40 })
	add("page 50", func(p *purchase) { p.from = 490 })
	add("page 1 of 100", func(p *purchase) { p.size = 100 })
	for _, window := range []int{100, 1000} {
		add(fmt.Sprintf("newest, window %d", window), func(p *purchase) {
			p.rule.Choice, p.rule.DateField, p.rule.Window = adapters.Choice{By: adapters.ByNewest}, "at", window
		})
	}
	add("transitive, window 1000", func(p *purchase) { p.rule.Transitive = true })
	add("totals collapsed", func(p *purchase) { p.control = "neardup_totals=collapsed" })
	add("expand ids", func(p *purchase) { p.control = "neardup_expand=ids" })
	add("expand source", func(p *purchase) { p.control = "neardup_expand=source" })
	add("explain", func(p *purchase) { p.control = "neardup_explain=true" })
	add("no sketches", func(p *purchase) { p.index = s.bare })
	add("no sketches, title alone", func(p *purchase) {
		p.index, p.members = s.bare, `,"_source":["title"]`
		if s.typesense() {
			p.members = "&include_fields=title"
		}
	})
	for _, window := range []int{300, 1000} {
		add(fmt.Sprintf("plagiarism, window %d", window), func(p *purchase) { p.index, p.rule = s.parts, excerptRule(s.b, window) })
	}
	if s.typesense() {
		return list
	}
	add("20 pages by search_after", func(p *purchase) { p.walk = "search_after" })
	add("20 pages by search_after, state lost", func(p *purchase) { p.walk, p.limits.CursorMemory = "search_after", 1 })
	add("20 pages by scroll", func(p *purchase) { p.walk, p.control = "scroll", "neardup=on" })
	add("20 pages by scroll, state lost", func(p *purchase) { p.walk, p.control, p.limits.CursorMemory = "scroll", "neardup=on", 1 })
	return list
}

// BenchmarkPages compares what a page of the collapsed list costs with the engine's own page of the same search, asked in turns.
// Its figures are medians: x/engine is how many times as long the page takes, engine-ms what of it the engine takes and own-ms
// the rest.
func BenchmarkPages(b *testing.B) {
	for _, kind := range engines.Kinds {
		b.Run(kind, func(b *testing.B) {
			s := openShop(b, kind)
			for _, p := range s.purchases() {
				b.Run(strings.ReplaceAll(p.name, " ", "_"), func(b *testing.B) { s.measure(b, p) })
			}
		})
	}
}

// measure measures one purchase.
func (s *shop) measure(b *testing.B, p purchase) {
	outer := s.b
	s.b = b
	defer func() { s.b = outer }()
	c := s.serve(p.index, p.rule, p.limits)
	warm := 15 // searches, by which the sidecar learns how much folds
	if p.walk != "" {
		warm = 2
	}
	for n := range warm {
		s.buy(c.base, p, n, true)
		s.buy(s.e.URL, p, n, false)
	}
	var ratios, direct, engine, own, rounds []float64
	n := 0
	for b.Loop() {
		n++
		began := time.Now()
		s.buy(s.e.URL, p, n, false)
		alone := time.Since(began)
		c.engine.spent.Store(0)
		began = time.Now()
		asked := s.buy(c.base, p, n, true)
		took := time.Since(began)
		spent := time.Duration(c.engine.spent.Load())
		ratios, direct = append(ratios, float64(took)/float64(alone)), append(direct, alone.Seconds()*1000)
		engine, own = append(engine, spent.Seconds()*1000), append(own, (took-spent).Seconds()*1000)
		rounds = append(rounds, float64(asked))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ratios), "x/engine")
	b.ReportMetric(median(direct), "direct-ms")
	b.ReportMetric(median(engine), "engine-ms")
	b.ReportMetric(median(own), "own-ms")
	b.ReportMetric(median(rounds), "rounds")
}

// buy asks for the n-th search's page or walk, of the sidecar or of the engine, and returns how often the engine was asked for
// the last page.
func (s *shop) buy(base string, p purchase, n int, collapsed bool) (rounds int) {
	s.b.Helper()
	control := ""
	if collapsed {
		control = p.control
	}
	if s.typesense() {
		query := fmt.Sprintf("/collections/%s/documents/search?query_by=title,body&drop_tokens_threshold=10000"+
			"&q=%s&per_page=%d&page=%d%s&%s", p.index, url.QueryEscape(benchQuery(n)), p.size, 1+p.from/p.size, p.members, control)
		_, said := s.send("GET", base+query, "")
		return s.rounds(p, said, collapsed)
	}
	body := func(after string) string {
		return fmt.Sprintf(`{"query":{"match":{"body":%q}},"from":%d,"size":%d%s%s}`, benchQuery(n), p.from, p.size, p.members, after)
	}
	at := base + "/" + p.index + "/_search?" + control
	switch p.walk {
	case "":
		_, said := s.send("POST", at, body(""))
		return s.rounds(p, said, collapsed)
	case "search_after":
		after := `,"sort":[{"_score":"desc"},{"at":"desc"},{"id":"asc"}]`
		for range walkedPages {
			reply, said := s.send("POST", at, body(after))
			rounds = s.rounds(p, said, collapsed)
			var r struct {
				Hits struct {
					Hits []struct{ Sort json.RawMessage }
				}
			}
			if err := json.Unmarshal(reply, &r); err != nil || len(r.Hits.Hits) == 0 {
				s.b.Fatalf("%v: %.500s", err, reply)
			}
			last := r.Hits.Hits[len(r.Hits.Hits)-1].Sort
			after = fmt.Sprintf(`,"sort":[{"_score":"desc"},{"at":"desc"},{"id":"asc"}],"search_after":%s`, last)
		}
		return rounds
	}
	reply, said := s.send("POST", at+"&scroll=1m", body(""))
	for page := 1; ; page++ {
		rounds = s.rounds(p, said, collapsed)
		var r struct {
			ID string `json:"_scroll_id"`
		}
		if err := json.Unmarshal(reply, &r); err != nil || r.ID == "" {
			s.b.Fatalf("%v: %.500s", err, reply)
		}
		if page == walkedPages {
			s.send("DELETE", base+"/_search/scroll", fmt.Sprintf(`{"scroll_id":%q}`, r.ID))
			return rounds
		}
		reply, said = s.send("POST", base+"/_search/scroll", fmt.Sprintf(`{"scroll":"1m","scroll_id":%q}`, r.ID))
	}
}

// rounds returns how often the engine was asked, by what the sidecar says, which must be what is wanted.
func (s *shop) rounds(p purchase, said string, collapsed bool) (n int) {
	s.b.Helper()
	if !collapsed {
		return 0
	}
	state, figures := stated(said)
	if state != p.wants {
		s.b.Fatalf("%s: the sidecar says %q", p.name, said)
	}
	if _, err := fmt.Sscan(figures["rounds"], &n); err != nil {
		s.b.Fatalf("%s: the sidecar says %q", p.name, said)
	}
	return n
}
