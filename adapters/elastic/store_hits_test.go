package elastic

import (
	"errors"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// TestHalfAnswers must not be taken for whole ones: what they leave out would count as not there.
func TestHalfAnswers(t *testing.T) {
	const hits = `"hits":{"hits":[{"_id":"a","_seq_no":1,"_source":{}}]}}`
	for _, c := range []struct {
		name, reply string
		whole, busy bool
	}{
		{"whole", `{"took":1,"timed_out":false,"_shards":{"total":1,"failed":0},` + hits, true, false},
		{"out of time", `{"took":1,"timed_out":true,"_shards":{"total":1,"failed":0},` + hits, false, true},
		{"a shard failed", `{"took":1,"timed_out":false,"_shards":{"total":2,"failed":1},` + hits, false, false},
		{"cut short", `{"took":1,"timed_out":false,` + hits[:len(hits)-2], false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := takeHits([]byte(c.reply))
			if (err == nil) != c.whole || errors.Is(err, adapters.ErrBusy) != c.busy || c.whole && len(found.hits) != 1 {
				t.Errorf("%d hits, %v", len(found.hits), err)
			}
		})
	}
}
