package e2e

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/neardup/sidecar/internal/chaos"
	inject "github.com/neardup/sidecar/internal/faults"
)

// harm is one kind of fault: it is done, undone, and told of.
type harm struct {
	name string
	do   func(s *chaosStack) chaos.Fault
	in   int // how many cards of a deck
}

// throughUs are the ways on which the sidecar stands.
var throughUs = []string{byPort, byFront}

// chaosInFront is the way on which the relay in front of it stands, and chaosBroken what that can do.
var chaosInFront, chaosBroken = []string{byFront}, []string{chaos.Broken}

// unreachable is what clients of a proxy get where clients of the engine find no connection.
var unreachable = []string{chaos.Broken, "502", "504"}

func (s *chaosStack) harms() []harm {
	return []harm{
		{"sidecar killed mid-bulk", func(s *chaosStack) chaos.Fault { return s.kill(chaos.Bulk) }, 2},
		{"sidecar killed mid-search", func(s *chaosStack) chaos.Fault { return s.kill(chaos.Search) }, 2},
		{"sidecar killed mid-write", func(s *chaosStack) chaos.Fault { return s.kill(chaos.Single) }, 1},
		{"sidecar stopped and continued", (*chaosStack).pause, 2},
		{"sidecar restarted gracefully", (*chaosStack).restart, 2},
		{"configuration reloaded", (*chaosStack).reload, 2},
		{"reindex killed", (*chaosStack).killJob, 1},
		{"engine side cut", func(s *chaosStack) chaos.Fault { return s.struck(s.back, s.cut(), unreachable, nil) }, 12},
		{"engine side slow", func(s *chaosStack) chaos.Fault { return s.struck(s.back, s.slow(), nil, nil) }, 4},
		{"engine answers 429, 503, 413", (*chaosStack).status, 4},
		{"engine answers garbage", (*chaosStack).garbage, 5},
		{"engine can't be reached", (*chaosStack).refuse, 1},
		{"engine side connections cut", func(s *chaosStack) chaos.Fault { return s.cutAll(s.back, unreachable, nil) }, 1},
		{"client side cut", func(s *chaosStack) chaos.Fault {
			return s.struck(s.front, s.cut(), chaosBroken, chaosInFront)
		}, 5},
		{"client side slow", func(s *chaosStack) chaos.Fault { return s.struck(s.front, s.slow(), nil, chaosInFront) }, 2},
		{"client side connections cut", func(s *chaosStack) chaos.Fault { return s.cutAll(s.front, chaosBroken, chaosInFront) }, 1},
	}
}

// await waits until an operation of a kind is under way, and a moment longer.
func (s *chaosStack) await(kind string) {
	for end := time.Now().Add(3 * time.Second); s.run.UnderWay(kind) == 0 && time.Now().Before(end); {
		time.Sleep(200 * time.Microsecond)
	}
	time.Sleep(time.Duration(s.rand.Int64N(int64(4 * time.Millisecond))))
}

