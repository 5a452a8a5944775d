package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/measured"
	"golang.org/x/sys/unix"
)

// crowd is how many clients ask at saturation. Each waits for its answer.
const crowd = 24

// saturation measures how many requests a proxy answers in a second of one core when it is busy. It has one core for itself. The load and a stub of
// the engine, which answers what the engine answered once, have the other.
func (b *bench) saturation() error {
	t := measured.Table{
		Name: "saturation", Title: "Requests per core-second at saturation",
		Columns: []measured.Column{{Name: "per core-second", Unit: "requests"}, {Name: "CPU", Unit: "µs a request"}, {Name: "rate", Unit: "requests a second"},
			{Name: "busy", Unit: "% of its core"}, {Name: "reply", Unit: "kB"}},
		Notes: []string{
			fmt.Sprintf("%d clients, each waiting for its answer, ask one contender, which runs on a core of its own: nginx with one worker, HAProxy with one "+
				"thread, Go programs with `GOMAXPROCS=1`. In place of Elasticsearch stands a stub that answers at once, with the bytes that the engine "+
				"answered the same request with once. It shares the other core with the clients.", crowd),
			"*per core-second* is requests divided by the contender's own processor time. *busy* says what bounds the rate: near 100 % it is the contender, " +
				"below it the other core.",
			"*a document* is of an index without a rule, *a search that passes* has `neardup=off` and loses our fields on its way, *a collapsed page* is page 1.",
		},
	}
	if err := b.fillStocks(); err != nil {
		return err
	}
	t.Rows = []measured.Row{{What: "all", Contenders: []measured.Contender{{Name: ours, Absent: "Elasticsearch did not take part"}}}}
	if i := slices.IndexFunc(b.engines, func(e *engine) bool { return e.kind == engines.Elasticsearch }); i >= 0 {
		var err error
		if t.Rows, err = b.saturated(b.engines[i]); err != nil {
			return err
		}
	}
	b.report.Tables = append(b.report.Tables, t)
	return nil
}

