package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// gotten is what a client got: a reply, and the error that ended it, if any.
type gotten struct {
	reply
	err error
}

// String implements fmt.Stringer.
func (g gotten) String() string {
	if g.err != nil {
		return fmt.Sprintf("%d, %d bytes, then %v", g.status, len(g.body), g.err)
	}
	return fmt.Sprintf("%d %.200s (%s)", g.status, g.body, g.header.Get("Neardup"))
}

// ok reports whether a whole good reply came.
func (g gotten) ok() bool { return g.err == nil && g.status >= 200 && g.status < 300 }

// sending is a request as a client writes it.
type sending struct {
	method, path, body string
	header             []string
}

// within is how long clients of these tests wait, where the fault is not that nothing comes.
const within = 20 * time.Second

// attempt sends a request on a connection of its own, so that nothing is sent again, and reads what comes. A client gives up after
// within.
func attempt(t *testing.T, e *engines.Engine, base string, r sending, within time.Duration) gotten {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if r.body == "" {
		r.header = append([]string{"Content-Type", ""}, r.header...)
	}
	request := must(requestOf(ctx, e, r.method, base+r.path, strings.NewReader(r.body), r.header...))(t)
	got, err := exchange(&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}, request)
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	return gotten{got, err}
}

// asIfNew are the parts of a reply that differ from one time to the next though nothing went wrong.
var asIfNew = regexp.MustCompile(`("took":|"search_time_ms":|"_version":|"_seq_no":|"_primary_term":|"version":)\d+|n\d+d|"result":"(?:created|updated)"`)

// plainOf returns a reply's body without those parts.
func plainOf(body []byte) string { return string(asIfNew.ReplaceAll(body, []byte(`${1}…`))) }

// ourFields are those that the sidecar puts behind the last member of a document; the last may break off.
var ourFields = regexp.MustCompile(`,"neardup_(?:sketch|bands|cluster)":(?:"[^"]*(?:"|$)|\[[^\]]*\]|null)`)

// lessOurs cuts what the sidecar adds out of a body of documents.
func lessOurs(body []byte) string { return string(ourFields.ReplaceAll(body, nil)) }

// faultBench is an engine behind a relay, and a sidecar in front of that.
type faultBench struct {
	e      *engines.Engine
	relay  *inject.Relay
	side   *daemon
	base   string // where that serves
	direct api    // the engine itself
	kinds  []*faultKind
	n      int // requests so far
	bit    int // faults that did harm in a row of the table
	turn   int
}

const (
	faultIndex = "fault-1"  // is searched
	faultNew   = "fault-2"  // is written to
	faultSkip  = "faultd-1" // on_duplicate: skip
)

// newBench fills an engine with documents and starts a sidecar in front of it.
func newBench(t *testing.T, e *engines.Engine) *faultBench {
	t.Helper()
	b := &faultBench{e: e, relay: inject.Start(t, e.URL), direct: api{e, e.URL}}
	text := must(os.ReadFile(config(t, e, setup{match: "fault-*", urls: []string{b.relay.URL()}, limits: "{advanced: {fallback_share: 1}}"})))(t)
	b.side = daemonOf(t, string(text)+`      - {match: "faultd-*", fields: [title, body], bands: auto, on_duplicate: skip}`+"\n")
	for _, line := range b.side.with("listening") {
		b.base = "http://" + line["addr"].(string)
	}
	through, list := api{e, b.base}, documents(t)[:80]
	for _, index := range []string{faultIndex, faultNew, faultSkip} {
		through.create(t, index, list...)
	}
	b.kinds = faultKinds(e, list[3].ID)
	for _, k := range b.kinds {
		b.healthy(t, k)
	}
	b.relay.Forget()
	return b
}

// healthy asks when nothing is wrong.
func (b *faultBench) healthy(t *testing.T, k *faultKind) {
	t.Helper()
	k.through = b.ask(t, k)
	if k.healthy = k.through; !k.own {
		b.n++
		k.healthy = attempt(t, b.e, b.relay.URL(), k.ask(b.n), within)
	}
	for _, g := range []gotten{k.through, k.healthy} {
		if !g.ok() {
			t.Fatalf("%s: %v", k.name, g)
		}
	}
	if k.search() && !strings.HasPrefix(k.through.header.Get("Neardup"), "collapsed") {
		t.Fatalf("%s: %v", k.name, k.through)
	}
}

