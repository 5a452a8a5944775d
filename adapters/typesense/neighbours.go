package typesense

import (
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
)

// vectorQuery is a search for nearest neighbours. The engine looks for k of them, and for no fewer than its page's last rank: so its list
// differs with k, which changes what the index's graph finds, as with the page.
type vectorQuery struct {
	head   string   // up to and with the vector: "field:([0.1, 0.2]"
	params []string // what follows it, each "name: value", but for k
	own    int      // the client's k
}

// maxNeighbours bounds the client's k: all of these ranks are read.
const maxNeighbours = 10000

// readNeighbours reads how many nearest neighbours are looked for, if any are. It returns why the search is left alone, or nothing.
func (q *query) readNeighbours() adapters.Reason {
	text := q.values["vector_query"]
	if text == "" {
		return ""
	}
	switch q.vector = parseVectorQuery(text); {
	case q.vector == nil || q.values["q"] == "" || q.asked.Unseen != "" || q.key.fixed["vector_query"] != "":
		return adapters.ReasonVector
	case q.values["q"] != "*":
		return q.fuse(fusedRanks)
	}
	k := max(q.asked.Scope.VectorWindow, q.vector.own)
	if size := q.fixedSize(); size > 0 {
		k = (k + size - 1) / size * size
	}
	q.asked.Neighbours = &adapters.Neighbours{Raised: k}
	return ""
}

// neighbourCount returns for how many neighbours a reading looks, 0 where it looks for as many as the client does, or for none.
func (q *query) neighbourCount(r *adapters.Reading) int {
	if r.Own || q.asked.Neighbours == nil {
		return 0
	}
	return q.asked.Neighbours.Raised
}

// parseVectorQuery parses a vector query, nil if it is not of the form that the engine documents, or asks for more than
// maxNeighbours.
func parseVectorQuery(text string) *vectorQuery {
	end := strings.IndexByte(text, ']')
	tail, closed := strings.CutSuffix(strings.TrimSpace(text[end+1:]), ")")
	if end < 0 || !closed || strings.ContainsAny(tail, "()[]") {
		return nil
	}
	n := &vectorQuery{head: text[:end+1]}
	for i, param := range strings.Split(tail, ",") {
		param = strings.TrimSpace(param)
		if i == 0 && param == "" {
			continue // the comma after the vector
		}
		name, value, ok := strings.Cut(param, ":")
		if !ok || i == 0 {
			return nil
		}
		if strings.TrimSpace(name) != "k" {
			n.params = append(n.params, param)
			continue
		}
		k, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || k < 0 || k > maxNeighbours {
			return nil
		}
		n.own = k
	}
	return n
}

// raised returns the vector query for k neighbours.
func (n *vectorQuery) raised(k int) string {
	params := append([]string{n.head}, n.params...)
	return strings.Join(append(params, "k:"+strconv.Itoa(k)), ", ") + ")"
}
