package e2e

import (
	"encoding/json"
	"regexp"
	"testing"
)

func idsOf(t *testing.T, r reply) (ids []string, total int) {
	t.Helper()
	var result struct {
		Hits struct {
			Total struct{ Value int }
			Hits  []struct {
				ID string `json:"_id"`
			}
		}
	}
	if err := json.Unmarshal(r.body, &result); err != nil {
		t.Fatal(err)
	}
	for _, h := range result.Hits.Hits {
		ids = append(ids, h.ID)
	}
	return ids, result.Hits.Total.Value
}

// ourMember is our field as the last member of a source.
var ourMember = regexp.MustCompile(`,"neardup_sketch":"[^"]*"`)