// ask sends a request of a kind to the sidecar.
func (b *faultBench) ask(t *testing.T, k *faultKind) gotten {
	t.Helper()
	b.n++
	return attempt(t, b.e, b.base, k.ask(b.n), within)
}

// counters are the sidecar's metrics, by name and labels less that of the engine.
type counters map[string]float64

var engineLabel = regexp.MustCompile(`engine="[^"]*",?`)

func (b *faultBench) counters(t *testing.T) counters {
	t.Helper()
	_, series := scraped(t, b.side.base(t, ""))
	found := counters{}
	for name, n := range series {
		found[engineLabel.ReplaceAllString(name, "")] += n
	}
	return found
}

// moved returns by how much a counter moved since before. Several parts of names, as in "a|b", stand for all that hold one of them.
func (c counters) moved(before counters, names string) (sum float64) {
	for name := range strings.SplitSeq(names, "|") {
		for each, n := range c {
			if strings.Contains(each, name) {
				sum += n - before[each]
			}
		}
	}
	return sum
}

// counted waits until all is counted that has to be, the request itself once: what a client has seen may be counted a moment later.
func (b *faultBench) counted(t *testing.T, name string, before counters, k *faultKind, counts ...string) {
	t.Helper()
	missing, request := "", `neardup_requests_total{kind="`+k.counted+`"}`
	counted := until(func() bool {
		now := b.counters(t)
		missing = ""
		if now.moved(before, request) != 1 {
			missing = request
		}
		for _, one := range counts {
			if now.moved(before, one) == 0 {
				missing = one
			}
		}
		return missing == ""
	})
	if !counted {
		t.Errorf("%s: %s is not counted", name, missing)
	}
}

// written checks that a write was sent on at most once and as it came, and that what is stored is what was sent: all of it where the
// client was told so.
func (b *faultBench) written(t *testing.T, name string, k *faultKind, ask sending, through gotten) {
	t.Helper()
	sent := 0
	for _, x := range b.relay.Seen() {
		if !k.asks(x.Target) || x.Method != ask.method || strings.Contains(x.Target, "_search") {
			continue
		}
		if sent++; x.Whole && lessOurs(x.Body) != ask.body {
			t.Errorf("%s: another body was sent: %.300q", name, lessOurs(x.Body))
		}
	}
	if sent > 1 {
		t.Errorf("%s: the write was sent %d times", name, sent)
	}
	stored := b.stored(t, k, b.n)
	acknowledged := through.ok() && k.sameAsEver(through)
	for id, want := range documentsOf(ask.body) {
		got, there := stored[id]
		if there && got != want {
			t.Errorf("%s: %s is stored as %.300s", name, id, got)
		}
		if !there && acknowledged {
			t.Errorf("%s: %s is acknowledged and not there", name, id)
		}
	}
}

// documentsOf returns the documents of a write by their ids.
func documentsOf(body string) map[string]string {
	found := map[string]string{}
	for line := range strings.Lines(body) {
		var d struct{ ID string }
		if json.Unmarshal([]byte(line), &d) == nil && d.ID != "" {
			found[d.ID] = strings.TrimSpace(line)
		}
	}
	return found
}

// stored returns what the engine has of the documents of a request, less our fields.
func (b *faultBench) stored(t *testing.T, k *faultKind, n int) map[string]string {
	t.Helper()
	ids := idsFrom(n, k.documents)
	if b.direct.typesense() {
		path := "/collections/" + k.index + "/documents/export?filter_by=id:[" + strings.Join(ids, ",") + "]"
		return documentsOf(lessOurs(call(t, b.e, "GET", b.e.URL+path, "").want(t, 200).body))
	}
	list, _ := json.Marshal(map[string]any{"ids": ids}) // strings always can be
	var result struct {
		Docs []struct {
			Source json.RawMessage `json:"_source"`
		}
	}
	decode(t, call(t, b.e, "POST", b.e.URL+"/"+k.index+"/_mget", string(list)).want(t, 200).body, &result)
	var lines strings.Builder
	for _, d := range result.Docs {
		lines.WriteString(lessOurs(d.Source) + "\n")
	}
	return documentsOf(lines.String())
}
