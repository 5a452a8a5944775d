package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// TestRemoveWhileOthersWrite takes our fields out while another client goes on writing documents that have them: no write of its own is
// lost, and when it has stopped a further run leaves nothing of ours.
func TestRemoveWhileOthersWrite(t *testing.T) {
	atOnce(t, []string{engines.Elasticsearch, engines.Typesense}, func(t *testing.T, e *engines.Engine) {
		const index, size = "removed-live", 80
		direct := api{e, e.URL}
		direct.drop(t, index)
		direct.create(t, index)
		file := config(t, e, setup{match: index})
		if out, code := sidecar(t, "setup", "--config", file); code != 0 {
			t.Fatalf("setup ended with %d: %s", code, out)
		}
		through := api{e, serveFile(t, file)}
		last := map[string]string{}
		write := func(ids []int, version int) {
			var lines strings.Builder
			for _, i := range ids {
				id := fmt.Sprintf("l-%d", i)
				if !direct.typesense() {
					fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n", index, id)
				}
				last[id] = fmt.Sprintf("version %d of the document number %d", version, i)
				fmt.Fprintf(&lines, "{\"id\":%q,\"title\":%q,\"body\":\"that is written again and again\"}\n", id, last[id])
			}
			through.loadLines(t, index, lines.String())
		}
		var all []int
		for i := range size {
			all = append(all, i)
		}
		write(all, 0)
		stop := make(chan struct{})
		var writing sync.WaitGroup
		writing.Go(func() {
			for version := 1; ; version++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				var some []int
				for range 5 {
					if i := rand.IntN(size); len(some) == 0 || i != some[0] {
						some = append(some[:min(len(some), 1)], i)
					}
				}
				write(some, version)
			}
		})
		out, code := sidecar(t, "remove", "--config", file, "--index", index, "--yes", "--requests-per-second", "60")
		close(stop)
		writing.Wait()
		if code > 1 || number(t, out, "held something") < size/2 {
			t.Errorf("it ended with %d: %s", code, out)
		}
		if out, code = sidecar(t, "remove", "--config", file, "--index", index, "--yes"); code != 0 {
			t.Errorf("when all was quiet it ended with %d: %s", code, out)
		}
		titles := map[string]string{}
		for id, h := range stored(t, direct, index) {
			if strings.Contains(string(h.source), "neardup_") {
				t.Errorf("%s has something of ours: %s", id, h.source)
			}
			titles[id] = idOf(t, h.source, "title")
		}
		if diff := cmp.Diff(last, titles); diff != "" {
			t.Errorf("writes were lost: %s", diff)
		}
	})
}
