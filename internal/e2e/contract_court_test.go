package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/sketch"
)

// contract is an engine with indices of papers, and a sidecar in front of it that listens at several addresses, each with rules
// of its own for the same indices.
type contract struct {
	t         *testing.T
	e         *engines.Engine
	seed      uint64
	r         *rand.Rand
	shelves   []*shelf
	listeners []listener
	changed   int // how often what is stored has changed
	lists     map[string][]standing
	sketches  map[string]*sketch.Sketch
	sketchers map[scheme]*sketch.Sketcher
}

// shelf is an index of papers.
type shelf struct {
	index  string
	papers map[string]*paper
	press  *press
	seen   map[string]map[string]any // what the engine has stored
	as     int                       // the change of the contract at which that was read
}

// listener is an address of the sidecar with a rule for each shelf.
type listener struct {
	base  string
	rules []*terms
}

const contractMaxWindow = 10000

var contracts atomic.Int32

// newContract starts a sidecar with the listeners' rules and makes the shelves, through the first listener.
func newContract(t *testing.T, e *engines.Engine, seed uint64, shelves int, rules [][]*terms) *contract {
	t.Helper()
	c := &contract{t: t, e: e, seed: seed, lists: map[string][]standing{}, sketches: map[string]*sketch.Sketch{},
		sketchers: map[scheme]*sketch.Sketcher{}}
	c.r = rand.New(rand.NewPCG(c.seed, 11))
	number := contracts.Add(1)
	for i := range shelves {
		c.shelves = append(c.shelves, &shelf{index: fmt.Sprintf("contract-%d-%d-%c", os.Getpid(), number, 'a'+i),
			papers: map[string]*paper{}, as: -1})
	}
	for _, r := range rules {
		c.listeners = append(c.listeners, listener{rules: r})
	}
	d := running(t, c.config())
	d.await(t, "listening", len(c.listeners))
	for i := range c.listeners {
		c.listeners[i].base = d.base(t, fmt.Sprintf("l%d", i))
	}
	date := pick(c.r, "date", "date_nanos")
	if c.e.Kind == engines.OpenSearch { // which fails to sort by date_nanos where a page ends with hits that lack it
		date = "date"
	}
	for _, s := range c.shelves {
		c.make(s, c.listeners[0].base, date)
	}
	return c
}

// make makes a shelf's index through an address.
func (c *contract) make(s *shelf, base, date string) {
	c.t.Helper()
	api{c.e, c.e.URL}.drop(c.t, s.index)
	if c.typesense() {
		call(c.t, c.e, "POST", base+"/collections", strings.Replace(contractCollection, "NAME", s.index, 1)).want(c.t, 201)
		return
	}
	call(c.t, c.e, "PUT", base+"/"+s.index, contractSchema(c.e, 1+c.r.IntN(2), date)).want(c.t, 200)
}

func (c *contract) typesense() bool { return c.e.Kind == engines.Typesense }

// config writes a configuration file.
func (c *contract) config() string {
	c.t.Helper()
	credentials := ""
	if c.e.Key != "" {
		credentials = "    credentials: {api_key: " + c.e.Key + "}\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "log: {format: json}\nadmin: \"\"\nsketch: {seed: %q}\nengines:\n", seed)
	for i, l := range c.listeners {
		fmt.Fprintf(&b, "  - name: l%d\n    listen: 127.0.0.1:0\n    kind: %s\n    urls: [%q]\n%s", i, c.e.Kind, c.e.URL, credentials)
		fmt.Fprintf(&b, "    limits: {max_window: %d, deadline: 30s}\n    indices:\n", contractMaxWindow)
		for k, r := range l.rules {
			b.WriteString(r.yaml(c.shelves[k].index))
		}
	}
	file := filepath.Join(c.t.TempDir(), "config.yaml")
	check(c.t, os.WriteFile(file, []byte(b.String()), 0o600))
	return file
}

