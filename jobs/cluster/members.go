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
	// Shingles is how many it has, Text the number of its text, Fingerprint what stands in its sketch. A document without text
	// has none.
	Shingles    uint32
	Text        uint32
	Fingerprint uint64
	Textless    bool
}

// inBlock is about how many members are made ready as one piece of work.
const inBlock = 1 << 12

// Each visits all documents in the order of their clusters and, within one, of their ids; those without text, each of them alone,
// come last. It may be called again. A member is good until yield returns.
func (c *Corpus) Each(ctx context.Context, yield func(*Member) error) error {
	order, ends := c.ordered()
	rule := *c.options.Rule
	var blocks [][2]int // of clusters
	for from := 0; from < len(ends); {
		to, start := from+1, begin(ends, from)
		for to < len(ends) && int(ends[to])-start <= inBlock {
			to++
		}
		blocks = append(blocks, [2]int{from, to})
		from = to
	}
	for group := range slices.Chunk(blocks, 2*runtime.GOMAXPROCS(0)) {
		ready := make([][]Member, len(group))
		err := parallel(ctx, len(group), func() func(int) error {
			r := c.Reader()
			return func(i int) (err error) {
				for at := group[i][0]; at < group[i][1] && err == nil; at++ {
					ready[i], err = r.appendCluster(ready[i], order[begin(ends, at):ends[at]], rule.ClusterID)
				}
				return err
			}
		})
		if err != nil {
			return err
		}
		for _, members := range ready {
			for i := range members {
				if err := yield(&members[i]); err != nil {
					return err
				}
			}
		}
	}
	return c.eachTextless(ctx, yield)
}

// begin is where a cluster begins whose end is listed.
func begin(ends []uint32, at int) int {
	if at == 0 {
		return 0
	}
	return int(ends[at-1])
}

// ordered returns the documents with a text, those of a cluster side by side, and where each cluster ends.
func (c *Corpus) ordered() (order, ends []uint32) {
	next := make([]uint32, len(c.at))
	for _, number := range c.number {
		if number != none {
			next[c.forest.Of(number)]++
		}
	}
	sum, clusters := uint32(0), 0
	for i, n := range next {
		if n > 0 {
			clusters++
		}
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
	ends = make([]uint32, 0, clusters)
	for i, end := range next { // of a text that leads no cluster it is where the last one ends
		if int(c.forest.Of(uint32(i))) == i {
			ends = append(ends, end)
		}
	}
	return order, ends
}

// appendCluster appends the members of one cluster.
func (r *Reader) appendCluster(list []Member, documents []uint32, name func(uint64) string) ([]Member, error) {
	c, from := r.c, len(list)
	root := c.forest.Of(c.number[documents[0]])
	id := ""
	if len(documents) > 1 {
		leader, err := r.document(c.at[root], r.other, &r.second) // where it stays
		if err != nil {
			return list, err
		}
		id = name(leader.fingerprint)
	}
	for _, document := range documents {
		h, err := r.document(document, r.room, &r.first)
		if err != nil {
			return list, err
		}
		if id == "" {
			id = name(h.fingerprint)
		}
		m := Member{Cluster: id, Size: len(documents), Agreement: 1, Text: c.number[document]}
		m.Shingles, m.Fingerprint = r.first.Shingles, h.fingerprint
		if m.ID, m.Host, m.Stored, err = c.name(h.named); err != nil {
			return list, err
		}
		if m.Text != root {
			_, agreement := c.options.Rule.Profile.NearDuplicates(&r.second, &r.first)
			m.Agreement = min(1, max(0, agreement))
		}
		list = append(list, m)
	}
	members := list[from:]
	slices.SortFunc(members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Host, b.Host)) })
	members[slices.IndexFunc(members, func(m Member) bool { return m.Text == root })].First = true
	return list, nil
}

// eachTextless visits the documents without text.
func (c *Corpus) eachTextless(ctx context.Context, yield func(*Member) error) error {
	if c.left.Textless == 0 {
		return nil
	}
	r := c.Reader()
	list := make([]Member, 0, c.left.Textless)
	for document, number := range c.number {
		if number != none {
			continue
		}
		h, err := r.document(uint32(document), r.room, &r.first)
		if err != nil {
			return err
		}
		m := Member{Size: 1, Agreement: 1, First: true, Textless: true, Text: none}
		if m.ID, m.Host, m.Stored, err = c.name(h.named); err != nil {
			return err
		}
		m.Cluster = c.options.Rule.ClusterID(h.fingerprint)
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Host, b.Host)) })
	for i := range list {
		if err := yield(&list[i]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// name reads what was kept of a document's names.
func (c *Corpus) name(named int64) (id, host, cluster string, err error) {
	var room []byte
	n := int(named & (1<<lengthBits - 1))
	if !c.names.whole() {
		room = make([]byte, n)
	}
	raw, err := c.names.read(named>>lengthBits, n, room)
	if err != nil {
		return "", "", "", err
	}
	var texts [3]string
	for i := range texts {
		length, width := binary.Uvarint(raw)
		raw = raw[width:]
		texts[i], raw = string(raw[:length]), raw[length:]
	}
	return texts[0], texts[1], texts[2], nil
}
