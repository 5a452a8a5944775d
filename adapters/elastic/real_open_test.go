package elastic

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// TestRealOpenPart writes every document again once the first page of the open part is there: none of it is read in the same
// scan, on whichever shard it lies, and all of it behind the scan's end.
func TestRealOpenPart(t *testing.T) {
	eachEngine(t, func(t *testing.T, kind string) {
		index := fmt.Sprintf("neardup_test_open_%d", os.Getpid())
		s, send := realStore(t, kind, index, http.DefaultTransport)
		t.Cleanup(func() { send("DELETE", "/"+index, "") })
		send("PUT", "/"+index, `{"settings":{"number_of_shards":3,"number_of_replicas":0}}`)
		var lines strings.Builder
		for i := range 60 {
			fmt.Fprintf(&lines, "{\"index\":{\"_id\":\"%d\"}}\n{\"title\":\"%d\"}\n", i, i)
		}
		send("POST", "/"+index+"/_bulk", lines.String())
		names, err := Split(t.Context(), s, index, 1)
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		after := ""
		for round := range 2 {
			var read []string
			err := s.Scan(t.Context(), index, nil, adapters.Selection{Part: names[0], After: after}, func(p adapters.Page) error {
				if len(read) == 0 && round == 0 {
					send("POST", "/"+index+"/_bulk", lines.String())
					send("POST", "/"+index+"/_refresh", "")
				}
				for _, d := range p.Documents {
					read = append(read, d.ID)
				}
				after = p.After
				return nil
			})
			slices.Sort(read)
			if whole := len(slices.Compact(slices.Clone(read))); err != nil || len(read) != 60 || whole != 60 {
				t.Errorf("round %d: %d documents, %d of them different, %v", round, len(read), whole, err)
			}
		}
	})
}