// settle ends a fault: what it hit has come to its end by then, or does so soon.
func (s *chaosStack) settle(f chaos.Fault, bit func(chaos.Seen) bool) chaos.Fault {
	f.End = time.Now().Add(100 * time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	for end := f.End.Add(150 * time.Millisecond); !s.run.Over(f.End) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	f.Bit = f.Bit || bit != nil && slices.ContainsFunc(s.run.Between(f.Begin, f.End), bit)
	return f
}

func failed(o chaos.Seen) bool { return o.Failed && o.Way != byHand }

// kill kills the sidecar with -9 while an operation of the kind is under way.
func (s *chaosStack) kill(kind string) chaos.Fault {
	s.await(kind)
	f := chaos.Fault{Allows: []string{chaos.Broken}, Ways: throughUs, Begin: time.Now()}
	s.end(syscall.SIGKILL)
	time.Sleep(time.Duration(s.rand.IntN(100)) * time.Millisecond)
	s.start()
	return s.settle(f, func(o chaos.Seen) bool { return failed(o) && o.Kind == kind })
}

// killJob kills the job with -9. No client may notice.
func (s *chaosStack) killJob() chaos.Fault {
	s.await(chaos.Bulk)
	f := chaos.Fault{Begin: time.Now()}
	s.mu.Lock()
	job := s.job
	s.mu.Unlock()
	f.Bit = job != nil && job.Process.Kill() == nil
	return s.settle(f, nil)
}

// crossing is how long before its connection ends a request may have been sent that nobody reads.
const crossing = 2 * time.Second

// longer reports whether an operation was under way at a moment and took that long.
func longer(at time.Time, pause time.Duration) func(chaos.Seen) bool {
	return func(o chaos.Seen) bool {
		return o.Way != byHand && !o.Begin.After(at) && !o.End.Before(at) && o.End.Sub(o.Begin) >= pause/2
	}
}

// pause stops the sidecar for a moment: nothing but time may be lost.
func (s *chaosStack) pause() chaos.Fault {
	s.await("")
	f, pause := chaos.Fault{Ways: throughUs, Begin: time.Now()}, time.Duration(100+s.rand.IntN(700))*time.Millisecond
	s.signal(syscall.SIGSTOP)
	time.Sleep(pause)
	s.signal(syscall.SIGCONT)
	return s.settle(f, longer(f.Begin.Add(pause-time.Millisecond), pause))
}

// restart ends the sidecar as an operator does: what is under way is answered, and only what comes before the next one listens is
// not.
func (s *chaosStack) restart() chaos.Fault {
	s.await("")
	at := time.Now()
	// A request can cross with the end of the connection on which it comes, the later the busier the machine is. That none is cut off
	// which the sidecar has begun to read, it says itself.
	f := chaos.Fault{Allows: []string{chaos.Broken}, Ways: throughUs, Begin: at.Add(-crossing), Later: true}
	s.end(syscall.SIGTERM)
	s.start()
	return s.settle(f, func(o chaos.Seen) bool {
		return o.Way != byHand && (o.Failed || o.Begin.Before(at) && o.End.After(at))
	})
}

// reload has the sidecar read another configuration under load. No client may notice.
func (s *chaosStack) reload() chaos.Fault {
	const message = "configuration reloaded"
	before := s.said(message)
	s.await("")
	f := chaos.Fault{Begin: time.Now()}
	s.configure()
	s.signal(syscall.SIGHUP)
	done := until(func() bool { return s.said(message) > before })
	f = s.settle(f, func(o chaos.Seen) bool { return o.Way != byHand })
	f.Bit = f.Bit && done
	return f
}

// cut is the end of a connection at any place of an exchange.
func (s *chaosStack) cut() inject.Fault {
	harms := []inject.Harm{inject.Cut, inject.Reset}
	return inject.Fault{At: inject.Places[s.rand.IntN(len(inject.Places))], Do: harms[s.rand.IntN(2)]}
}

// slow is a pause at any place of an exchange, or bytes that come by and by from there on.
func (s *chaosStack) slow() inject.Fault {
	at := inject.Places[s.rand.IntN(len(inject.Places))]
	if s.rand.IntN(3) == 0 {
		return inject.Fault{At: at, Do: inject.Drip, Size: 4096, For: time.Millisecond}
	}
	return inject.Fault{At: at, Do: inject.Stall, For: time.Duration(50+s.rand.IntN(1000)) * time.Millisecond}
}

// of matches the requests of an operation of some kind.
func (s *chaosStack) of() (kind string, match func(inject.Request) bool) {
	kind = []string{chaos.Bulk, chaos.Bulk, chaos.Search, chaos.Single}[s.rand.IntN(4)]
	return kind, func(r inject.Request) bool {
		bulk := strings.Contains(r.Target, "_bulk") || strings.Contains(r.Target, "/import")
		search := strings.Contains(r.Target, "search")
		switch kind {
		case chaos.Bulk:
			return bulk
		case chaos.Search:
			return search
		}
		return !bulk && !search
	}
}

// struck does a fault to the next operation of some kind.
func (s *chaosStack) struck(relay *inject.Relay, harm inject.Fault, allows, ways []string) chaos.Fault {
	kind, match := s.of()
	relay.Forget()
	if ways == nil {
		ways = throughUs
	}
	f := chaos.Fault{Name: kind + ", " + harm.String(), Allows: allows, Ways: ways, Begin: time.Now()}
	relay.Script(inject.Where(match, inject.First(1, harm)))
	for end := time.Now().Add(2 * time.Second); relay.Bites() == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	relay.Script(nil)
	f.Bit = relay.Bites() > 0
	return s.settle(f, nil)
}

// status has the engine refuse.
func (s *chaosStack) status() chaos.Fault {
	status := []int{429, 503, 413}[s.rand.IntN(3)]
	return s.struck(s.back, refusal(s.e, status), []string{strconv.Itoa(status)}, nil)
}

func (s *chaosStack) garbage() chaos.Fault {
	names := slices.Sorted(maps.Keys(inject.Garbage))
	name := names[s.rand.IntN(len(names))]
	lie := inject.Fault{Name: name, Do: inject.Alter, Change: inject.Garbage[name]}
	return s.struck(s.back, lie, append([]string{chaos.Garbage}, unreachable...), nil)
}

// refuse closes the engine's port for a moment.
func (s *chaosStack) refuse() chaos.Fault {
	s.await("")
	f := chaos.Fault{Allows: unreachable, Ways: throughUs, Begin: time.Now()}
	s.back.Refuse(s.rand.IntN(2) == 0)
	time.Sleep(time.Duration(50+s.rand.IntN(400)) * time.Millisecond)
	if err := s.back.Restore(); err != nil {
		s.t.Error(err)
	}
	return s.settle(f, failed)
}

func (s *chaosStack) cutAll(relay *inject.Relay, allows, ways []string) chaos.Fault {
	s.await("")
	if ways == nil {
		ways = throughUs
	}
	f := chaos.Fault{Allows: allows, Ways: ways, Begin: time.Now()}
	relay.CutAll(s.rand.IntN(2) == 0)
	return s.settle(f, failed)
}
