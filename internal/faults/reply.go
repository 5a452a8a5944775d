package faults

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"time"
)

// sendReply sends the server's reply back and reports whether another exchange may follow.
func (e *exchange) sendReply() bool {
	if e.at(RequestWhole) && !e.pause() {
		return false
	}
	for {
		head, err := readHead(e.back)
		if err != nil {
			return false
		}
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), e.request)
		if err != nil {
			return false
		}
		if resp.StatusCode < 200 {
			if write(e.out, head) != nil {
				return false
			}
			continue
		}
		return e.final(head, resp)
	}
}

// pause strikes after the request is whole and before its reply: not before the server has it all, of which the first byte of its
// reply is the sign.
func (e *exchange) pause() bool {
	if _, err := e.back.Peek(1); err != nil {
		return false
	}
	e.settle()
	to, err := e.strike(e.out)
	if err == nil {
		e.out = to
	}
	return err == nil
}

// settle waits until it is noted that the request is out, which it is not where the server answers early.
func (e *exchange) settle() {
	select {
	case <-e.whole:
	case <-e.ended:
	case <-time.After(time.Second):
	}
}

// final sends the reply itself.
func (e *exchange) final(head []byte, resp *http.Response) bool {
	if e.fault != nil && e.fault.At > RequestWhole {
		e.settle()
	}
	body := newRawBody(e.back, replyFraming(resp))
	if e.fault != nil && (e.fault.Do == Answer || e.fault.Do == Alter) {
		return e.replaced(head, resp, body)
	}
	e.relay.note(func() { e.x.Status, e.x.Bit = resp.StatusCode, e.x.Bit || e.at(ReplyWhole) })
	to, err := e.sendHead(e.out, head, body.frame.length != 0, ReplyLine, ReplyHeader, ReplyBodyBegin)
	if err != nil {
		return false
	}
	if err := e.sendBody(to, body, ReplyBodyMiddle, ReplyBodyLast, ReplyLastChunk); err != nil {
		return false
	}
	if e.at(ReplyWhole) {
		if _, err := e.strike(e.out); err != nil {
			return false
		}
	}
	return !resp.Close && body.frame.length != -2
}

// replaced reads the server's reply and sends another one, behind which the connection ends.
func (e *exchange) replaced(head []byte, resp *http.Response, body *rawBody) bool {
	w := &Whole{Head: head, Response: resp}
	body.content = func(p []byte) { w.Body = append(w.Body, p...) }
	if _, err := io.Copy(io.Discard, body); err != nil {
		return false
	}
	out := e.fault.Reply
	if e.fault.Do == Alter {
		if out = e.fault.Change(w); out == nil {
			return false
		}
	}
	e.bite()
	e.gave(out)
	_ = write(e.out, out)
	return false
}