// write writes papers to a shelf, each by its writer, and waits until they are found.
func (c *contract) write(s *shelf, papers ...paper) {
	c.t.Helper()
	lines := map[int]*strings.Builder{}
	for _, d := range papers {
		s.papers[d.id] = &d
		b := lines[d.writer]
		if b == nil {
			b = &strings.Builder{}
			lines[d.writer] = b
		}
		if !c.typesense() {
			fmt.Fprintf(b, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", s.index, d.id)
		}
		b.WriteString(d.json(c.t, c.typesense()) + "\n")
	}
	for _, writer := range sortedKeys(lines) {
		base := c.e.URL
		if writer != past {
			base = c.listeners[writer].base
		}
		api{c.e, base}.loadLines(c.t, s.index, lines[writer].String())
	}
	c.settle(s)
}

// settle makes the index stand still.
func (c *contract) settle(s *shelf) {
	c.t.Helper()
	c.changed++
	if !c.typesense() {
		call(c.t, c.e, "POST", c.e.URL+"/"+s.index+"/_refresh", "").want(c.t, 200)
	}
}

// remove deletes papers through a listener.
func (c *contract) remove(s *shelf, through int, ids ...string) {
	c.t.Helper()
	var lines strings.Builder
	for _, id := range ids {
		delete(s.papers, id)
		if c.typesense() {
			call(c.t, c.e, "DELETE", c.listeners[through].base+"/collections/"+s.index+"/documents/"+id, "").want(c.t, 200)
			continue
		}
		fmt.Fprintf(&lines, "{\"delete\":{\"_index\":%q,\"_id\":%q}}\n", s.index, id)
	}
	if lines.Len() > 0 {
		call(c.t, c.e, "POST", c.listeners[through].base+"/_bulk?refresh=true", lines.String()).want(c.t, 200)
	}
	c.settle(s)
}

// stored returns what the engine has stored of a paper.
func (c *contract) stored(s *shelf, id string) map[string]any {
	c.t.Helper()
	if s.as == c.changed {
		return s.seen[id]
	}
	s.seen, s.as = map[string]map[string]any{}, c.changed
	if c.typesense() {
		body := call(c.t, c.e, "GET", c.e.URL+"/collections/"+s.index+"/documents/export", "").want(c.t, 200).body
		for line := range strings.Lines(string(body)) {
			var source map[string]any
			decode(c.t, []byte(line), &source)
			s.seen[source["id"].(string)] = source
		}
		return s.seen[id]
	}
	var reply struct {
		Hits struct {
			Hits []struct {
				ID     string         `json:"_id"`
				Source map[string]any `json:"_source"`
			}
		}
	}
	decode(c.t, call(c.t, c.e, "POST", c.e.URL+"/"+s.index+"/_search", `{"size":10000}`).want(c.t, 200).body, &reply)
	for _, h := range reply.Hits.Hits {
		s.seen[h.ID] = h.Source
	}
	return s.seen[id]
}

// sketch returns the sketch of a stored paper by a rule, nil where it counts as missing.
func (c *contract) sketch(s *shelf, id string, r *terms, source map[string]any) *sketch.Sketch {
	c.t.Helper()
	if r.alone {
		writer := s.papers[id].writer
		if writer == past || !r.usable(c.listeners[writer].rules[c.place(s)]) {
			return nil
		}
	}
	sketcher := c.sketchers[r.scheme]
	if sketcher == nil {
		var err error
		if sketcher, err = r.scheme.sketcher(); err != nil {
			c.t.Fatal(err)
		}
		c.sketchers[r.scheme] = sketcher
	}
	key := fmt.Sprintf("%v\x00%v\x00%v\x00%v", r.scheme, r.fields, source["title"], source["body"])
	made, known := c.sketches[key]
	if !known {
		made = paperSketch(sketcher, r, source)
		c.sketches[key] = made
	}
	return made
}

// place returns which of the shelves one is.
func (c *contract) place(s *shelf) int {
	for i := range c.shelves {
		if c.shelves[i] == s {
			return i
		}
	}
	c.t.Fatalf("no shelf %s", s.index)
	return 0
}

// shelf returns the shelf of an index.
func (c *contract) shelf(index string) *shelf {
	for _, s := range c.shelves {
		if s.index == index {
			return s
		}
	}
	c.t.Fatalf("no shelf %s", index)
	return nil
}

// fill writes n papers, of which a share is near to others.
func (c *contract) fill(s *shelf, n int, share float64, writers func(i int) int) {
	c.t.Helper()
	if s.press == nil {
		s.press = newPress(c.t, c.r)
	}
	var list []paper
	for i := range n {
		d := s.press.next(share)
		d.writer = writers(i)
		list = append(list, d)
	}
	for len(list) > 0 {
		part := list[:min(len(list), 1000)]
		c.write(s, part...)
		list = list[len(part):]
	}
}
