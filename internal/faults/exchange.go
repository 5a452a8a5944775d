package faults

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
)

// exchange is one request on its way and its reply on its way back.
type exchange struct {
	*link
	out     io.Writer // the client
	x       *Exchange
	fault   *Fault
	head    []byte
	frame   framing
	request *http.Request
	whole   chan struct{} // closed when the request is out
}

// errStruck: the fault ended the exchange.
var errStruck = errors.New("faults: struck")

// run relays the exchange and reports whether another one may follow on the connections.
func (e *exchange) run() bool {
	if e.fault != nil && e.fault.Do == Answer && e.fault.At.ofRequest() {
		return e.answer()
	}
	if e.server == nil && !e.early() {
		if err := e.dial(); err != nil {
			return false
		}
	}
	sent := make(chan error, 1)
	var next <-chan struct{}
	go func() {
		err := e.sendRequest()
		if err != nil && !errors.Is(err, errStruck) && !e.taken(err) {
			e.close(false)
		}
		if err == nil {
			next = e.watch(e.from) // a client that goes away ends the link
		}
		sent <- err
	}()
	if e.server == nil { // a stall before anything is sent
		<-sent
		return false
	}
	if e.idle != nil {
		<-e.idle
	}
	again := e.sendReply()
	if !again {
		e.close(e.fault != nil && e.fault.Do == Reset && e.x.Bit)
	}
	if err := <-sent; err != nil {
		return false
	}
	if !again {
		return false
	}
	e.idle = e.watch(e.back)
	<-next
	return true
}

// early reports whether the fault ends the exchange before a server is needed.
func (e *exchange) early() bool {
	return e.fault != nil && e.fault.At == RequestLine && e.fault.Do == Stall && e.fault.For == 0
}

// taken reports whether an error of sending is one of the server's, which may have answered all the same.
func (e *exchange) taken(err error) bool {
	_, ok := errors.AsType[writeError](err)
	return ok
}

type writeError struct{ error }

// answer sends the fault's reply without the server.
func (e *exchange) answer() bool {
	if e.fault.At > RequestHeader {
		if e.request.Header.Get("Expect") != "" {
			_, _ = io.WriteString(e.client, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if _, err := io.Copy(io.Discard, newRawBody(e.from, e.frame)); err != nil {
			return false
		}
	}
	e.bite()
	reply, ends := e.fault.Reply, e.fault.At <= RequestHeader && e.frame.length != 0 // what is still on its way is no request
	if ends && !bytes.Contains(reply, []byte("\r\nConnection:")) {
		reply = bytes.Replace(reply, []byte("\r\n"), []byte("\r\nConnection: close\r\n"), 1)
	}
	e.gave(reply)
	_, err := e.client.Write(reply)
	return err == nil && !ends
}

func (e *exchange) bite() { e.relay.note(func() { e.x.Bit = true }) }

// gave notes a reply of our own.
func (e *exchange) gave(reply []byte) {
	e.relay.note(func() { e.x.Back = reply })
	if resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(reply)), e.request); err == nil {
		e.relay.note(func() { e.x.Status = resp.StatusCode })
	}
}

// strike does the fault's harm, here and now. It returns the writer through which what follows goes.
func (e *exchange) strike(to io.Writer) (io.Writer, error) {
	e.bite()
	switch e.fault.Do {
	case Cut, Reset:
		e.close(e.fault.Do == Reset)
		return nil, errStruck
	case Stall:
		if e.fault.For <= 0 && e.fault.At < RequestWhole { // what comes is taken, so that its end is seen
			_, _ = io.Copy(io.Discard, e.from)
			e.close(false)
		}
		if !e.sleep(e.fault.For) {
			return nil, errStruck
		}
	case Drip:
		return drip{e, to}, nil
	}
	return to, nil
}

// drip writes a few bytes at a time.
type drip struct {
	e  *exchange
	to io.Writer
}

// Write implements io.Writer.
func (d drip) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m, err := d.to.Write(p[n:min(n+max(d.e.fault.Size, 1), len(p))])
		if n += m; err != nil {
			return n, err
		}
		if !d.e.sleep(d.e.fault.For) {
			return n, errStruck
		}
	}
	return n, nil
}

