package e2e

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// failure is a row of the table in docs/internals/guarantees.md, "When something fails".
type failure struct {
	name   string
	kinds  func(*faultKind) bool // of requests
	faults []inject.Fault
	sees   []sight  // what the client may see
	counts []string // what has to be counted, each one or one of several: "a|b"
	races  bool     // it depends on a moment whether the fault is noticed before the next request
	once   bool     // only the first request to the engine that is the client's own meets it
	lookUp bool     // only what we ask the engine for ourselves meets it
	drive  func(t *testing.T, b *faultBench)
}

func everyKind(*faultKind) bool { return true }

// collapsing are the kinds whose reply is held whole before the client gets any of it.
func collapsing(k *faultKind) bool { return k.search() || k.own }

func streaming(k *faultKind) bool { return !collapsing(k) }

var cuts = []inject.Harm{inject.Cut, inject.Reset}

// cutAt ends the connection at each of the places.
func cutAt(from, to inject.Place) (list []inject.Fault) {
	for at := from; at <= to; at++ {
		for _, do := range cuts {
			list = append(list, inject.Fault{At: at, Do: do})
		}
	}
	return list
}

// slow stalls at each place for a while, or drips.
func slow() []inject.Fault {
	list := []inject.Fault{{At: inject.ReplyLine, Do: inject.Drip, For: time.Millisecond, Size: 500}}
	for at := inject.RequestLine; at < inject.ReplyWhole; at++ {
		list = append(list, inject.Fault{At: at, Do: inject.Stall, For: 10 * time.Millisecond})
	}
	return list
}

// refusal is the reply of an engine that has enough, in its words.
func refusal(e *engines.Engine, status int) inject.Fault {
	body := fmt.Sprintf(`{"message":"no: %d"}`, status)
	if e.Kind != engines.Typesense {
		body = fmt.Sprintf(`{"error":{"root_cause":[{"type":"no","reason":"no"}],"type":"no","reason":"no"},"status":%d}`, status)
	}
	return inject.Fault{Name: fmt.Sprint(status), Do: inject.Answer, Reply: inject.Made(status, body)}
}

func garbled(names ...string) (list []inject.Fault) {
	for _, name := range names {
		list = append(list, inject.Fault{Name: name, Do: inject.Alter, Change: inject.Garbage[name]})
	}
	return list
}

// failures are all rows.
func failures(e *engines.Engine) []failure {
	const cut, garbage = `neardup_engine_errors_total{what="cut"}`, `neardup_engine_errors_total{what="garbage"}`
	const bypassed, refused = `neardup_searches_total{outcome="bypassed"`, `neardup_searches_total{outcome="refused",reason="engine"}`
	wellFramed := garbled("half JSON", "HTML", "noise", "other JSON", "empty", "half gzip", "short length")
	busy, large := []inject.Fault{refusal(e, 429), refusal(e, 503)}, []inject.Fault{refusal(e, 413)}
	lookUps := append(garbled("HTML", "half JSON", "other JSON", "noise", "not HTTP", "empty"), refusal(e, 503),
		inject.Fault{At: inject.RequestHeader, Do: inject.Cut}, inject.Fault{At: inject.RequestWhole, Do: inject.Reset},
		inject.Fault{At: inject.ReplyBodyMiddle, Do: inject.Cut})
	return []failure{
		{name: "port closed", drive: portClosed},
		{name: "cut within the request", kinds: everyKind, faults: cutAt(inject.RequestLine, inject.RequestLastChunk),
			sees: []sight{badGate}, counts: []string{cut}},
		{name: "cut before the reply", kinds: everyKind, faults: cutAt(inject.RequestWhole, inject.RequestWhole),
			sees: []sight{badGate}, counts: []string{cut}},
		{name: "cut within the reply's head", kinds: everyKind, faults: cutAt(inject.ReplyLine, inject.ReplyHeader),
			sees: []sight{badGate}, counts: []string{cut + "|" + garbage}},
		{name: "cut within a reply that streams", kinds: streaming, faults: cutAt(inject.ReplyBodyBegin, inject.ReplyLastChunk),
			sees: []sight{cutOff, badGate}, counts: []string{cut + "|" + garbage}},
		{name: "cut within a reply that is held", kinds: collapsing, faults: cutAt(inject.ReplyBodyBegin, inject.ReplyLastChunk),
			sees: []sight{badGate}, counts: []string{cut + "|" + garbage}},
		{name: "cut behind the reply", kinds: everyKind, faults: cutAt(inject.ReplyWhole, inject.ReplyWhole),
			sees: []sight{asEver, badGate}, races: true},
		{name: "slow", kinds: everyKind, faults: slow(), sees: []sight{asEver}},
		{name: "silent", drive: silentEngine},
		{name: "busy, search", kinds: (*faultKind).search, faults: busy, sees: []sight{engines_}, counts: []string{refused + "|" + bypassed}},
		{name: "busy", kinds: func(k *faultKind) bool { return !k.search() }, faults: busy, sees: []sight{engines_}},
		{name: "too large, search", kinds: (*faultKind).search, faults: large, sees: []sight{engines_},
			counts: []string{`reason="engine_status"|reason="engine"|outcome="bypassed"`}},
		{name: "too large", kinds: streaming, faults: large, sees: []sight{engines_}},
		{name: "too large, once", kinds: (*faultKind).search, faults: large, sees: []sight{asEver}, once: true},
		{name: "another text", kinds: streaming, faults: wellFramed, sees: []sight{engines_}},
		{name: "another text, search, once", kinds: (*faultKind).search, faults: wellFramed, sees: []sight{asEver}, once: true,
			counts: []string{bypassed}},
		{name: "another text, search", kinds: (*faultKind).search, faults: wellFramed, sees: []sight{engines_, asEver},
			counts: []string{bypassed}},
		{name: "no HTTP", kinds: everyKind, faults: garbled("not HTTP"), sees: []sight{badGate}, counts: []string{garbage}},
		{name: "shorter than it says", kinds: everyKind, faults: garbled("long length"), sees: []sight{cutOff, badGate}, counts: []string{cut}},
		{name: "at a look-up", kinds: func(k *faultKind) bool { return !k.own }, faults: lookUps, sees: []sight{asEver}, lookUp: true},
		{name: "client breaks off", drive: clientBreaksOff},
	}
}

