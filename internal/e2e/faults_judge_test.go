package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// sight is what a client sees.
type sight int

const (
	asEver   sight = iota // what it sees when nothing is wrong: a search may come without being collapsed
	engines_              // the engine's reply to the client's own request, byte for byte but for our fields, whatever it says
	badGate               // 502 in the engine's shape
	cutOff                // the connection ends before the reply is whole
	other                 // anything else: never right
)

func (s sight) String() string {
	return [...]string{"as ever", "the engine's reply", "502", "cut off", "something else"}[s]
}

// sees says what the client of a kind of request got. back is the reply that was given in place of the engine's, if any.
func (k *faultKind) sees(t *testing.T, e *engines.Engine, g gotten, back []byte) sight {
	t.Helper()
	switch {
	case g.err != nil:
		return cutOff
	case k.sameAsEver(g):
		return asEver
	case len(back) > 0 && sameAs(back, g):
		return engines_
	case g.status == http.StatusBadGateway && inShape(e, g):
		return badGate
	}
	return other
}

// sameAsEver compares a reply with the one that comes when nothing is wrong.
func (k *faultKind) sameAsEver(g gotten) bool {
	for _, well := range []gotten{k.through, k.healthy} {
		if g.status != well.status {
			continue
		}
		a, b := plainOf(plainBody(g)), plainOf(plainBody(well))
		if a == b || lessOurs([]byte(b)) == a {
			return true
		}
	}
	return false
}

// plainBody returns a reply's body decompressed.
func plainBody(g gotten) []byte {
	if g.header.Get("Content-Encoding") != "gzip" {
		return g.body
	}
	if data, err := inflated(g.body); err == nil {
		return data
	}
	return g.body
}

// sameAs reports whether a client got the reply that was given, less our fields.
func sameAs(back []byte, g gotten) bool {
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(back)), nil)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	return err == nil && resp.StatusCode == g.status && (bytes.Equal(body, g.body) || lessOurs(body) == string(g.body))
}

// inShape reports whether an error of ours looks as the engine's do.
func inShape(e *engines.Engine, g gotten) bool {
	var shape struct {
		Message string
		Error   struct{ Reason string }
		Status  int
	}
	if json.Unmarshal(g.body, &shape) != nil {
		return false
	}
	if e.Kind == engines.Typesense {
		return shape.Message != ""
	}
	return shape.Error.Reason != "" && shape.Status == g.status
}

// cell is one fault at one kind of request.
type cell struct {
	kind  *faultKind
	fault inject.Fault
	// script makes the fault a script: nil for every request.
	script func(inject.Fault) inject.Script
	sees   []sight  // what the client may see
	races  bool     // it depends on a moment whether the fault is noticed before the next request
	counts []string // what has to be counted, each one or one of several: "a|b"
}

// drive does a cell: directly, through us, and compares. It reports whether the fault bit.
func (b *faultBench) drive(t *testing.T, c cell) bool {
	t.Helper()
	if c.script == nil {
		c.script = inject.Always
	}
	b.relay.Forget()
	b.relay.Script(c.script(c.fault))
	defer b.relay.Script(nil)
	k, direct := c.kind, gotten{}
	b.n++
	if !k.own {
		direct = attempt(t, b.e, b.relay.URL(), k.ask(b.n), within)
		if b.relay.Bites() == 0 {
			return false // the request has no such place
		}
	}
	before := b.side.moves(t)
	b.relay.Forget()
	b.relay.Script(c.script(c.fault))
	b.n++
	ask := k.ask(b.n)
	if b.n%4 < 2 { // a client that is not known yet, for whom we look things up
		ask.header = append(ask.header, "X-Cell", fmt.Sprint(b.n))
	}
	through := attempt(t, b.e, b.side.base, ask, within)
	b.relay.Script(nil)
	seen := b.relay.Seen()
	if b.relay.Bites() == 0 {
		return false
	}
	name := fmt.Sprintf("%s, %v", k.name, c.fault)
	saw := k.sees(t, b.e, through, backOf(k, seen))
	if !slices.Contains(c.sees, saw) {
		t.Errorf("%s: the client sees %v, which is to be one of %v: %v\ndirectly: %v", name, saw, c.sees, through, direct)
	}
	if !k.own && direct.err == nil && k.sameAsEver(direct) && saw != asEver && !c.races {
		t.Errorf("%s: the engine itself answers %v, through us %v", name, direct, through)
	}
	b.countedIn(t, name, before, k, c.counts)
	if k.writes() {
		b.written(t, name, k, ask, through, seen)
	}
	return true
}

