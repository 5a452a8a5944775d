package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// another starts one more sidecar in front of the same relay; change may rewrite its configuration.
func (b *faultBench) another(t *testing.T, change func(text string) string, how func(*exec.Cmd)) *victim {
	t.Helper()
	return startVictim(t, b.rewritten(t, change), how)
}

// rewritten writes the configuration of the bench's sidecar anew.
func (b *faultBench) rewritten(t *testing.T, change func(text string) string) string {
	t.Helper()
	text, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		text = []byte(change(string(text)))
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// asks sends every kind of request to a sidecar and wants what comes when nothing is wrong.
func (b *faultBench) asks(t *testing.T, v *victim) {
	t.Helper()
	for _, k := range b.kinds {
		b.n++
		if g := attempt(t, b.e, v.base, k.ask(b.n), within); !k.sameAsEver(g) {
			t.Errorf("%s: %v", k.name, g)
		}
	}
}

// clientBreaksOff cuts between the client and the sidecar.
func clientBreaksOff(t *testing.T, b *faultBench) {
	front := inject.Start(t, b.side.base)
	for _, do := range cuts {
		for at := inject.RequestBodyBegin; at < inject.RequestWhole; at++ {
			for _, k := range b.kinds {
				front.Forget()
				b.relay.Forget()
				front.Script(inject.Always(inject.Fault{At: at, Do: do}))
				before := b.side.moves(t)
				b.n++
				ask := k.ask(b.n)
				if g := attempt(t, b.e, front.URL(), ask, within); front.Bites() == 0 {
					continue
				} else if g.err == nil {
					t.Errorf("%s: a client that broke off got %v", k.name, g)
				}
				b.bit++
				name := fmt.Sprintf("%s, the client breaks off at %v", k.name, at)
				b.countedIn(t, name, before, k, []string{"neardup_clients_gone_total"})
				for _, x := range b.relay.Seen() {
					if k.asks(x.Target) && x.Method == ask.method && x.Whole && !strings.Contains(x.Target, "_search?") {
						t.Errorf("%s: the engine got a whole request of %d bytes", name, x.Sent)
					}
				}
				if k.writes() {
					for id, got := range b.stored(t, k, b.n) {
						if want := documentsOf(ask.body)[id]; got != want {
							t.Errorf("%s: %s is stored as %.200s", name, id, got)
						}
					}
				}
			}
		}
	}
}

// slowClient drips its request and reads its reply as slowly.
func slowClient(t *testing.T, b *faultBench) {
	front := inject.Start(t, b.side.base)
	for _, at := range []inject.Place{inject.RequestBodyBegin, inject.ReplyLine} {
		front.Forget()
		front.Script(inject.Always(inject.Fault{At: at, Do: inject.Drip, For: time.Millisecond, Size: 20_000}))
		for _, k := range b.kinds {
			b.n++
			if g := attempt(t, b.e, front.URL(), k.ask(b.n), within); !k.sameAsEver(g) {
				t.Errorf("%s, slow from %v: %v", k.name, at, g)
			}
		}
		b.bit += front.Bites()
	}
}

// killedSidecar kills it while a request is under way: half sent on, or sent on and not answered.
func killedSidecar(t *testing.T, b *faultBench) {
	for _, at := range []inject.Place{inject.RequestBodyMiddle, inject.RequestWhole, inject.ReplyBodyMiddle} {
		for _, k := range b.kinds {
			if turn := b.takes(); k.own || !turn {
				continue
			}
			b.killedAt(t, k, at)
		}
	}
}

func (b *faultBench) killedAt(t *testing.T, k *faultKind, at inject.Place) {
	t.Helper()
	v := b.another(t, nil, nil)
	b.relay.Forget()
	b.relay.Script(inject.Where(func(r inject.Request) bool { return k.asks(r.Target) }, inject.Always(inject.Fault{At: at, Do: inject.Stall})))
	defer b.relay.Script(nil)
	b.n++
	ask, answer := k.ask(b.n), make(chan gotten, 1)
	go func() { answer <- attempt(t, b.e, v.base, ask, within) }()
	for range 500 {
		if b.relay.Bites() > 0 || len(answer) > 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	bit := b.relay.Bites() > 0
	v.kill(t)
	g, name := <-answer, fmt.Sprintf("%s, killed with the engine's side at %v", k.name, at)
	if !bit {
		return
	}
	b.bit++
	if k.sees(t, b.e, g, nil) != cutOff {
		t.Errorf("%s: the client sees %v", name, g)
	}
	time.Sleep(50 * time.Millisecond) // for the engine to do what it does
	b.relay.Script(nil)
	if k.writes() {
		b.written(t, name, k, ask, g, b.relay.Seen())
	}
	if again := b.another(t, nil, nil); k.writes() && g.err != nil { // who sends it again, does so once
		b.n++
		if g := attempt(t, b.e, again.base, k.ask(b.n), within); !k.sameAsEver(g) {
			t.Errorf("%s: after a new start: %v", name, g)
		}
	}
}

// fullLog has a sidecar whose every line of the log fails.
func fullLog(t *testing.T, b *faultBench) {
	var ports []string
	text := func(text string) string {
		for range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ports = append(ports, l.Addr().String())
			l.Close()
			text = strings.Replace(text, "127.0.0.1:0\n", l.Addr().String()+"\n", 1)
		}
		return text
	}
	cmd := command(t, t.Context(), "serve", "--config", b.rewritten(t, text))
	cmd.Stdout, cmd.Stderr = devFull(t), devFull(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	}()
	v := &victim{base: "http://" + ports[1], admin: "http://" + ports[0], cmd: cmd}
	for range 300 {
		if resp, err := http.Get(v.admin + "/livez"); err == nil {
			resp.Body.Close()
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	b.asks(t, v)
	b.relay.Refuse(true) // which is logged
	for _, k := range b.kinds {
		if g := attempt(t, b.e, v.base, k.ask(0), within); k.sees(t, b.e, g, nil) != badGate {
			t.Errorf("%s: %v", k.name, g)
		}
		b.bit++
	}
	if err := b.relay.Restore(); err != nil {
		t.Fatal(err)
	}
	b.asks(t, v)
}

// shortOf runs many requests at once on a sidecar that lacks something.
func shortOf(t *testing.T, b *faultBench, sees []sight, how func(*exec.Cmd)) *victim {
	t.Helper()
	v := b.another(t, nil, how)
	var wait sync.WaitGroup
	for range 6 {
		for _, k := range b.kinds {
			b.n++
			ask := k.ask(b.n)
			wait.Go(func() {
				g := attempt(t, b.e, v.base, ask, within)
				if saw := k.sees(t, b.e, g, nil); !slices.Contains(sees, saw) {
					t.Errorf("%s: %v", k.name, g)
				}
			})
			b.bit++
		}
	}
	wait.Wait()
	b.asks(t, v)
	return v
}

func littleMemory(t *testing.T, b *faultBench) {
	shortOf(t, b, []sight{asEver}, func(cmd *exec.Cmd) { cmd.Env = append(os.Environ(), "GOMEMLIMIT=16MiB") })
}

func noDescriptors(t *testing.T, b *faultBench) {
	v := shortOf(t, b, []sight{asEver, badGate}, func(cmd *exec.Cmd) {
		cmd.Args = []string{"sh", "-c", `ulimit -n 24; exec "$0" "$@"`, cmd.Path, "serve", "--config", cmd.Args[len(cmd.Args)-1]}
		cmd.Path = "/bin/sh"
	})
	if log := v.log(); !strings.Contains(log, "too many open files") {
		t.Errorf("it had enough of them: %s", log)
	}
}

// unknownHost has a name in urls that can't be resolved.
func unknownHost(t *testing.T, b *faultBench) {
	v := b.another(t, func(text string) string { return strings.Replace(text, b.relay.URL(), inject.UnknownHost, 1) }, nil)
	for _, k := range b.kinds {
		b.n++
		before := v.moves(t)
		if g := attempt(t, b.e, v.base, k.ask(b.n), within); k.sees(t, b.e, g, nil) != badGate {
			t.Errorf("%s: %v", k.name, g)
		}
		if moved := v.moves(t).since(before); !moved.any(`neardup_engine_errors_total{what="dial"}`) {
			t.Errorf("%s: counted %v", k.name, moved)
		}
		b.bit++
	}
}

// pagesOfAdmin asks for the admin listener's pages while no engine can be reached.
func pagesOfAdmin(t *testing.T, b *faultBench) {
	get := func(path string) int {
		resp, err := http.Get(b.side.admin + path)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer resp.Body.Close()
		return resp.StatusCode
	}
	ready := func(want int) {
		got := 0
		for range 200 { // what was found out is told for a moment
			if got = get("/readyz"); got == want {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("/readyz answers %d, want %d", got, want)
	}
	for _, harm := range []func(){func() { b.relay.Refuse(false) }, func() {
		b.relay.Script(inject.Always(inject.Fault{At: inject.RequestWhole, Do: inject.Reset}))
	}} {
		harm()
		ready(503)
		if live, metrics := get("/livez"), get("/metrics"); live != 200 || metrics != 200 {
			t.Errorf("/livez answers %d, /metrics %d", live, metrics)
		}
		b.bit++
		b.relay.Script(nil)
		_ = b.relay.Restore() // it listens already the second time
		ready(200)
	}
}

// reloaded loads the configuration anew while requests are under way, good ones and bad ones in turn.
func reloaded(t *testing.T, b *faultBench) {
	file := b.rewritten(t, nil)
	v := startVictim(t, file, nil)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		defer func() { ended <- n }()
		for {
			for _, k := range b.kinds {
				select {
				case <-stop:
					return
				default:
				}
				if g := attempt(t, b.e, v.base, k.ask(10_000+n), within); !k.sameAsEver(g) {
					t.Errorf("%s: %v", k.name, g)
				}
				n++
			}
		}
	}()
	for i := range 6 {
		text := strings.Replace(string(good), "window: 1000", fmt.Sprintf("window: %d", 1000-i), 1)
		if i%2 == 1 {
			text = strings.Replace(text, "fields:", "feilds:", 1)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := v.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond)
		b.bit++
	}
	close(stop)
	if n := <-ended; n < 6 {
		t.Errorf("%d requests were asked", n)
	}
	if counts := v.moves(t); !counts.any(`neardup_config_reloads_total{result="ok"}`) || !counts.any(`neardup_config_reloads_total{result="failed"}`) {
		t.Errorf("reloads counted: %v", counts)
	}
}

// fullEngine has an index that the engine has blocked for writing because its disk is full.
func fullEngine(t *testing.T, b *faultBench) {
	if b.direct.typesense() {
		b.bit++ // a full disk is a refusal like any other there: the row of 429 and 503 has its words
		return
	}
	// one index that we know, and one that is blocked before we could prepare it
	for _, index := range []string{"fault-full-1", "fault-full-2"} {
		b.direct.drop(t, index)
		block := func(on string) {
			call(t, b.e, "PUT", b.e.URL+"/"+index+"/_settings", `{"index.blocks.read_only_allow_delete":`+on+`}`).want(t, 200)
		}
		api{b.e, map[string]string{"fault-full-1": b.side.base, "fault-full-2": b.e.URL}[index]}.create(t, index)
		if index == "fault-full-1" {
			call(t, b.e, "PUT", b.side.base+"/"+index+"/_doc/old?refresh=true", lonely("old", 100)).want(t, 201)
		}
		block("true")
		for _, r := range []sending{
			{"PUT", "/" + index + "/_doc/new", lonely("new", 100), nil},
			{"POST", "/_bulk", `{"index":{"_index":"` + index + `","_id":"new"}}` + "\n" + lonely("new", 100) + "\n", nil},
			{"POST", "/" + index + "/_update/old", `{"doc":` + lonely("old", 200) + `}`, nil},
			{"GET", "/" + index + "/_search", "", nil}, {"GET", "/" + index + "/_doc/old", "", nil},
		} {
			one, two := attempt(t, b.e, b.e.URL, r, within), attempt(t, b.e, b.side.base, r, within)
			if one.status != two.status || plainOf(one.body) != plainOf(two.body) && lessOurs([]byte(plainOf(one.body))) != plainOf(two.body) {
				t.Errorf("%s %s: %v, directly %v", r.method, r.path, two, one)
			}
			b.bit++
		}
		block("null")
		call(t, b.e, "PUT", b.side.base+"/"+index+"/_doc/after", lonely("after", 100)).want(t, 201)
	}
}

// fullDisk has commands of the sidecar write to a full disk: they say so and fail.
func fullDisk(t *testing.T, b *faultBench) {
	input := corpusFile(t, documents(t))
	for _, args := range [][]string{
		{"sketch", input}, {"cluster", "--input", input}, {"config", "print", "--config", b.file},
		{"verify", "--config", b.file, "--index", faultIndex, "--output", "json"},
	} {
		cmd := command(t, t.Context(), args...)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = devFull(t), &said
		if code := exitCode(t, cmd.Run()); code == 0 || !strings.Contains(said.String(), "no space left on device") {
			t.Errorf("%v on a full disk ended with %d: %s", args, code, said.String())
		}
		b.bit++
	}
	fullOutput(t, input)
}

// fullOutput has a file of clusters outgrow its disk: nothing is left of it, nor a file that looks whole.
func fullOutput(t *testing.T, input string) {
	t.Helper()
	if err := exec.Command("unshare", "-rm", "true").Run(); err != nil {
		t.Log("no disk of its own can be had: ", err)
		return
	}
	dir := t.TempDir()
	cmd := command(t, t.Context(), "cluster", "--input", input, "--output", filepath.Join(dir, "out.jsonl"))
	cmd.Args = append([]string{"unshare", "-rm", "sh", "-c", `D=$1; shift; mount -t tmpfs -o size=4k tmpfs "$D" && "$0" "$@"; C=$?; ls -A "$D"; exit $C`,
		cmd.Path, dir}, cmd.Args[1:]...)
	path, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = path
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if code := exitCode(t, cmd.Run()); code != 1 || !strings.Contains(said.String(), "--output: ") || !strings.Contains(said.String(), "no space left") {
		t.Errorf("--output on a full disk ended with %d: %s", code, said.String())
	}
	if strings.Contains(out.String(), ".jsonl") {
		t.Errorf("left behind: %s", out.String())
	}
}

// killedEngine kills an engine of its own while it works, and has another one take its place.
func killedEngine(t *testing.T, b *faultBench) {
	if !b.direct.typesense() && !long {
		b.bit++ // takes half a minute
		return
	}
	var own *faultBench
	start := func() *engines.Engine { return engines.Own(t, b.e.Kind) }
	own = newBench(t, start())
	for i, at := range []int{3, 6, 4, 8} {
		k := own.kinds[at]
		if i > 1 && !long {
			break
		}
		if i > 0 {
			own.follow(t, start())
		}
		own.relay.Forget()
		own.relay.Script(inject.Where(func(r inject.Request) bool { return k.asks(r.Target) },
			inject.Always(inject.Fault{At: inject.RequestHeader, Do: inject.Stall, For: 50 * time.Millisecond})))
		own.n++
		before := own.side.moves(t)
		ask, answer := k.ask(own.n), make(chan gotten, 1)
		go func() { answer <- attempt(t, own.e, own.side.base, ask, within) }()
		for range 300 {
			if own.relay.Bites() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := syscall.Kill(own.e.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if saw := k.sees(t, own.e, <-answer, nil); saw != badGate && saw != asEver {
			t.Errorf("%s with the engine killed: %v", k.name, saw)
		}
		own.relay.Script(nil)
		sent := 0
		for _, x := range own.relay.Seen() {
			if k.asks(x.Target) {
				sent++
			}
		}
		if sent > 1 && k.writes() {
			t.Errorf("%s was sent %d times", k.name, sent)
		}
		if g := attempt(t, own.e, own.side.base, k.ask(0), within); k.sees(t, own.e, g, nil) != badGate {
			t.Errorf("%s without an engine: %v", k.name, g)
		}
		own.countedIn(t, k.name, before, nil, []string{"neardup_engine_errors_total"})
		b.bit++
	}
}

// follow leads to another engine with the same documents.
func (b *faultBench) follow(t *testing.T, e *engines.Engine) {
	t.Helper()
	b.e, b.direct = e, api{e, e.URL}
	b.relay.Target(e.URL)
	b.relay.CutAll(true)
	time.Sleep(2100 * time.Millisecond) // what was known of the indices
	b.fill(t, b.side.base)
}