// TestFailures drives every row of the table on every engine; in the short form on Elasticsearch and Typesense.
func TestFailures(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		if !soaking() && e.Kind == engines.OpenSearch {
			return
		}
		b := newBench(t, e)
		for _, f := range failures(e) {
			t.Run(f.name, func(t *testing.T) {
				b.bit = 0
				if f.drive != nil {
					f.drive(t, b)
				} else {
					b.each(t, f)
				}
				if b.bit == 0 {
					t.Error("nothing was driven")
				}
				b.relay.Script(nil)
				for i, k := range b.kinds { // all is as ever afterwards
					if !soaking() && (i+b.turn)%3 != 0 {
						continue
					}
					if g := b.ask(t, k); !k.sameAsEver(g) {
						t.Errorf("%s afterwards: %v", k.name, g)
					}
				}
			})
		}
		b.side.signal(t, syscall.SIGTERM)
		if code, log := b.side.ended(t), fmt.Sprint(b.side.with("")); code != 0 || strings.Contains(log, "panic") || strings.Contains(log, "DATA RACE") {
			t.Errorf("the sidecar ended with %d: %s", code, log)
		}
	})
}

// each drives the faults of a row at those kinds that match.
func (b *faultBench) each(t *testing.T, f failure) {
	t.Helper()
	for _, fault := range f.faults {
		for _, k := range b.kinds {
			if turn := b.takes(); f.kinds(k) && turn && b.drive(t, f, k, fault) {
				b.bit++
			}
		}
	}
}

// takes says whether the next combination is for this engine. In the short form each engine takes every fifth, another one than the others.
func (b *faultBench) takes() bool {
	b.turn++
	return soaking() || b.turn%5 == slices.Index(engines.Kinds, b.e.Kind)
}

// script does a fault to those requests that the row says.
func (f failure) script(k *faultKind, fault inject.Fault) inject.Script {
	switch {
	case f.lookUp:
		return inject.Where(func(r inject.Request) bool {
			return !k.asks(r.Target) || k.writes() && strings.Contains(r.Target, "search")
		}, inject.Always(fault))
	case f.once:
		return inject.Where(func(r inject.Request) bool { return k.asks(r.Target) }, inject.First(1, fault))
	}
	return inject.Always(fault)
}

// drive does a fault to a request: directly, through us, and compares. It reports whether the fault bit.
func (b *faultBench) drive(t *testing.T, f failure, k *faultKind, fault inject.Fault) bool {
	t.Helper()
	defer b.relay.Script(nil)
	direct := gotten{err: errNotAsked}
	if !k.own && !f.lookUp {
		b.relay.Forget()
		b.relay.Script(f.script(k, fault))
		b.n++
		direct = attempt(t, b.e, b.relay.URL(), k.ask(b.n), within)
		if b.relay.Bites() == 0 {
			return false // the request has no such place
		}
	}
	before := b.counters(t)
	b.relay.Forget()
	b.relay.Script(f.script(k, fault))
	b.n++
	ask := k.ask(b.n)
	if f.lookUp || b.n%4 < 2 { // a client that is not known yet, for whom we look things up
		ask.header = append(ask.header, "X-Cell", fmt.Sprint(b.n))
	}
	through := attempt(t, b.e, b.base, ask, within)
	b.relay.Script(nil)
	if b.relay.Bites() == 0 {
		return false
	}
	name := fmt.Sprintf("%s, %v", k.name, fault)
	var back []byte // what came last in the engine's place
	for _, x := range b.relay.Seen() {
		if len(x.Back) > 0 && k.asks(x.Target) {
			back = x.Back
		}
	}
	saw := k.sees(through, back)
	if !slices.Contains(f.sees, saw) {
		t.Errorf("%s: the client sees %v, which is to be one of %v: %v\ndirectly: %v", name, saw, f.sees, through, direct)
	}
	if direct.err == nil && k.sameAsEver(direct) && saw != asEver && !f.races {
		t.Errorf("%s: the engine itself answers %v, through us %v", name, direct, through)
	}
	counts := f.counts
	if f.lookUp && k.writes() {
		counts = []string{"neardup_documents_total{"}
	}
	b.counted(t, name, before, k, counts...)
	if k.writes() {
		b.written(t, name, k, ask, through)
	}
	return true
}