func (b *bench) saturated(e *engine) (rows []measured.Row, err error) {
	cores, err := allowedCores()
	if err != nil {
		return nil, err
	}
	first, last := cores[0], cores[len(cores)-1]
	b.core = strconv.Itoa(first)
	defer func() { b.core = "" }()
	stub, err := b.itself("stub", "-stub", e.base)
	if err != nil {
		return nil, err
	}
	defer stub.stop()
	b.core = strconv.Itoa(last)
	recorded := *e
	recorded.base = stub.base
	ways := map[string]*process{}
	absent := map[string]string{}
	for name, begin := range map[string]func() (*process, error){
		ours:  func() (*process, error) { return b.sidecar(&recorded, setup{limits: unhurried}) },
		goes:  func() (*process, error) { return b.bare(stub.base, false) },
		nginx: func() (*process, error) { return b.nginx(stub.base) },
		hap:   func() (*process, error) { return b.haproxy(stub.base) },
	} {
		p, err := begin()
		if err != nil && (name == nginx || name == hap) {
			absent[name] = err.Error()
			continue
		} else if err != nil {
			return nil, err
		}
		defer p.stop()
		ways[name] = p
	}
	var documents, plain, off, pages []request
	for i, words := range b.texts.queries(b.stocked(), 50) {
		documents = append(documents, e.read(e.stock.bare, b.texts.document(b.stocked(), i*7).ID))
		plain = append(plain, e.request(e.stock.bare, words, search{size: 10}))
		off = append(off, e.request(e.stock.with, words, search{size: 10, more: "?neardup=off"}))
		pages = append(pages, e.request(e.stock.with, words, search{size: 10}))
	}
	for _, one := range []struct {
		what      string
		asked     []request // of all but the sidecar
		ofOurs    []request
		collapsed bool
	}{{"a document of 2 kB", documents, documents, false}, {"a search that passes, 22 kB", plain, off, false}, {"a collapsed page, 22 kB", nil, pages, true}} {
		b.log("%s", one.what)
		var list []*contender
		for _, name := range []string{ours, goes, nginx, hap} {
			c := &contender{name: name, absent: absent[name], requests: one.asked}
			if name == ours {
				c.requests, c.collapsed = one.ofOurs, one.collapsed
			}
			if c.absent == "" && len(c.requests) > 0 {
				c.base, c.watch = ways[name].base, []*process{ways[name], stub}
			}
			if len(c.requests) > 0 {
				list = append(list, c)
			}
		}
		row, err := b.saturate(one.what, list, first)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.what, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// saturate has contenders take turns, each with the whole crowd.
func (b *bench) saturate(what string, list []*contender, core int) (measured.Row, error) {
	row := measured.Row{What: what, Engine: "Elasticsearch, recorded"}
	length := 500 * time.Millisecond
	if b.short {
		length = 50 * time.Millisecond
	}
	c := &comparison{}
	for _, one := range list {
		if one.absent == "" {
			c.contenders = append(c.contenders, one)
			if err := one.checkAll(b.ctx); err != nil {
				return row, err
			}
			if _, err := one.crowd(core, length); err != nil { // so that it is warm
				return row, err
			}
		}
	}
	c.samples = make([][]sample, len(c.contenders))
	perCoreSecond := func(s sample) float64 { return 1000 / s.proxy }
	first, against := c.index(ours), max(c.index(goes), 0)
	for round := 0; round == 0 || !b.known(quotients(c.samples[first], c.samples[against], perCoreSecond)); round++ {
		for i := range c.contenders {
			i := (i + round) % len(c.contenders)
			s, err := c.contenders[i].crowd(core, length)
			if err != nil {
				return row, err
			}
			c.samples[i] = append(c.samples[i], s)
		}
	}
	for _, one := range list {
		if one.absent != "" {
			row.Contenders = append(row.Contenders, measured.Contender{Name: one.name, Absent: one.absent})
			continue
		}
		row.Contenders = append(row.Contenders, measured.Contender{Name: one.name, Figures: map[string]float64{
			"per core-second": c.figure(one.name, perCoreSecond), "CPU": 1000 * c.cpu(one.name),
			"rate":  c.figure(one.name, func(s sample) float64 { return s.rate }),
			"busy":  c.figure(one.name, func(s sample) float64 { return s.proxy * s.rate / 10 }),
			"reply": c.figure(one.name, func(s sample) float64 { return s.kilobytes }),
		}})
	}
	if len(list) == 1 {
		var all []float64
		for _, s := range c.samples[0] {
			all = append(all, perCoreSecond(s))
		}
		v := reaching(over("requests per core-second", "", "a core-second", all), 1500)
		row.Verdicts = []measured.Verdict{judged(v, fmt.Sprintf("%.0f µs of processor time a page", 1000*c.cpu(ours)))}
		return row, nil
	}
	limit := fmt.Sprintf("processor time a request: ours %.0f µs, %s %.0f µs, %s %.0f µs", 1000*c.cpu(ours), goes, 1000*c.cpu(goes), nginx, 1000*c.cpu(nginx))
	row.Verdicts = []measured.Verdict{
		judged(reaching(c.ratio("requests per core-second", ours, goes, perCoreSecond), 1), limit),
		judged(reaching(c.ratio("requests per core-second", ours, nginx, perCoreSecond), .5), limit),
		c.ratio("requests per core-second", ours, hap, perCoreSecond),
	}
	return row, nil
}

// allowedCores are the cores on which this process may run.
func allowedCores() (list []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	for i := range 1024 {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// crowd asks as fast as the clients can that wait for each answer. They take next to no processor time: one thread on one core writes and reads
// for all of them, in turns.
func (c *contender) crowd(core int, length time.Duration) (s sample, err error) {
	var wires [][]byte
	for _, q := range c.requests {
		r, err := http.NewRequest(q.method, c.base+q.path, bytes.NewReader(q.body))
		if err != nil {
			return s, err
		}
		r.Header = q.header
		var wire bytes.Buffer
		if err := r.Write(&wire); err != nil {
			return s, err
		}
		wires = append(wires, wire.Bytes())
	}
	done := make(chan struct{})
	go func() { // the thread keeps to the core, and ends with the goroutine
		defer close(done)
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(core)
		if err = unix.SchedSetaffinity(0, &set); err == nil {
			s, err = c.ask(wires, length)
		}
	}()
	<-done
	if err != nil {
		err = fmt.Errorf("%s: %w", c.name, err)
	}
	return s, err
}

// ask is what the thread of crowd does.
func (c *contender) ask(wires [][]byte, length time.Duration) (sample, error) {
	var clients [crowd]int
	to, err := net.ResolveTCPAddr("tcp", strings.TrimPrefix(c.base, "http://"))
	if err != nil {
		return sample{}, err
	}
	for i := range clients {
		if clients[i], err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return sample{}, err
		}
		defer unix.Close(clients[i])
		err = errors.Join(unix.Connect(clients[i], &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}),
			unix.SetsockoptInt(clients[i], unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
		if err != nil {
			return sample{}, err
		}
	}
	began, spent := time.Now(), c.spent()
	asked, answered, bytes, buffer := 0, 0, 0, make([]byte, 1<<20)
	for deadline := began.Add(length); answered == 0 || answered < asked; {
		for _, client := range clients {
			if asked >= crowd {
				if answered == asked {
					break
				}
				n, err := readReply(client, buffer)
				if err == nil {
					err = c.faultOf(buffer[:n])
				}
				if err != nil {
					return sample{}, err
				}
				answered, bytes = answered+1, bytes+n
			}
			if asked < crowd || time.Now().Before(deadline) {
				if _, err := unix.Write(client, wires[asked%len(wires)]); err != nil {
					return sample{}, err
				}
				asked++
			}
		}
	}
	s := sample{requests: answered, rate: float64(answered) / time.Since(began).Seconds(), kilobytes: float64(bytes) / 1000 / float64(answered)}
	s.cpu, s.proxy = c.perRequest(spent, answered)
	return s, nil
}

// readReply reads one reply, head and body, from a connection with nothing behind it.
func readReply(fd int, buffer []byte) (int, error) {
	for n, whole := 0, -1; ; {
		got, err := unix.Read(fd, buffer[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || got == 0 {
			return n, fmt.Errorf("the reply ended after %d bytes (%v): %.300s", n, err, buffer[:n])
		}
		n += got
		if whole < 0 {
			head := bytes.Index(buffer[:n], []byte("\r\n\r\n"))
			if head < 0 {
				continue
			}
			if length, found := lengthOf(buffer[:head]); found {
				whole = head + 4 + length
			} else {
				whole = 0 // it is in chunks
			}
		}
		if whole == 0 && bytes.HasSuffix(buffer[:n], []byte("\r\n0\r\n\r\n")) || whole > 0 && n >= whole {
			return n, nil
		}
	}
}

// lengthOf returns the length of the body that a head announces.
func lengthOf(head []byte) (int, bool) {
	for line := range bytes.Lines(head) {
		if name, value, _ := bytes.Cut(line, []byte(":")); len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")) {
			n, err := strconv.Atoi(string(bytes.TrimSpace(value)))
			return n, err == nil
		}
	}
	return 0, false
}

// faultOf is fault for a reply in one piece.
func (c *contender) faultOf(reply []byte) error {
	if !bytes.HasPrefix(reply, []byte("HTTP/1.1 200 ")) || c.collapsed && !bytes.Contains(reply, []byte("\r\nNeardup: collapsed;")) {
		return fmt.Errorf("not the reply that was wanted: %.500s", reply)
	}
	return nil
}

// serveStub is what the process of the stub does: it answers each request as the engine answered it the first time. One thread reads and writes.
func serveStub(listen, engine string) error {
	at, err := net.ResolveTCPAddr("tcp", listen)
	if err != nil {
		return err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	ready, err := unix.EpollCreate1(0)
	if err != nil {
		return err
	}
	watch := func(fd int) error {
		return unix.EpollCtl(ready, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
	}
	err = errors.Join(unix.Bind(socket, &unix.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}), unix.Listen(socket, 1024), watch(socket))
	if err != nil {
		return err
	}
	requests, replies, events := map[int][]byte{}, map[string][]byte{}, make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(ready, events, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for _, event := range events[:max(n, 0)] {
			fd := int(event.Fd)
			if fd == socket {
				client, _, err := unix.Accept(socket)
				if err == nil {
					err = errors.Join(watch(client), unix.SetsockoptInt(client, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
				}
				if err != nil {
					return err
				}
				requests[client] = make([]byte, 0, 64<<10)
				continue
			}
			request := requests[fd]
			got, err := unix.Read(fd, request[len(request):cap(request)])
			if err != nil || got == 0 {
				delete(requests, fd)
				unix.Close(fd)
				continue
			}
			request = request[:len(request)+got]
			requests[fd] = request
			head := bytes.Index(request, []byte("\r\n\r\n"))
			if head < 0 {
				continue
			}
			if length, _ := lengthOf(request[:head]); len(request) < head+4+length {
				continue
			}
			requests[fd] = request[:0]
			line, _, _ := bytes.Cut(request, []byte("\r\n"))
			key := append(request[len(request):], line...) // behind the request
			key = append(key, request[head:]...)
			reply, known := replies[string(key)]
			if !known {
				if reply, err = record(engine, request); err != nil {
					return err
				}
				replies[string(key)] = reply
			}
			for len(reply) > 0 {
				n, err := unix.Write(fd, reply)
				if err != nil && err != unix.EINTR {
					break // the next read will say so
				}
				reply = reply[max(n, 0):]
			}
		}
	}
}

// record returns what the engine answers a request with, as it is on the wire.
func record(engine string, request []byte) ([]byte, error) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(engine, "http://"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	var wire bytes.Buffer
	resp, err := http.ReadResponse(bufio.NewReader(io.TeeReader(conn, &wire)), nil)
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return wire.Bytes(), err
}

// itself starts this program in another role, with an address to listen at and one to send to.
func (b *bench) itself(name, role, to string, more ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	base, err := free()
	if err != nil {
		return nil, err
	}
	return b.start(name, base, nil, self, append([]string{role, strings.TrimPrefix(base, "http://"), "-to", to}, more...)...)
}
