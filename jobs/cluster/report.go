package cluster

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/terminal"
)

// Report is what a clustering found, as it is reported in JSON. All lists are in a fixed order and cut to the first few.
type Report struct {
	// Bands of Rows are how candidates were found, where by bands.
	Algorithm Algorithm `json:"algorithm"`
	Threshold float64   `json:"threshold"`
	Bands     int       `json:"bands,omitempty"`
	Rows      int       `json:"rows,omitempty"`
	// Documents were added; Texts are those that differ in more than case and white space.
	Documents int `json:"documents"`
	Texts     int `json:"texts"`
	// Clusters have two documents or more, Clustered in all; Alone are in none of these.
	Clusters  int         `json:"clusters"`
	Clustered int         `json:"clustered"`
	Alone     int         `json:"alone"`
	Sizes     []SizeClass `json:"sizes"`
	Largest   []Sample    `json:"largest"`
	Mirrors   []Mirror    `json:"mirrors"`
	Soft404   []Suspect   `json:"soft_404_suspects"`
	Farms     []Farm      `json:"link_farm_suspects"`
	Left      Left        `json:"left_out"`
	// WideClusters were too wide to look for mirrors in: see MostHosts.
	WideClusters int `json:"wide_clusters"`
	// Boilerplate is what [Corpus.Learn] found, nil where it was not asked.
	Boilerplate *Learned `json:"boilerplate,omitempty"`
	// Written, nil where nothing was to be, and Took, how long it took, are for the caller to fill in.
	Written *Written      `json:"written,omitempty"`
	Took    time.Duration `json:"-"`
}

// SizeClass counts the clusters of From to To documents.
type SizeClass struct {
	From      int `json:"from"`
	To        int `json:"to"`
	Clusters  int `json:"clusters"`
	Documents int `json:"documents"`
}

// Sample is a cluster with some of its ids, the first among them.
type Sample struct {
	Cluster string   `json:"cluster"`
	Size    int      `json:"size"`
	Texts   int      `json:"texts"`
	Hosts   int      `json:"hosts"`
	IDs     []string `json:"ids"`
}

// Mirror is a pair of hosts: of so many pages of either, so many have a near-duplicate on the other.
type Mirror struct {
	A       string  `json:"host_a"`
	B       string  `json:"host_b"`
	PagesA  int     `json:"pages_a"`
	PagesB  int     `json:"pages_b"`
	CommonA int     `json:"common_a"`
	CommonB int     `json:"common_b"`
	Share   float64 `json:"share"` // of both hosts' pages that are common
}

// Suspect is one short text that a host serves under many ids.
type Suspect struct {
	Host     string   `json:"host"`
	Cluster  string   `json:"cluster"`
	Pages    int      `json:"pages"`
	Share    float64  `json:"share"` // of the host's pages
	Shingles int      `json:"shingles"`
	IDs      []string `json:"ids"`
}

// Farm is a cluster of sets that share more than chance explains: so many elements, which Expected documents would have together
// if each document took its elements independently, by how frequent they are.
type Farm struct {
	Cluster  string   `json:"cluster"`
	Size     int      `json:"size"`
	Hosts    int      `json:"hosts"`
	Elements int      `json:"elements"`
	Expected float64  `json:"expected"`
	IDs      []string `json:"ids"`
}

const (
	// MostListed is how many entries a list of a report has.
	MostListed = 20
	// MostHosts is on how many hosts the documents of a cluster may be for its pairs of hosts to be counted.
	MostHosts = 100
	// samples is how many ids are shown of a cluster.
	samples = 3
	// A pair of hosts is listed from so many common pages on either, which are so large a share of their pages.
	leastCommon, leastShare = 3, 0.2
	// A soft 404 is suspected from so many pages of one host on with one text of at most so many shingles.
	leastPages, mostShingles = 10, 100
	// A link farm is suspected where so few documents would share the set by chance.
	mostExpected, leastMembers = 0.01, 3
)

// reporter builds a report from clusters in their order.
type reporter struct {
	c       *Corpus
	report  Report
	classes [33]SizeClass
	hosts   map[string]uint32 // a number for each host
	names   []string
	pages   []int // of each host
	common  *sorter[pair]
}

