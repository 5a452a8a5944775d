package pictures

import (
	"fmt"
	"slices"
	"strings"

	"github.com/neardup/sidecar/rerank"
)

// drawFold shows a list of the walk-through's engine, what of it folds into what, and the pages that are left.
func drawFold() ([]byte, error) {
	c, err := startCluster()
	if err != nil {
		return nil, err
	}
	defer c.close()
	list, hits, err := c.ranked()
	if err != nil {
		return nil, err
	}
	collapsed := rerank.Collapse(hits, window, false)
	const top, high = 92.0, 30.0
	var d drawing
	d.text(24, 38, "title", fmt.Sprintf("A search for “%s”, and what folds", query))
	d.text(24, 74, "step", fmt.Sprintf("The engine's list, %d hits", len(list)))
	at := func(rank int) float64 { return top + float64(rank)*high }
	leader := map[int]int{}
	for _, g := range collapsed.Groups {
		for _, rank := range g.Folded {
			leader[rank] = g.Leader
		}
	}
	for rank, f := range list {
		box, class := "panel", "ink"
		_, folded := leader[rank]
		if folded {
			box, class = "ring-two dashed", "two"
		}
		d.box(24, at(rank), 330, high-5, 5, box)
		d.text(50, at(rank)+17, "end small", fmt.Sprint(rank+1))
		d.text(58, at(rank)+17, class, cutTo(f.title, 13, 286))
	}
	d.folds(at, collapsed, hits)
	d.line(16, at(window)-2.5, 474, at(window)-2.5, "mark")
	d.text(474, at(window)+17, "end small", fmt.Sprintf("beyond %d ranks", window))
	end, err := d.pages(c, list, hits, collapsed)
	if err != nil {
		return nil, err
	}
	desc := fmt.Sprintf("On the left the engine's list of %d hits. Arcs lead from each hit that folds to its leader, the "+
		"first hit of its "+
		"group, with the agreement of the two. On the right what is left, in pages of %d; a hit "+
		"behind the window of %d ranks is shown though it agrees with one before it.", len(list), pageSize, window)
	return d.done(max(at(len(list)), end)+18, "What folds of a list of hits", desc), nil
}

// folds draws an arc from each folded hit to its leader, groups side by side.
func (d *drawing) folds(at func(int) float64, c rerank.Collapsed, hits []rerank.Hit) {
	for _, g := range c.Groups {
		if len(g.Folded) == 0 {
			continue
		}
		reach := 24.0
		if slices.ContainsFunc(c.Groups, func(o rerank.Group) bool { // within another one's arcs
			return len(o.Folded) > 0 && o.Leader > g.Leader && o.Leader < g.Folded[len(g.Folded)-1]
		}) {
			reach = 78
		}
		x := 358 + reach
		head := at(g.Leader) + 12.5
		for _, rank := range g.Folded {
			y := at(rank) + 12.5
			d.path("line-two thin", fmt.Sprintf("M358 %sH%sQ%s %s %s %sV%s",
				num(y), num(x-6), num(x), num(y), num(x), num(y-6), num(head+8)))
			agreement, _ := hits[rank].Sketch.Agreement(hits[g.Leader].Sketch)
			d.text(x+5, y-2, "small two", fmt.Sprintf("%.2f", agreement))
		}
		d.path("line-two thin", fmt.Sprintf("M%s %sQ%s %s %s %sH366",
			num(x), num(head+8), num(x), num(head), num(x-8), num(head)))
		d.path("line-two head-of", fmt.Sprintf("M358 %sl8 -4v8z", num(head)))
	}
}

// pages draws the collapsed list in pages, and beneath each what the sidecar said of it. It returns where they end.
func (d *drawing) pages(c *cluster, list []found, hits []rerank.Hit, collapsed rerank.Collapsed) (y float64, err error) {
	const x, wide, high = 486, 290.0, 30.0
	y = 92
	shown := collapsedList(collapsed, len(hits))
	for from := 0; from < len(shown); from += pageSize {
		d.text(x, y-18, "step", fmt.Sprintf("Page %d", from/pageSize+1))
		for i, rank := range shown[from:min(from+pageSize, len(shown))] {
			d.box(x, y, wide, high-5, 5, "panel")
			d.text(x+24, y+17, "end small", fmt.Sprint(from+i+1))
			d.text(x+33, y+17, "ink", cutTo(list[rank].title, 13, 204))
			d.text(x+wide-8, y+17, "end small", fmt.Sprintf("rank %d", rank+1))
			y += high
		}
		page, header, err := c.search(c.before.URL, from, pageSize)
		if err != nil {
			return 0, err
		}
		for i, rank := range shown[from:min(from+pageSize, len(shown))] {
			if i >= len(page) || page[i].id != list[rank].id {
				return 0, fmt.Errorf("the sidecar shows %v from %d on, not rank %d", page, from+i, rank)
			}
		}
		said, _, _ := strings.Cut(header, "; exact")
		d.text(x, y+15, "small mono", "Neardup: "+said+"; …")
		y += 66
	}
	var notes []string
	last := shown[len(shown)-1]
	for _, g := range collapsed.Groups {
		agreement, _ := hits[last].Sketch.Agreement(hits[g.Leader].Sketch)
		if agreement >= hits[last].Profile.Threshold && last >= window {
			notes = append(notes, fmt.Sprintf("Rank %d agrees with rank %d by %.2f, and is shown all the same: beyond the "+
				"window "+
				"nothing is compared.", last+1, g.Leader+1, agreement))
		}
	}
	notes = append(notes, fmt.Sprintf("Threshold %.2f, pages of %d, a window of %d ranks; the default of the window is 1,000.",
		hits[0].Profile.Threshold, pageSize, window))
	for _, note := range notes {
		for _, line := range wrapped(strings.Fields(note), 11.5, wide) {
			d.text(x, y, "small", strings.Join(line, " "))
			y += 17
		}
		y += 10
	}
	return y, nil
}