var errNotAsked = fmt.Errorf("not asked")

func portClosed(t *testing.T, b *faultBench) {
	b.relay.Refuse(true)
	for _, k := range b.kinds {
		before := b.counters(t)
		if g := b.ask(t, k); k.sees(g, nil) != badGate {
			t.Errorf("%s: %v", k.name, g)
		}
		b.counted(t, k.name, before, k, `neardup_engine_errors_total{what="dial"}`)
		b.bit++
	}
	check(t, b.relay.Restore())
}

// silentEngine has clients that give up.
func silentEngine(t *testing.T, b *faultBench) {
	for _, at := range []inject.Place{inject.RequestHeader, inject.RequestWhole, inject.ReplyBodyMiddle} {
		for _, k := range b.kinds {
			if turn := b.takes(); k.own || !turn {
				continue
			}
			b.relay.Forget()
			b.relay.Script(inject.Where(func(r inject.Request) bool { return k.asks(r.Target) },
				inject.Always(inject.Fault{At: at, Do: inject.Stall})))
			before, name := b.counters(t), fmt.Sprintf("%s, silent at %v", k.name, at)
			b.n++
			g := attempt(t, b.e, b.base, k.ask(b.n), 100*time.Millisecond)
			if b.relay.Bites() == 0 {
				continue
			}
			b.bit++
			same(t, cutOff, k.sees(g, nil), "%s: what the client sees", name)
			b.counted(t, name, before, k, "neardup_clients_gone_total")
			for range 100 { // the engine's connection ends with the client's
				if b.relay.Open() == 0 || at == inject.ReplyBodyMiddle {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			b.relay.CutAll(true)
		}
	}
}

// clientBreaksOff cuts between the client and the sidecar: the engine never gets a request that looks whole.
func clientBreaksOff(t *testing.T, b *faultBench) {
	front := inject.Start(t, b.base)
	for _, fault := range cutAt(inject.RequestBodyBegin, inject.RequestLastChunk) {
		for _, k := range b.kinds {
			front.Forget()
			b.relay.Forget()
			front.Script(inject.Always(fault))
			before, name := b.counters(t), fmt.Sprintf("%s, the client's connection: %v", k.name, fault)
			b.n++
			ask := k.ask(b.n)
			g := attempt(t, b.e, front.URL(), ask, within)
			if front.Bites() == 0 {
				continue
			}
			if g.err == nil {
				t.Errorf("%s: it got %v", name, g)
			}
			b.bit++
			b.counted(t, name, before, k, "neardup_clients_gone_total")
			for _, x := range b.relay.Seen() {
				if k.asks(x.Target) && x.Method == ask.method && x.Whole && !strings.Contains(x.Target, "_search?") {
					t.Errorf("%s: the engine got a whole request of %d bytes", name, len(x.Body))
				}
			}
			if !k.writes() {
				continue
			}
			for id, got := range b.stored(t, k, b.n) {
				same(t, documentsOf(ask.body)[id], got, "%s: %s", name, id)
			}
		}
	}
}

// TestNoWriteTwice cuts a connection that was used before when the engine has done what a write asks: a transport must not take
// that for a reason to send it again, whatever its header says.
func TestNoWriteTwice(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		relay := inject.Start(t, e.URL)
		base := serve(t, e, setup{match: "fault-*", urls: []string{relay.URL()}})
		writes := []sending{{"DELETE", "/fault-none/_doc/1", "", nil}, {"PUT", "/fault-none/_doc/1", `{"a":1}`, nil}}
		if e.Kind == engines.Typesense {
			writes = []sending{{"DELETE", "/collections/fault-none/documents/1", "", nil}, {"POST", "/collections/fault-none/documents", `{"a":1}`, nil}}
		} else {
			api{e, e.URL}.drop(t, "fault-none")
		}
		for _, ask := range writes {
			for _, header := range []string{"X-Other", "Idempotency-Key"} {
				for _, at := range []inject.Place{inject.RequestLine, inject.RequestWhole, inject.ReplyLine, inject.ReplyBodyBegin} {
					for range 3 { // so that there are connections to be used again
						_ = attempt(t, e, base, sending{"GET", "/", "", nil}, within)
					}
					relay.Forget()
					relay.Script(inject.Where(inject.To(ask.method, ask.path), inject.Always(inject.Fault{At: at, Do: inject.Reset})))
					ask.header = []string{header, "once"}
					_ = attempt(t, e, base, ask, within)
					relay.Script(nil)
					sent := 0
					for _, x := range relay.Seen() {
						if x.Method == ask.method && x.Target == ask.path {
							sent++
						}
					}
					same(t, 1, sent, "how often %s %s is sent with %s, %v", ask.method, ask.path, header, at)
				}
			}
		}
	})
}
