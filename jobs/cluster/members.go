package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
)

// Member is a document in its cluster.
type Member struct {
	// ID, Host and Stored are the document's own: Stored is its Document.Cluster.
	ID, Host, Stored string
	// Cluster is the id of its cluster, Size how many documents that has.
	Cluster string
	Size    int
	// Agreement is that with the cluster's first, 0 to 1, and 1 for an equal text: what the rule's measure estimates from the
	// sketches.
	Agreement float64
	// First says that it is the cluster's first: of least fingerprint, and of least id among those.
	First bool
	// Shingles is how many it has, Text the number of its text, Fingerprint that of its sketch. A document without text has
	// the Text none.
	Shingles    uint32
	Text        uint32
	Fingerprint uint64
}

// inBatch is about how many members each core makes ready at a time.
const inBatch = 1 << 13

// Each visits the clusters, those without a near-duplicate among them, and in the order of their ids the members of each. Documents
// without text, each of them alone, come last. It may be called again.
func (c *Corpus) Each(ctx context.Context, yield func([]Member) error) error {
	order, ends := c.ordered()
	cores := runtime.GOMAXPROCS(0)
	for start := 0; len(ends) > 0; {
		n, _ := slices.BinarySearch(ends, uint32(min(start+cores*inBatch, len(order))))
		batch := make([][]Member, min(n+1, len(ends)))
		err := parallel(ctx, cores, func(core int) (err error) {
			r := reader{c: c}
			for i := core; i < len(batch) && err == nil; i += cores {
				from := start
				if i > 0 {
					from = int(ends[i-1])
				}
				batch[i], err = r.membersOf(order[from:ends[i]])
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, members := range batch {
			if err := yield(members); err != nil {
				return err
			}
		}
		start, ends = int(ends[len(batch)-1]), ends[len(batch):]
	}
	var textless []uint32
	for document, number := range c.number {
		if number == none {
			textless = append(textless, uint32(document))
		}
	}
	r := reader{c: c}
	list, err := r.membersOf(textless)
	for i := range list {
		if err == nil {
			err = yield(list[i : i+1])
		}
	}
	return cmp.Or(err, ctx.Err())
}

// ordered returns the documents with a text, those of a cluster side by side, and where each cluster ends.
func (c *Corpus) ordered() (order, ends []uint32) {
	next := make([]uint32, len(c.at))
	for _, number := range c.number {
		if number != none {
			next[c.forest.Of(number)]++
		}
	}
	sum := uint32(0)
	for i, n := range next {
		next[i], sum = sum, sum+n
	}
	order = make([]uint32, sum)
	for document, number := range c.number {
		if number != none {
			at := &next[c.forest.Of(number)]
			order[*at] = uint32(document)
			*at++
		}
	}
	return order, slices.Compact(next) // of a text that leads no cluster it is where the last one ends
}

// membersOf returns the members of one cluster, or the documents without text.
func (r *reader) membersOf(documents []uint32) ([]Member, error) {
	if len(r.members) < len(documents) { // most clusters are small
		r.members = make([]Member, max(len(documents), inBatch/8))
	}
	var list []Member
	list, r.members = r.members[:0:len(documents)], r.members[len(documents):]
	c, root := r.c, uint32(none)
	if len(documents) > 0 && c.number[documents[0]] != none {
		root = c.forest.Of(c.number[documents[0]])
	}
	if len(documents) > 1 && root != none {
		if _, err := r.read(c.at[root], 1); err != nil { // where it stays
			return nil, err
		}
	}
	s := &r.sketches[0]
	for _, document := range documents {
		names, err := r.read(document, 0)
		if err != nil {
			return nil, err
		}
		m := Member{
			ID: cutText(&names), Host: cutText(&names), Stored: cutText(&names), Size: len(documents), Agreement: 1,
			Shingles: s.Shingles, Text: c.number[document], Fingerprint: s.Fingerprint,
		}
		if m.Text != root {
			_, agreement := c.options.Rule.Profile.NearDuplicates(&r.sketches[1], s)
			m.Agreement = min(1, max(0, agreement))
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Host, b.Host)) })
	first, cluster := slices.IndexFunc(list, func(m Member) bool { return m.Text == root }), ""
	for i := range list {
		if root == none {
			first, cluster, list[i].Size = i, "", 1
		}
		if cluster == "" {
			cluster = c.options.Rule.ClusterID(c.name(root, &list[first]))
		}
		list[i].Cluster, list[i].First = cluster, i == first
	}
	return list, nil
}

// cutText takes one text from the front of a record's names.
func cutText(names *[]byte) string {
	length, width := binary.Uvarint(*names)
	text := string((*names)[width : width+int(length)])
	*names = (*names)[width+int(length):]
	return text
}
