package try

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/neardup/sidecar/internal/terminal"
)

// Report is the result of a set of queries.
type Report struct {
	Index string `json:"index"`
	// Sides are the names of the settings, as people read them.
	Sides []string `json:"settings"`
	// Summary are sentences.
	Summary []string `json:"summary"`
	// Figures are the numbers behind the summary, one for each side.
	Figures []Figures `json:"figures"`
	// Rows are sorted: what changes most comes first.
	Rows []Row `json:"queries"`
}

// Figures sum up the pages of one side. A query counts as often as it is in the input. Times are medians over the different queries.
type Figures struct {
	// Compared is how many queries have a collapsed page: those that failed or were left alone have none.
	Compared int `json:"-"`
	// Repeating is how many queries show a text more than once on the engine's page. RepeatingHits is how many hits these pages have, New how many
	// hits are new on them.
	Repeating     int `json:"repeating"`
	RepeatingHits int `json:"repeating_hits"`
	Folded        int `json:"folded"`
	New           int `json:"new"`
	Filled        int `json:"filled"`
	Groups        int `json:"groups"`
	// LeftAlone are the reasons for which searches were left alone, sorted.
	LeftAlone []LeftAlone `json:"left_alone"`
	Failed    int         `json:"failed"`
	Plain     Times       `json:"engine_page"`
	Times     Times       `json:"collapsed"`
}

// LeftAlone is a reason why searches were left alone, with how many.
type LeftAlone struct {
	Reason   string `json:"reason"`
	Searches int    `json:"searches"`
}

// NewReport sorts rows and sums them up. of says how many queries were not run.
func NewReport(index string, sides []string, rows []Row, of *Input) *Report {
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Changes, a.Changes), cmp.Compare(folded(&b), folded(&a)), cmp.Compare(b.Count, a.Count))
	})
	r := &Report{Index: index, Sides: sides, Rows: rows}
	for side := range sides {
		r.Figures = append(r.Figures, figuresOf(rows, side))
	}
	r.Summary = r.sentences(of)
	return r
}

// folded returns how many hits fold in all of a row's pages.
func folded(r *Row) (n int) {
	for _, page := range r.Pages {
		n += page.Folded
	}
	return n
}

// page returns the page of a side, or nil if it failed.
func (r *Row) page(side int) *Page {
	if side >= len(r.Pages) || r.Pages[side].Error != "" {
		return nil
	}
	return &r.Pages[side]
}

func figuresOf(rows []Row, side int) Figures {
	f, left := Figures{LeftAlone: []LeftAlone{}}, map[string]int{}
	var plain, times []Times
	for i := range rows {
		row, page := &rows[i], rows[i].page(side)
		switch {
		case row.Error != "":
			continue
		case page == nil:
			f.Failed += row.Count
			continue
		case page.Left != "":
			left[page.Left] += row.Count
			continue
		}
		f.Compared += row.Count
		if page.Folded > 0 {
			f.Repeating += row.Count
			f.RepeatingHits += row.Count * row.Hits
			f.New += row.Count * page.New
		}
		f.Folded += row.Count * page.Folded
		f.Filled += row.Count * min(page.Filled, page.Folded)
		f.Groups += row.Count * page.Groups
		plain, times = append(plain, row.Plain), append(times, page.Times)
	}
	for _, reason := range slices.Sorted(maps.Keys(left)) {
		f.LeftAlone = append(f.LeftAlone, LeftAlone{reason, left[reason]})
	}
	f.Plain, f.Times = medians(plain), medians(times)
	return f
}

