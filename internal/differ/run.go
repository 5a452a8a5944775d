package differ

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"syscall"
	"time"
)

// Exchange is a case and the replies to its requests.
type Exchange struct {
	Case    *Case
	Replies []Reply
}

// Runner plays cases to an address. It is for one goroutine.
type Runner struct {
	Addr    string             // host and port
	AddrOf  func(*Case) string // if set, of a single case
	Kinds   []string           // of the server there, as cases name them
	Side    string             // the way that leads there
	Timeout time.Duration      // for a case, 30 s if zero and for what sets up
	// Header are lines that stand in the header of every request which says nothing of that name, unless it goes without or is given
	// as bytes.
	Header []string
	// Vars are the values that stand for <<name>> in requests. What is kept comes to them.
	Vars map[string]string
}

// Run plays the cases that are for this server, one after the other, each on a connection of its own. An error is one of the way
// to the address; what the server does is in the exchanges.
func (r *Runner) Run(cases []Case) ([]Exchange, error) {
	if r.Vars == nil {
		r.Vars = map[string]string{}
	}
	var list []Exchange
	for i := range cases {
		if !cases[i].For(r.Kinds, r.Side) {
			continue
		}
		replies, err := r.play(&cases[i])
		if err != nil {
			return nil, fmt.Errorf("%s (%s): %w", cases[i].Name, cases[i].Where, err)
		}
		list = append(list, Exchange{&cases[i], replies})
	}
	return list, nil
}

func (r *Runner) play(c *Case) ([]Reply, error) {
	addr := r.Addr
	if r.AddrOf != nil {
		addr = r.AddrOf(c)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	timeout := r.Timeout
	if timeout == 0 || c.SetsUp() {
		timeout = 30 * time.Second
	}
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	replies := make([]Reply, len(c.Requests))
	for i := range replies {
		replies[i].Kept = r.Vars
	}
	sent := make([]chan struct{}, 0, len(c.Requests))
	for i := range c.Requests {
		q := &c.Requests[i]
		first, rest := q.bytes(r.Header, r.Vars)
		done := make(chan struct{})
		sent = append(sent, done)
		// What is written and what is read may cross: a server may answer, and close, before it has read all.
		go func() {
			defer close(done)
			_, _ = conn.Write(first) // a server that no longer reads may have answered
		}()
		if c.Pipelined {
			<-done
			continue
		}
		r.receive(conn, in, &replies[i], q, first, rest)
		r.keep(q, &replies[i])
	}
	if c.Pipelined {
		for i := range c.Requests {
			first, _ := c.Requests[i].bytes(r.Header, r.Vars)
			replies[i].read(in, isHead(first), false)
		}
	}
	if last := &replies[len(replies)-1]; last.Broken == "" {
		last.Extra = extra(conn, in)
	}
	conn.Close()
	for _, done := range sent {
		<-done
	}
	return replies, nil
}

// receive reads the reply to a request, whose body may have to be sent first.
func (r *Runner) receive(conn net.Conn, in *bufio.Reader, reply *Reply, q *Request, first, rest []byte) {
	if q.Wait {
		if reply.read(in, isHead(first), true); reply.Line != "" || reply.Broken != "" {
			return // answered without the body
		}
		if _, err := conn.Write(rest); err != nil {
			reply.Broken = reason(err)
			return
		}
	}
	reply.read(in, isHead(first), false)
}

// extra returns what the server has sent beyond its last reply, as far as it is there already.
func extra(conn net.Conn, in *bufio.Reader) []byte {
	if in.Buffered() == 0 {
		_ = conn.SetReadDeadline(time.Now().Add(200 * time.Microsecond))
		_, _ = in.Peek(1)
	}
	left, _ := in.Peek(in.Buffered())
	return append([]byte(nil), left...)
}

func isHead(request []byte) bool {
	return strings.HasPrefix(string(request[:min(5, len(request))]), "HEAD ")
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// keep remembers what later requests need.
func (r *Runner) keep(q *Request, reply *Reply) {
	if len(q.Keep) == 0 {
		return
	}
	plain, _ := reply.Plain()
	for _, k := range q.Keep {
		r.Vars = maps.Clone(r.Vars)
		r.Vars[k.Var] = "nothing-was-kept"
		for _, v := range find(plain, []string{k.Member}) {
			r.Vars[k.Var] = strings.Trim(string(plain[v.start:v.end]), `"`)
			break
		}
		reply.Kept = r.Vars
	}
}
