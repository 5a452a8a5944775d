package elastic

import (
	"bytes"

	"github.com/neardup/sidecar/adapters"
)

// readNeighbours prepares a search for nearest neighbours for a list of least of them. What depends in it on its size is written down, since
// readings are of other sizes.
func (q *query) readNeighbours(least int) error {
	pinned, _, err := raised(q.body, q.asked.Size, 0)
	if err != nil {
		return err
	}
	longer, most, err := raised(q.body, q.asked.Size, least)
	if err != nil {
		return err
	}
	if !bytes.Equal(longer, pinned) {
		query := adapters.Get(q.members, "query")
		alone, _ := adapters.Members(query)
		mixed := query != nil && (adapters.Get(q.members, "knn") != nil || len(alone) != 1 || alone[0].Key != "knn")
		q.raised, q.asked.Neighbours = longer, &adapters.Neighbours{Raised: most, Mixed: mixed}
	}
	q.base = pinned
	return nil
}