// medians returns the median of each time.
func medians(list []Times) Times {
	of := func(time func(Times) float64) float64 {
		values := make([]float64, len(list))
		for i, times := range list {
			values[i] = time(times)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	if len(list) == 0 {
		return Times{}
	}
	return Times{
		of(func(t Times) float64 { return t.Engine }), of(func(t Times) float64 { return t.Sidecar }), of(func(t Times) float64 { return t.Total }),
	}
}

// sentences returns the summary.
func (r *Report) sentences(of *Input) (list []string) {
	all, failed, empty, differ := 0, 0, 0, 0
	for i := range r.Rows {
		row := &r.Rows[i]
		all += row.Count
		switch {
		case row.Error != "":
			failed += row.Count
		case row.Hits == 0 && row.Total == 0:
			empty += row.Count
		case row.Changes > 0:
			differ += row.Count
		}
	}
	one, more := "query", "queries"
	if all > len(r.Rows) {
		one, more = "search", "searches"
	}
	count := func(n int) string { return terminal.Count(n, one, more) }
	add := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	if len(r.Sides) > 1 {
		add("A and B show different pages for %d of %s (%s).", differ, count(all), percent(differ, all))
	}
	for side := range r.Figures {
		sentences := r.Figures[side].sentences(count)
		if len(r.Sides) > 1 { // a paragraph for each
			sentences = []string{string(rune('A'+side)) + ", " + r.Sides[side] + ". " + strings.Join(sentences, " ")}
		}
		list = append(list, sentences...)
	}
	if empty > 0 {
		add("%s %s nothing.", count(empty), verb(empty, "finds", "find"))
	}
	if failed > 0 {
		add("%s failed: the table says why.", count(failed))
	}
	if all > len(r.Rows) {
		add("%s, %s. Each ran once and counts as often as it was asked.", count(all), terminal.Count(len(r.Rows), "different query", "different queries"))
	}
	if of.Elsewhere > 0 {
		add("Left out: %s of other indices.", terminal.Count(of.Elsewhere, "line"))
	}
	if of.Left > 0 {
		add("Not run: %s.", terminal.Count(of.Left, "query", "queries"))
	}
	return list
}

// sentences describes the figures of a side.
func (f *Figures) sentences(count func(int) string) (list []string) {
	add := func(format string, values ...any) { list = append(list, fmt.Sprintf(format, values...)) }
	switch {
	case f.Compared == 0:
	case f.Repeating == 0:
		add("Of %s, none shows the same text more than once on page 1.", count(f.Compared))
	default:
		add("Of %s, %d (%s) %s the same text more than once on page 1.", count(f.Compared), f.Repeating, percent(f.Repeating, f.Compared), verb(f.Repeating, "shows", "show"))
		add("On these pages, on average %.1f of 10 results are new.%s", 10*float64(f.New)/float64(max(f.RepeatingHits, 1)), slots(f))
	}
	if len(f.LeftAlone) > 0 {
		var reasons []string
		for _, left := range f.LeftAlone {
			reasons = append(reasons, fmt.Sprintf("%s (%d)", left.Reason, left.Searches))
		}
		add("Left alone, by reason: %s.", strings.Join(reasons, ", "))
	}
	if f.Failed > 0 {
		add("%s failed when collapsed: the table says why.", count(f.Failed))
	}
	if f.Times.Total > 0 {
		add("Median time of a page: %s (engine %.1f, sidecar %.1f); without neardup %.1f.", ms(f.Times.Total), f.Times.Engine, f.Times.Sidecar, f.Plain.Total)
	}
	return list
}

// slots says how many of the freed slots were filled.
func slots(f *Figures) string {
	if f.Filled == f.Folded {
		return fmt.Sprintf(" Hiding copies freed %s: all were filled with other results.", terminal.Count(f.Folded, "place"))
	}
	return fmt.Sprintf(" Hiding copies freed %s: %s with other results; %s empty, as the engine found no more.", terminal.Count(f.Folded, "place"),
		terminal.Count(f.Filled, "was filled", "were filled"), terminal.Count(f.Folded-f.Filled, "stays", "stay"))
}

func verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func percent(part, all int) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(all, 1)))
}

func ms(time float64) string { return fmt.Sprintf("%.1f ms", time) }

// maxShown is how many rows the text shows, maxQuery how many characters of a query.
const (
	maxShown = 50
	maxQuery = 61
)

// Text returns the report for a terminal.
func (r *Report) Text() string {
	var b bytes.Buffer
	for _, sentence := range r.Summary {
		b.WriteString(sentence + "\n")
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	head := "COUNT\tHITS\tFOLDED\tNEW\tFILLED\tEMPTY\tGROUPS\tms\tms WITHOUT\tQUERY\n"
	if len(r.Sides) > 1 {
		head = "\tDIFFERENT\t" + head
	}
	_, _ = w.Write([]byte(head))
	for i := range r.Rows[:min(len(r.Rows), maxShown)] {
		row := &r.Rows[i]
		if row.Error != "" {
			r.line(w, row, 0, &Page{Error: row.Error})
		}
		for side := range row.Pages {
			r.line(w, row, side, &row.Pages[side])
		}
	}
	_ = w.Flush()
	if more := len(r.Rows) - maxShown; more > 0 {
		fmt.Fprintf(&b, "%s more: --output json or html shows all\n", terminal.Count(more, "query", "queries"))
	}
	return terminal.Harmless(b.String())
}

// line writes a page as a line of the table. The cells of a page that failed are empty.
func (r *Report) line(w *tabwriter.Writer, row *Row, side int, page *Page) {
	cells := fmt.Sprintf("%d\t%d\t%d\t%d\t%d\t%.1f", page.Folded, page.New, page.Filled, page.Empty, page.Groups, page.Total)
	note := ""
	switch {
	case page.Error != "":
		cells, note = "\t\t\t\t\t", "failed: "+oneLine(page.Error)+": "
	case page.Left != "":
		note = "left alone, " + page.Left + ": "
	}
	if len(r.Sides) > 1 {
		_, _ = fmt.Fprintf(w, "%c\t%d\t", 'A'+side, row.Changes)
	}
	_, _ = fmt.Fprintf(w, "%d\t%d\t%s\t%.1f\t%s\n", row.Count, row.Hits, cells, row.Plain.Total, note+oneLine(row.Query))
}

// oneLine puts a text on one line and shortens it to maxQuery characters.
func oneLine(text string) string {
	return terminal.Cut(strings.Join(strings.Fields(text), " "), maxQuery)
}