// piece is where within head or body a fault strikes: cut tells how much of the bytes is out by then, or -1.
func (e *exchange) piece(at Place, size int) int {
	if e.fault == nil || e.fault.Do == Answer || e.fault.Do == Alter || e.fault.At != at {
		return -1
	}
	switch at {
	case RequestLine, ReplyLine:
		return min(3, size)
	case RequestHeader, ReplyHeader:
		return size / 2
	}
	return -1
}

// send writes bytes and strikes after the first n of them; n -1: never.
func (e *exchange) send(to io.Writer, data []byte, n int) (io.Writer, error) {
	if n < 0 {
		return to, write(to, data)
	}
	if err := write(to, data[:n]); err != nil {
		return to, err
	}
	to, err := e.strike(to)
	if err != nil {
		return to, err
	}
	return to, write(to, data[n:])
}

func write(to io.Writer, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := to.Write(data); err != nil {
		return writeError{err}
	}
	return nil
}

// sendHead sends a head, with the faults within it and, if some body follows, right behind it.
func (e *exchange) sendHead(to io.Writer, head []byte, some bool, line, header, begin Place) (io.Writer, error) {
	n := max(e.piece(line, len(head)), e.piece(header, len(head)))
	to, err := e.send(to, head, n)
	if err == nil && some && e.at(begin) {
		to, err = e.strike(to)
	}
	return to, err
}

// at reports whether the fault is one that is done at the place.
func (e *exchange) at(place Place) bool {
	return e.fault != nil && e.fault.Do != Answer && e.fault.Do != Alter && e.fault.At == place
}

// sendBody sends a body with the faults of the places within it.
func (e *exchange) sendBody(to io.Writer, body *rawBody, middle, last, chunk Place) error {
	offset := func(size, end int) int {
		switch {
		case e.at(middle) && size > 1:
			return size / 2
		case e.at(last) && size > 0:
			return size - 1
		case e.at(chunk) && end >= 0:
			return end
		}
		return -1
	}
	if !e.at(middle) && !e.at(last) && !e.at(chunk) {
		_, err := io.Copy(writer{to, body}, body)
		return err
	}
	if length := body.frame.length; length >= 0 { // as it comes
		if n := offset(int(length), -1); n >= 0 {
			if _, err := io.CopyN(writer{to, nil}, body, int64(n)); err != nil {
				return err
			}
			var err error
			if to, err = e.strike(to); err != nil {
				return err
			}
		}
		_, err := io.Copy(writer{to, body}, body)
		return err
	}
	raw, err := io.ReadAll(body)
	end := -1
	if body.frame.chunked {
		end = lastChunk(raw)
	}
	n := offset(len(raw), end)
	if err != nil { // broken already
		n = -1
	}
	_, failed := e.send(to, raw, n)
	return errors.Join(failed, err)
}

// writer tells errors of writing from those of reading, and a body, if there is one, of its end: before the last bytes are out,
// so that it is known when the reply comes.
type writer struct {
	io.Writer
	body *rawBody
}

// Write implements io.Writer.
func (w writer) Write(p []byte) (int, error) {
	if w.body != nil && w.body.whole != nil && w.body.done && len(w.body.line) == 0 {
		w.body.whole()
	}
	n, err := w.Writer.Write(p)
	if err != nil && !errors.Is(err, errStruck) {
		err = writeError{err}
	}
	return n, err
}

// sendRequest sends the request on.
func (e *exchange) sendRequest() error {
	var to io.Writer = e.server
	if e.server == nil {
		to = io.Discard
	}
	if e.frame.length == 0 && !e.at(RequestLine) && !e.at(RequestHeader) {
		e.relay.note(func() { e.x.Whole = true })
	}
	to, err := e.sendHead(to, e.head, e.frame.length != 0, RequestLine, RequestHeader, RequestBodyBegin)
	if err != nil {
		return err
	}
	body := newRawBody(e.from, e.frame)
	body.content = func(p []byte) {
		e.relay.note(func() {
			e.x.Sent += int64(len(p))
			if room := e.relay.keep - len(e.x.Body); room > 0 {
				e.x.Body = append(e.x.Body, p[:min(room, len(p))]...)
			}
		})
	}
	body.whole = func() { e.relay.note(func() { e.x.Whole = true }) }
	if err := e.sendBody(to, body, RequestBodyMiddle, RequestBodyLast, RequestLastChunk); err != nil {
		return err
	}
	body.whole()
	close(e.whole)
	return nil
}
