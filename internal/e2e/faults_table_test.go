package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// failure is a row of the table in docs/guarantees.md, "When something fails", and what drives it. TestFailureTable holds the
// two together.
type failure struct {
	component, fault, request, sees, counted string
	drive                                    func(t *testing.T, b *faultBench)
}

// failures are all of them.
var failures = []failure{
	{"engine", "port closed", "all", "502 in the engine's shape", "`engine_errors{what=\"dial\"}`", portClosed},
	{"engine", "connection ends (FIN or RST) within the request", "all", "502: the engine never had it whole",
		"`engine_errors{what=\"cut\"}`", cutRequests},
	{"engine", "connection ends before the reply's body", "all", "502; the engine may have done it. A write is never sent again",
		"`engine_errors{what=\"cut\"}`; `garbage` within the status line or header", cutBeforeReply},
	{"engine", "connection ends within the reply's body", "pass, read, write",
		"the same: the reply breaks off where the engine's did", "`engine_errors{what=\"cut\"}`", cutWrittenReply},
	{"engine", "connection ends within the reply's body", "search, cursor page, question", "502: no part of it was sent on",
		"`engine_errors{what=\"cut\"}`", cutSearchReply},
	{"engine", "connection ends behind the reply", "all",
		"nothing; a write or search that is just going out on the old connection is a 502, as for who keeps connections",
		"nothing", cutBehind},
	{"engine", "slow, or stalled for a while", "all", "the whole answer, later", "`engine_seconds`", slowEngine},
	{"engine", "takes connections and never answers", "all",
		"nothing until it gives up itself; a look-up of ours is waited for 5 s at most",
		"`clients_gone`", silentEngine},
	{"engine", "429 or 503", "all", "the engine's reply, at once; a search is not asked again",
		"`searches{outcome=\"refused\",reason=\"engine\"}`", busyEngine},
	{"engine", "413", "all", "the engine's reply; a search that we made longer is asked as it was sent",
		"`searches{reason=\"engine_status\"}`", largeForEngine},
	{"engine", "a reply of another text: half of it, HTML, noise, other JSON, nothing, half of a gzip stream", "pass, read, write",
		"what the engine sent", "nothing", garbageElsewhere},
	{"engine", "the same, once", "search, cursor page", "the engine's answer to the client's own search",
		"`searches{outcome=\"bypassed\"}`", garbageOnce},
	{"engine", "the same, always", "search, cursor page", "what the engine sent", "`searches{outcome=\"bypassed\"}`",
		garbageSearches},
	{"engine", "a reply that is no HTTP, or longer by its header than it is", "all", "502, or a reply that breaks off",
		"`engine_errors{what=\"garbage\"}` or `cut`", brokenFrames},
	{"engine", "anything, at a look-up of ours alone", "all but question", "the whole answer; documents may pass without sketches",
		"`documents{change=\"unprepared\"}`", lookUps},
	{"engine", "killed (kill -9) within a bulk or a search", "write, search",
		"502; while it is away, 502; when it is back, answers as ever", "`engine_errors`", killedEngine},
	{"engine", "its disk is full", "write",
		"the engine's refusal (429, or for each operation of a bulk); searches and reads as ever", "nothing more", fullEngine},
	{"engine", "a host name that can't be resolved", "all", "502", "`engine_errors{what=\"dial\"}`", unknownHost},
	{"engine", "its certificate is expired, not valid yet, of another host, of no known authority; TLS too old, or none",
		"all", "502; the log says why",
		"`engine_errors{what=\"dial\"}`; `garbage` without TLS", wrongCertificates},
	{"client", "breaks off within its request", "all with a body", "nothing; the engine never gets a request that looks whole",
		"`clients_gone`", clientBreaksOff},
	{"client", "slow", "all", "the whole answer", "`added_seconds` leaves the waiting out", slowClient},
	{"sidecar", "killed (kill -9) while a request is under way", "write, search",
		"the connection ends; what the engine had whole it may have done, anything else not",
		"the counts begin anew", killedSidecar},
	{"sidecar", "its log can't be written (disk full)", "all", "answers as ever", "as ever", fullLog},
	{"sidecar", "little memory (`GOMEMLIMIT`)", "all", "answers as ever, more slowly", "`go_gc_*`", littleMemory},
	{"sidecar", "no file descriptors left", "all", "connections wait; 502 where the engine can't be dialled",
		"`engine_errors{what=\"dial\"}`", noDescriptors},
	{"sidecar", "configuration loaded anew under load, good or bad", "all", "answers as ever; a bad one is not taken",
		"`config_reloads{result=\"ok\"}`, `failed`", reloaded},
	{"sidecar", "the clock jumps", "all",
		"answers as ever: times go by the clock that never jumps. Leases of jobs end by either; date math goes by the engine",
		"nothing", jumpingClock},
	{"admin", "no engine can be reached", "/livez, /readyz, /metrics", "/readyz 503, the others 200", "nothing", pagesOfAdmin},
	{"commands", "standard output, or the file of --output, on a full disk", "sketch, cluster, config print, verify",
		"not exit code 0, and why; no file that looks whole", "nothing", fullDisk},
}

