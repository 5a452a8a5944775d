package pictures

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// written is a document on its way in, as the client sent it and as the engine got it.
type written struct {
	method, path   string
	sent, got      []byte
	shingles, grew int
	sketch         string
}

// searched is a page on its way out.
type searched struct {
	sent              string // without the host
	asked, read       int    // hits that the engine was asked for, and that it found
	total, page, fold int
	header            string
}

// write sends a document through the sidecar and notes what the engine got.
func (c *cluster) write() (w written, err error) {
	w.method, w.path = http.MethodPut, "/news/_doc/7"
	if w.sent, err = json.Marshal(map[string]string{"title": "Late ferry", "body": report}); err != nil {
		return w, err
	}
	k, _ := sketcher(nil).Sketch("Late ferry", report)
	w.shingles = int(k.Shingles)
	c.asked()
	if _, _, err = do(w.method, c.before.URL+w.path, "application/json", w.sent); err != nil {
		return w, err
	}
	for _, x := range c.asked() {
		if x.method == w.method && x.path == w.path {
			w.got, w.grew = x.body, len(x.body)-len(w.sent)
		}
	}
	var d struct {
		Sketch string `json:"neardup_sketch"`
	}
	err = json.Unmarshal(w.got, &d)
	w.sketch = d.Sketch
	return w, err
}

// page sends a search through the sidecar and notes what the engine was asked.
func (c *cluster) page() (s searched, err error) {
	s.sent = fmt.Sprintf("/news/_search?q=%s&size=%d", query, pageSize)
	c.asked()
	reply, header, err := do(http.MethodGet, c.before.URL+s.sent, "application/json", nil)
	if err != nil {
		return s, err
	}
	s.page = len(hitsOf(reply))
	s.header, _, _ = strings.Cut(header.Get("Neardup"), "; exact")
	if _, err = fmt.Sscanf(s.header, "collapsed; raw=%d; folded=%d", &s.total, &s.fold); err != nil {
		return s, fmt.Errorf("%s: %w", s.header, err)
	}
	lookUp := func(x exchange) bool { return !strings.Contains(x.path, "/_search") } // of the mapping
	seen := slices.DeleteFunc(c.asked(), lookUp)
	if len(seen) != 1 {
		return s, fmt.Errorf("the engine saw %d requests", len(seen))
	}
	var body struct{ Size int }
	if err = json.Unmarshal(seen[0].body, &body); err != nil {
		return s, err
	}
	s.asked, s.read = body.Size, len(hitsOf(seen[0].reply))
	return s, nil
}

// The three that take part, each with a line down from its name.
const client, sidecar, engine = 110.0, 400.0, 690.0

// drawFlow shows a write and a search on their way through the sidecar.
func drawFlow() ([]byte, error) {
	c, err := startCluster()
	if err != nil {
		return nil, err
	}
	defer c.close()
	s, err := c.page() // before the write, which is a hit of no search that is shown
	if err != nil {
		return nil, err
	}
	w, err := c.write()
	if err != nil {
		return nil, err
	}
	var d drawing
	d.text(24, 38, "title", "A write and a search on their way through the sidecar")
	d.names(62, 768)
	d.writes(124, &w)
	d.searches(376, &s)
	d.rest(676)
	desc := fmt.Sprintf("Three lines downwards: client, sidecar, engine. A document goes from the client to the sidecar, "+
		"which makes a sketch "+
		"of its text, and on to the engine with the sketch as one more field. A search for %d hits goes on as one for %d "+
		"with their "+
		"sketches; of the %d that come back %d fold, and %d go to the client. Everything else goes through as it came.",
		pageSize, s.asked, s.read, s.fold, s.page)
	return d.done(784, "A write and a search on their way through the sidecar", desc), nil
}

func (d *drawing) names(y, bottom float64) {
	for i, x := range []float64{client, sidecar, engine} {
		d.line(x, y+28, x, bottom, "mark")
		d.box(x-60, y, 120, 28, 6, "panel")
		d.text(x, y+19, "middle strong ink", []string{"client", "sidecar", "engine"}[i])
	}
}

// message is an arrow with what goes along it, above; what is ours stands below.
func (d *drawing) message(from, to, y float64, class, above string, below ...piece) {
	d.arrow(from, y, to, y, class)
	d.text((from+to)/2, y-8, "middle mono small ink", above)
	if len(below) > 0 {
		d.pieces((from+to)/2, y+17, "middle small", below)
	}
}

// work is what the sidecar does between two messages.
func (d *drawing) work(y float64, lines ...string) {
	d.box(sidecar-118, y, 236, float64(len(lines))*18+10, 6, "panel")
	for i, line := range lines {
		d.text(sidecar, y+19+float64(i)*18, "middle small ink", line)
	}
}

func (d *drawing) writes(y float64, w *written) {
	d.head(y, "A write")
	d.message(client, sidecar, y+34, "axis", w.method+" "+w.path, piece{"mono", cutTo(string(w.sent), 13, 250)})
	d.work(y+66, "text → "+fmt.Sprint(w.shingles)+" shingles → sketch", fmt.Sprintf("of %d bytes, as text", len(w.sketch)))
	ours := piece{"one mono", `…,"neardup_sketch":"` + w.sketch[:10] + `…"}`}
	d.message(sidecar, engine, y+138, "axis", w.method+" "+w.path, ours)
	d.text((sidecar+engine)/2, y+170, "middle small", fmt.Sprintf("the client's bytes and %d of ours", w.grew))
	d.message(engine, sidecar, y+206, "axis", "created")
	d.message(sidecar, client, y+206, "axis", "created", piece{"", "the engine's reply"})
}

func (d *drawing) searches(y float64, s *searched) {
	d.head(y, "A search")
	d.message(client, sidecar, y+34, "axis", "GET "+s.sent)
	d.message(sidecar, engine, y+62, "axis", fmt.Sprintf("the same, size %d", s.asked), piece{"one", "and the sketches"})
	d.message(engine, sidecar, y+118, "axis", fmt.Sprintf("%d of %d hits", s.read, s.total), piece{"one", "with their sketches"})
	d.work(y+148, fmt.Sprintf("%d of %d fold, %d are left:", s.fold, s.read, s.read-s.fold), "enough for the page")
	d.message(sidecar, client, y+228, "axis", fmt.Sprintf("%d hits", s.page), piece{"", "the engine's bytes, less our field"})
	d.text((client+sidecar)/2, y+262, "middle mono small one", "Neardup: "+s.header)
	d.path("axis dashed", fmt.Sprintf("M%s %sH%s", num(sidecar), num(y+228), num(engine)))
	d.text((sidecar+engine)/2, y+220, "middle small", "in doubt, once more:")
	d.text((sidecar+engine)/2, y+245, "middle small", "the search as the client wrote it")
}

func (d *drawing) rest(y float64) {
	d.head(y, "Everything else")
	d.arrow(client, y+34, engine, y+34, "axis")
	d.aside(sidecar, y+26, "any other request, as it came")
	d.arrow(engine, y+72, client, y+72, "axis")
	d.aside(sidecar, y+64, "its reply, byte for byte")
}

// head writes what the messages below it are.
func (d *drawing) head(y float64, s string) {
	d.box(20, y-16, room(s, 14)*1.15+8, 22, 0, "paper")
	d.text(24, y, "step", s)
}

// aside writes over the line of one that takes no part.
func (d *drawing) aside(x, y float64, s string) {
	w := room(s, 11.5) + 12
	d.box(x-w/2, y-13, w, 17, 0, "paper")
	d.text(x, y, "middle small", s)
}