// Report visits all documents as [Corpus.Each] does, and returns what there is to say of them. Where it names a file, each document
// goes there with its cluster: as CSV where the name says so, else as a line of JSON.
func (c *Corpus) Report(ctx context.Context, file string) (report *Report, err error) {
	if file == "" {
		return c.report(ctx, func(*Member) error { return nil })
	}
	err = terminal.WriteFile(file, func(w io.Writer) error {
		var line []byte
		write := func(m *Member) error {
			line = jsonedit.AppendString(append(line[:0], `{"id":`...), m.ID)
			line = jsonedit.AppendString(append(line, `,"cluster":`...), m.Cluster)
			_, err := w.Write(fmt.Appendf(line, `,"size":%d,"agreement":%.4f}`+"\n", m.Size, m.Agreement))
			return err
		}
		rows := csv.NewWriter(w)
		if strings.HasSuffix(file, ".csv") {
			_ = rows.Write([]string{"id", "cluster", "size", "agreement"}) // rows.Error has what went wrong
			write = func(m *Member) error {
				return rows.Write([]string{m.ID, m.Cluster, strconv.Itoa(m.Size), strconv.FormatFloat(m.Agreement, 'f', 4, 64)})
			}
		}
		report, err = c.report(ctx, write)
		rows.Flush()
		return cmp.Or(err, rows.Error())
	})
	return report, err
}

// report visits all documents for a report.
func (c *Corpus) report(ctx context.Context, yield func(*Member) error) (*Report, error) {
	r := &reporter{c: c, hosts: map[string]uint32{}, common: newSorter[pair](&c.scratch, c.options.Memory/8, true)}
	defer r.common.free()
	r.report = Report{
		Algorithm: c.options.Algorithm, Threshold: c.options.Rule.Profile.Threshold,
		Documents: c.documents, Texts: len(c.at), Left: c.left, Sizes: []SizeClass{}, Largest: []Sample{}, Mirrors: []Mirror{},
		Soft404: []Suspect{}, Farms: []Farm{},
	}
	if c.options.Algorithm == Bands {
		r.report.Bands, r.report.Rows = c.Shape()
	}
	err := c.Each(ctx, func(members []Member) error {
		if err := r.take(members); err != nil {
			return err
		}
		for i := range members {
			if err := yield(&members[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = r.close(ctx)
	}
	return &r.report, err
}

// host counts a page of a host.
func (r *reporter) host(name string) uint32 {
	if name == "" {
		return none
	}
	number, known := r.hosts[name]
	if !known {
		number = uint32(len(r.names))
		r.hosts[name], r.names, r.pages = number, append(r.names, name), append(r.pages, 0)
	}
	r.pages[number]++
	return number
}

// onHost are the documents of a cluster that are on one host.
type onHost struct {
	host  uint32
	pages int
	ids   []string
}

// take counts a cluster.
func (r *reporter) take(members []Member) error {
	if len(members) == 1 {
		r.report.Alone++
		r.host(members[0].Host)
		return nil
	}
	r.report.Clusters++
	r.report.Clustered += len(members)
	class := &r.classes[bits.Len(uint(len(members)-1))]
	class.Clusters++
	class.Documents += len(members)
	var hosts []onHost
	places := map[uint32]int{}
	for _, m := range members {
		host := r.host(m.Host)
		if host == none {
			continue
		}
		at, known := places[host]
		if !known {
			at = len(hosts)
			places[host], hosts = at, append(hosts, onHost{host: host})
		}
		hosts[at].pages++
		if len(hosts[at].ids) < samples {
			hosts[at].ids = append(hosts[at].ids, m.ID)
		}
	}
	r.largest(members, len(hosts))
	r.suspects(members, hosts)
	r.farm(members, len(hosts))
	return r.mirrors(hosts)
}

// ids returns some ids, the first's before all.
func ids(members []Member) []string {
	list := []string{firstOf(members).ID}
	for _, m := range members {
		if !m.First && len(list) < samples {
			list = append(list, m.ID)
		}
	}
	return list
}

func firstOf(members []Member) *Member {
	return &members[slices.IndexFunc(members, func(m Member) bool { return m.First })]
}

// keep puts an entry into a list of the foremost, by an order that leaves no ties.
func keep[T any](list []T, entry T, order func(a, b T) int) []T {
	at, _ := slices.BinarySearchFunc(list, entry, order)
	list = slices.Insert(list, at, entry)
	return list[:min(len(list), MostListed)]
}

func (r *reporter) largest(members []Member, hosts int) {
	if n := len(r.report.Largest); n == MostListed && r.report.Largest[n-1].Size >= len(members) {
		return
	}
	texts := map[uint32]bool{}
	for _, m := range members {
		texts[m.Text] = true
	}
	entry := Sample{Cluster: members[0].Cluster, Size: len(members), Texts: len(texts), Hosts: hosts, IDs: ids(members)}
	r.report.Largest = keep(r.report.Largest, entry, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Cluster, b.Cluster))
	})
}

func (r *reporter) suspects(members []Member, hosts []onHost) {
	first := firstOf(members)
	if first.Shingles > mostShingles {
		return
	}
	for _, h := range hosts {
		if h.pages >= leastPages {
			entry := Suspect{Host: r.names[h.host], Cluster: first.Cluster, Pages: h.pages, Shingles: int(first.Shingles), IDs: h.ids}
			r.report.Soft404 = keep(r.report.Soft404, entry, func(a, b Suspect) int {
				return cmp.Or(cmp.Compare(b.Pages, a.Pages), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Cluster, b.Cluster))
			})
		}
	}
}