// TestFailures drives every row of the table on every engine; in the short form on Elasticsearch and Typesense.
func TestFailures(t *testing.T) {
	sideBySide(t, func(t *testing.T, e *engines.Engine) {
		if !long && e.Kind == engines.OpenSearch {
			return
		}
		b := newBench(t, e)
		for _, f := range failures {
			t.Run(f.name(), func(t *testing.T) {
				began := time.Now()
				f.drive(t, b)
				t.Logf("%d faults bit, %v", b.bit, time.Since(began).Round(time.Millisecond))
				if b.bit == 0 {
					t.Error("nothing was driven")
				}
				b.bit = 0
				b.well(t)
			})
		}
	})
}

func (f failure) name() string { return f.component + ": " + f.fault + ": " + f.request }

// row is the row of the table.
func (f failure) row() string {
	return fmt.Sprintf("| %s | %s | %s | %s | %s |", f.component, f.fault, f.request, f.sees, f.counted)
}

// well checks that everything is as ever after a fault.
func (b *faultBench) well(t *testing.T) {
	t.Helper()
	b.relay.Script(nil)
	for i, k := range b.kinds {
		if b.n++; !long && (i+b.turn)%3 != 0 {
			continue
		}
		if g := attempt(t, b.e, b.side.base, k.ask(b.n), within); !k.sameAsEver(g) {
			t.Errorf("%s afterwards: %v", k.name, g)
		}
	}
}

// long says that the tests are to try every combination.
var long = os.Getenv("NEARDUP_SOAK") != ""

// each drives a fault at those kinds that match.
func (b *faultBench) each(t *testing.T, f inject.Fault, match func(*faultKind) bool, c cell) {
	t.Helper()
	for _, k := range b.kinds {
		if turn := b.takes(); !match(k) || !turn {
			continue
		}
		c.kind, c.fault = k, f
		if b.drive(t, c) {
			b.bit++
		}
	}
}

// takes says whether the next combination is for this engine. In the short form each engine takes every fifth, another one than the others.
func (b *faultBench) takes() bool {
	b.turn++
	return long || b.turn%5 == slices.Index(engines.Kinds, b.e.Kind)
}

func everyKind(*faultKind) bool { return true }

// collapsing are the kinds whose reply is held whole before the client gets any of it.
func collapsing(k *faultKind) bool { return k.search() || k.own }

func streaming(k *faultKind) bool { return !collapsing(k) }

var cuts = []inject.Harm{inject.Cut, inject.Reset}

func portClosed(t *testing.T, b *faultBench) {
	b.relay.Refuse(true)
	for _, k := range b.kinds {
		b.n++
		before := b.side.moves(t)
		if g := attempt(t, b.e, b.side.base, k.ask(b.n), within); k.sees(t, b.e, g, nil) != badGate {
			t.Errorf("%s: %v", k.name, g)
		}
		b.countedIn(t, k.name, before, k, []string{`neardup_engine_errors_total{what="dial"}`})
		b.bit++
	}
	if err := b.relay.Restore(); err != nil {
		t.Fatal(err)
	}
}

func cutRequests(t *testing.T, b *faultBench) {
	c := cell{sees: []sight{badGate}, counts: []string{`neardup_engine_errors_total{what="cut"}`}}
	for _, do := range cuts {
		for at := inject.RequestLine; at < inject.RequestWhole; at++ {
			b.each(t, inject.Fault{At: at, Do: do}, everyKind, c)
		}
	}
}

func cutBeforeReply(t *testing.T, b *faultBench) {
	for _, do := range cuts {
		for at := inject.RequestWhole; at < inject.ReplyBodyBegin; at++ {
			what := []string{`neardup_engine_errors_total{what="cut"}`}
			if at > inject.RequestWhole {
				what[0] += `|neardup_engine_errors_total{what="garbage"}`
			}
			b.each(t, inject.Fault{At: at, Do: do}, everyKind, cell{sees: []sight{badGate}, counts: what})
		}
	}
}

