package e2e

import (
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
)

// TestReindexOfAnIndexMadeAnew resumes a job whose index was deleted since and made again under its name: no checkpoint of the
// former one counts.
func TestReindexOfAnIndexMadeAnew(t *testing.T) {
	besides(t, func(t *testing.T, e *engines.Engine) {
		const index, documents = "rj-anew", 60
		direct := api{e, e.URL}
		file := config(t, e, setup{match: index})
		t.Run("former", func(t *testing.T) { // which is dropped at the end of this
			jobIndex(t, direct, index, documents)
			if got, complaint, code := reindex(t, "--config", file); code != 0 || got.Written != documents {
				t.Fatalf("%d %+v %s", code, got, complaint)
			}
		})
		time.Sleep(1100 * time.Millisecond) // Typesense tells collections apart by the second
		jobIndex(t, direct, index, documents)
		if got, complaint, code := reindex(t, "--config", file, "--resume"); code != 0 || got.Written != documents || got.Resumed || !got.Anew {
			t.Errorf("%d %+v %s", code, got, complaint)
		}
		if lacking, why := unfit(t, direct, index); lacking > 0 || why != "" {
			t.Errorf("%d lack a sketch, %s", lacking, why)
		}
	})
}