// backOf returns the last reply that was given in the engine's place to a request of the client's own.
func backOf(k *faultKind, seen []inject.Exchange) (back []byte) {
	for _, x := range seen {
		if len(x.Back) > 0 && k.asks(x.Target) {
			back = x.Back
		}
	}
	return back
}

// countedIn waits until all is counted that has to be: what a client has seen may be counted a moment later.
func (b *faultBench) countedIn(t *testing.T, name string, before moves, k *faultKind, counts []string) {
	t.Helper()
	if k != nil {
		counts = append([]string{`neardup_requests_total{kind="` + k.counted + `"}`}, counts...)
	}
	var moved moves
	for range 100 {
		moved = b.side.moves(t).since(before)
		missing := 0
		for _, one := range counts {
			if !moved.any(one) {
				missing++
			}
		}
		if missing == 0 && (k == nil || moved[counts[0]] == 1) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("%s: counted %v, want %v", name, moved, counts)
}

// any reports whether one of several counters moved. A part of a name stands for all that hold it.
func (m moves) any(names string) bool {
	for name := range strings.SplitSeq(names, "|") {
		for moved, n := range m {
			if n > 0 && strings.Contains(moved, name) {
				return true
			}
		}
	}
	return false
}

// written checks that a write was sent on at most once and as it came, and that what is stored is what was sent: all of it
// where the client was told so.
func (b *faultBench) written(t *testing.T, name string, k *faultKind, ask sending, through gotten, seen []inject.Exchange) {
	t.Helper()
	sent := 0
	for _, x := range seen {
		if !k.asks(x.Target) || x.Method != ask.method || strings.Contains(x.Target, "_search") {
			continue
		}
		sent++
		if x.Whole && int(x.Sent) == len(x.Body) && lessOurs(x.Body) != ask.body {
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
	found := map[string]string{}
	ids := k.ids(n)
	if b.direct.typesense() {
		r := call(t, b.e, "GET", b.e.URL+"/collections/"+k.index+"/documents/export?filter_by=id:["+strings.Join(ids, ",")+"]", "").want(t, 200)
		for line := range strings.Lines(string(r.body)) {
			var d map[string]json.RawMessage
			decode(t, []byte(line), &d)
			var id string
			decode(t, d["id"], &id)
			found[id] = sortedDocument(t, d)
		}
	} else {
		list, _ := json.Marshal(map[string]any{"ids": ids})
		var result struct {
			Docs []struct {
				ID     string          `json:"_id"`
				Source json.RawMessage `json:"_source"`
			}
		}
		decode(t, call(t, b.e, "POST", b.e.URL+"/"+k.index+"/_mget", string(list)).want(t, 200).body, &result)
		for _, d := range result.Docs {
			if len(d.Source) > 0 {
				found[d.ID] = strings.TrimSpace(lessOurs(d.Source))
			}
		}
	}
	return found
}

// sortedDocument writes a document as json.Marshal writes a map, less our fields.
func sortedDocument(t *testing.T, d map[string]json.RawMessage) string {
	t.Helper()
	for name := range d {
		if strings.HasPrefix(name, "neardup_") {
			delete(d, name)
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// recorded returns the engine's own reply to a request, as it can be sent again.
func recorded(t *testing.T, e *engines.Engine, r sending, length int64) []byte {
	t.Helper()
	var resp *http.Response
	for tries := 0; resp == nil; tries++ {
		request, err := http.NewRequestWithContext(t.Context(), r.method, e.URL+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if length > 0 { // an engine refuses by the length alone, and its answer may come too late for who still sends
			request.ContentLength, request.Body = length, io.NopCloser(io.LimitReader(endless{}, length))
		}
		if resp, err = (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(request); err != nil && tries == 20 {
			t.Fatal(err)
		}
	}
	defer resp.Body.Close()
	resp.Close = false
	text, err := httputil.DumpResponse(resp, true)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}