var inReply = []inject.Place{inject.ReplyBodyBegin, inject.ReplyBodyMiddle, inject.ReplyBodyLast, inject.ReplyLastChunk}

// endOfReply: what is missing of a chunked reply's end alone may be told by net/http in words of its own.
const endOfReply = `neardup_engine_errors_total{what="cut"}|neardup_engine_errors_total{what="garbage"}`

func cutWrittenReply(t *testing.T, b *faultBench) {
	for _, do := range cuts {
		for _, at := range inReply {
			b.each(t, inject.Fault{At: at, Do: do}, streaming, cell{sees: []sight{cutOff, badGate}, counts: []string{endOfReply}})
		}
	}
}

func cutSearchReply(t *testing.T, b *faultBench) {
	for _, do := range cuts {
		for _, at := range inReply {
			b.each(t, inject.Fault{At: at, Do: do}, collapsing, cell{sees: []sight{badGate}, counts: []string{endOfReply}})
		}
	}
}

func cutBehind(t *testing.T, b *faultBench) {
	for _, do := range cuts {
		b.each(t, inject.Fault{At: inject.ReplyWhole, Do: do}, everyKind, cell{sees: []sight{asEver, badGate}, races: true})
	}
}

func slowEngine(t *testing.T, b *faultBench) {
	const pause = 10 * time.Millisecond
	for _, at := range inject.Places[:len(inject.Places)-1] {
		b.each(t, inject.Fault{At: at, Do: inject.Stall, For: pause}, everyKind, cell{sees: []sight{asEver}})
	}
	b.each(t, inject.Fault{At: inject.ReplyLine, Do: inject.Drip, For: time.Millisecond, Size: 500}, everyKind, cell{sees: []sight{asEver}})
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
			before := b.side.moves(t)
			b.n++
			g := attempt(t, b.e, b.side.base, k.ask(b.n), 100*time.Millisecond)
			if b.relay.Bites() == 0 {
				continue
			}
			b.bit++
			if saw := k.sees(t, b.e, g, nil); saw != cutOff {
				t.Errorf("%s, silent at %v: the client sees %v", k.name, at, saw)
			}
			b.countedIn(t, fmt.Sprintf("%s, silent at %v", k.name, at), before, k, []string{"neardup_clients_gone_total"})
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

// refusalsOf returns the engine's own replies of a status where it has any, and one made up in its shape else.
func refusalsOf(t *testing.T, b *faultBench, status int) []byte {
	t.Helper()
	if b.direct.typesense() {
		return inject.Made(status, `{"message": "Rejecting write: running out of resource type: OUT_OF_MEMORY"}`)
	}
	const index = "fault-refuses"
	b.direct.drop(t, index)
	if call(t, b.e, "HEAD", b.e.URL+"/"+index, "").status == http.StatusNotFound {
		call(t, b.e, "PUT", b.e.URL+"/"+index+"?wait_for_active_shards=0", `{"settings":{"index.routing.allocation.require._name":"nowhere"}}`).want(t, 200)
	}
	r, length := sending{"GET", "/" + index + "/_search", "", nil}, int64(0)
	switch status {
	case http.StatusTooManyRequests:
		call(t, b.e, "PUT", b.e.URL+"/"+index+"/_settings", `{"index.blocks.read_only_allow_delete":true}`).want(t, 200)
		r = sending{"PUT", "/" + index + "/_doc/1", `{"a":1}`, nil}
	case http.StatusRequestEntityTooLarge:
		r, length = sending{"POST", "/_bulk", "", nil}, 200<<20
	}
	reply := recorded(t, b.e, r, length)
	if !strings.Contains(string(reply[:20]), fmt.Sprint(status)) {
		t.Fatalf("the engine answers %.300s, want %d", reply, status)
	}
	return reply
}

func busyEngine(t *testing.T, b *faultBench) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		f := inject.Fault{Name: fmt.Sprint(status), At: inject.RequestWhole, Do: inject.Answer, Reply: refusalsOf(t, b, status)}
		searches := []string{`neardup_searches_total{outcome="refused",reason="engine"}|neardup_searches_total{outcome="bypassed"`}
		b.each(t, f, func(k *faultKind) bool { return k.search() }, cell{sees: []sight{engines_}, counts: searches})
		b.each(t, f, func(k *faultKind) bool { return !k.search() && !k.own }, cell{sees: []sight{engines_}})
		for _, k := range b.kinds { // our own question has the engine's status
			if !k.own {
				continue
			}
			b.relay.Script(inject.Always(f))
			if g := attempt(t, b.e, b.side.base, k.ask(0), within); g.status != status {
				t.Errorf("%s: %v", k.name, g)
			}
			b.relay.Script(nil)
		}
	}
}