func (r *reporter) farm(members []Member, hosts int) {
	if r.c.surprise == nil || len(members) < leastMembers || hosts == 1 {
		return
	}
	first := firstOf(members)
	expected := float64(len(r.c.at)) * math.Exp2(-float64(r.c.surprise[first.Text]))
	if expected > mostExpected {
		return
	}
	entry := Farm{
		Cluster: first.Cluster, Size: len(members), Hosts: hosts, Elements: int(first.Shingles), Expected: expected, IDs: ids(members),
	}
	r.report.Farms = keep(r.report.Farms, entry, func(a, b Farm) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// mirrors counts what the pairs of hosts have in common: the pages of the lesser number in the high half.
func (r *reporter) mirrors(hosts []onHost) error {
	if len(hosts) > MostHosts {
		r.report.WideClusters++
		return nil
	}
	for i, a := range hosts {
		for _, b := range hosts[i+1:] {
			a, b := a, b
			if b.host < a.host {
				a, b = b, a
			}
			if err := r.common.add(pair{uint64(a.host)<<32 | uint64(b.host), uint64(a.pages)<<32 | uint64(b.pages)}); err != nil {
				return err
			}
		}
	}
	return nil
}

// close completes the report.
func (r *reporter) close(ctx context.Context) error {
	for i, class := range r.classes {
		if class.Clusters > 0 {
			class.From, class.To = 1<<(i-1)+1, 1<<i
			r.report.Sizes = append(r.report.Sizes, class)
		}
	}
	for i := range r.report.Soft404 {
		s := &r.report.Soft404[i]
		s.Share = float64(s.Pages) / float64(r.pages[r.hosts[s.Host]])
	}
	return r.common.each(ctx, func(p pair) error {
		a, b := p[0]>>32, p[0]&math.MaxUint32
		m := Mirror{
			A: r.names[a], B: r.names[b], PagesA: r.pages[a], PagesB: r.pages[b], CommonA: int(p[1] >> 32), CommonB: int(uint32(p[1])),
		}
		if m.B < m.A {
			m = Mirror{A: m.B, B: m.A, PagesA: m.PagesB, PagesB: m.PagesA, CommonA: m.CommonB, CommonB: m.CommonA}
		}
		m.Share = float64(m.CommonA+m.CommonB) / float64(m.PagesA+m.PagesB)
		if min(m.CommonA, m.CommonB) < leastCommon || m.Share < leastShare {
			return nil
		}
		r.report.Mirrors = keep(r.report.Mirrors, m, func(a, b Mirror) int {
			return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.CommonA+b.CommonB, a.CommonA+a.CommonB),
				cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
		})
		return nil
	})
}
