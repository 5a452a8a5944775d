package elastic

import (
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// TestRealBlankIndex reads an index that never had a document nor a mapping, in which engines do not know even their own fields:
// there is nothing in it, and that is no error.
func TestRealBlankIndex(t *testing.T) {
	eachEngine(t, func(t *testing.T, kind string) {
		index := fmt.Sprintf("neardup_test_blank_%d", os.Getpid())
		_, send := realStore(t, kind, index, http.DefaultTransport)
		t.Cleanup(func() { send("DELETE", "/"+index, "") })
		send("PUT", "/"+index, `{"settings":{"number_of_replicas":0}}`)
		for way, transport := range map[string]http.RoundTripper{"points": http.DefaultTransport, "scroll": &withoutPoints{}} {
			s, _ := realStore(t, kind, index, transport)
			parts, err := Split(t.Context(), s, index, 3)
			if err != nil || len(parts) != 1 {
				t.Errorf("%s: split into %v, %v", way, parts, err)
			}
			for name, selected := range map[string]adapters.Selection{
				"all": {}, "a part": {Part: parts[0]}, "behind": {Part: parts[0], After: "7"}, "the first": {Limit: 1, Brief: true},
				"a sample": {Random: true, Limit: 5}, "bands": {Bands: []int64{1}, Brief: true, Limit: 10}, "lacking": {Lacking: true},
				"ids": {IDs: []string{"a"}},
			} {
				err := s.Scan(t.Context(), index, jobsRule(t, index), selected, func(p adapters.Page) error {
					if len(p.Documents) > 0 {
						t.Errorf("%s by %s: %v", name, way, p.Documents)
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s by %s: %v", name, way, err)
				}
			}
		}
	})
}