func largeForEngine(t *testing.T, b *faultBench) {
	f := inject.Fault{Name: "413", At: inject.RequestWhole, Do: inject.Answer, Reply: refusalsOf(t, b, http.StatusRequestEntityTooLarge)}
	b.each(t, f, func(k *faultKind) bool { return k.search() }, cell{sees: []sight{engines_}, counts: []string{`reason="engine_status"|reason="engine"|outcome="bypassed"`}})
	b.each(t, f, streaming, cell{sees: []sight{engines_}})
	once := cell{sees: []sight{asEver}, script: func(f inject.Fault) inject.Script { return inject.First(1, f) }}
	b.each(t, f, func(k *faultKind) bool { return k.search() }, once)
}

// wellFramed are the replies that are good HTTP and not what was asked for.
var wellFramed = []string{"half JSON", "HTML", "noise", "other JSON", "empty", "half gzip", "short length"}

func garbled(name string) inject.Fault {
	return inject.Fault{Name: name, At: inject.ReplyLine, Do: inject.Alter, Change: inject.Garbage[name]}
}

func garbageElsewhere(t *testing.T, b *faultBench) {
	for _, name := range wellFramed {
		b.each(t, garbled(name), streaming, cell{sees: []sight{engines_}})
	}
}

func garbageOnce(t *testing.T, b *faultBench) {
	for _, name := range wellFramed {
		for _, k := range b.kinds {
			b.each(t, garbled(name), func(each *faultKind) bool { return each == k && k.search() }, cell{
				sees: []sight{asEver}, counts: []string{`neardup_searches_total{outcome="bypassed"`},
				script: func(f inject.Fault) inject.Script {
					return inject.Where(func(r inject.Request) bool { return k.asks(r.Target) }, inject.First(1, f))
				},
			})
		}
	}
}

func garbageSearches(t *testing.T, b *faultBench) {
	for _, name := range wellFramed {
		b.each(t, garbled(name), func(k *faultKind) bool { return k.search() }, cell{
			sees: []sight{engines_, asEver}, counts: []string{`neardup_searches_total{outcome="bypassed"`},
		})
	}
}

func brokenFrames(t *testing.T, b *faultBench) {
	b.each(t, garbled("not HTTP"), everyKind, cell{sees: []sight{badGate}, counts: []string{`neardup_engine_errors_total{what="garbage"}`}})
	b.each(t, garbled("long length"), everyKind, cell{sees: []sight{cutOff, badGate}, counts: []string{`neardup_engine_errors_total{what="cut"}`}})
}

// lookUps does harm to what we ask for ourselves: never to the client's own request.
func lookUps(t *testing.T, b *faultBench) {
	faults := []inject.Fault{
		{At: inject.RequestHeader, Do: inject.Cut}, {At: inject.RequestWhole, Do: inject.Reset}, {At: inject.ReplyBodyMiddle, Do: inject.Cut},
		{Name: "503", At: inject.RequestWhole, Do: inject.Answer, Reply: inject.Made(503, `{"message":"no"}`)},
		garbled("HTML"), garbled("half JSON"), garbled("other JSON"), garbled("noise"), garbled("not HTTP"), garbled("empty"),
	}
	for _, f := range faults {
		for _, k := range b.kinds {
			if turn := b.takes(); k.own || !turn {
				continue
			}
			b.lookUp(t, k, f)
		}
	}
}

func (b *faultBench) lookUp(t *testing.T, k *faultKind, f inject.Fault) {
	t.Helper()
	b.n++
	ask := k.ask(b.n)
	b.relay.Forget()
	b.relay.Script(inject.Where(func(r inject.Request) bool {
		return !k.asks(r.Target) || k.writes() && strings.Contains(r.Target, "search")
	}, inject.Always(f)))
	ask.header = append(ask.header, "X-Cell", fmt.Sprint(b.n))
	before := b.side.moves(t)
	g := attempt(t, b.e, b.side.base, ask, within)
	b.relay.Script(nil)
	if b.relay.Bites() == 0 {
		return
	}
	b.bit++
	name := fmt.Sprintf("%s, %v at a look-up", k.name, f)
	if saw := k.sees(t, b.e, g, nil); saw != asEver {
		t.Errorf("%s: the client sees %v: %v", name, saw, g)
	}
	var counts []string
	if k.writes() {
		counts = append(counts, "neardup_documents_total{")
	}
	b.countedIn(t, name, before, k, counts)
	if k.writes() {
		b.written(t, name, k, ask, g, b.relay.Seen())
	}
}
