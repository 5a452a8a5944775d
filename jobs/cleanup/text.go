package cleanup

import (
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/terminal"
)

// verb returns what a plan does to documents: it hides them if it has a field for that.
func verb(hide string) string {
	if hide != "" {
		return "hidden"
	}
	return "deleted"
}

// counted is a line that begins with a count.
type counted struct {
	n    int
	text string
}

// writeCounts writes lines, but for those that count nothing.
func writeCounts(b *strings.Builder, lines []counted) {
	for _, line := range lines {
		if line.n > 0 {
			fmt.Fprintf(b, "%d %s\n", line.n, line.text)
		}
	}
}

// shownHosts is how many hosts are printed.
const shownHosts = 5

// String describes the plan for people, in lines.
func (p Plan) String() string {
	var b strings.Builder
	c := p.Counts
	fmt.Fprintf(&b, "%s: %s, %d of them in %s\n", p.Index, terminal.Count(c.Documents, "document"), c.Clustered, terminal.Count(c.Clusters, "cluster"))
	fmt.Fprintf(&b, "%d would be %s. Each is a near-duplicate of one of the %d documents that stay (chosen by: %s)\n", c.Go, verb(p.Hide), c.Stay, p.Keep)
	writeCounts(&b, []counted{
		{c.Others, "more in the clusters stay: they are not near-duplicates of a document that stays, or hold more text"},
		{c.Unranked, "stay: they have no readable date"},
		{c.Hidden, "are hidden already"},
		{c.LeftOut, "left out: changed or deleted meanwhile, or with an id that several share"},
	})
	for i, h := range c.Hosts {
		if i < shownHosts {
			fmt.Fprintf(&b, "  %s: %d go, %d stay\n", h.Host, h.Go, h.Stay)
		}
	}
	return b.String()
}

// Describe describes the outcome for people, in lines. hide is the plan's field, empty if it deletes.
func (a Applied) Describe(hide string) string {
	did := verb(hide)
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s\n", a.Done, did)
	writeCounts(&b, []counted{
		{a.Before, "were " + did + " before"},
		{a.Changed, "left alone: changed since the plan was made"},
		{a.Unlike, "left alone: not near-duplicates of the one that stays, by the present rule and decisions"},
		{a.Stays, "left alone: the document that stays is gone or has changed"},
		{a.Back, "put back: the document that stays changed or was deleted meanwhile"},
		{a.Refused, "refused by the engine"},
		{a.Orphans, "were deleted or hidden before, but the document that stays is now gone or changed: use --restore"},
	})
	return b.String()
}

// String describes the outcome for people, in lines.
func (r Restored) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d put back\n", r.Restored)
	writeCounts(&b, []counted{
		{r.There, "needed nothing"},
		{r.Changed, "left alone: written since"},
		{r.Gone, "left alone: deleted since"},
		{len(r.Damaged), fmt.Sprintf("lines of the undo file can't be read: %v", r.Damaged[:min(len(r.Damaged), shownHosts)])},
		{r.Refused, "refused by the engine"},
	})
	return b.String()
}
