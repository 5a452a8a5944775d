package faults

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// maxHead is the longest head that is relayed.
const maxHead = 16 << 20

// readHead returns the bytes of a head with the empty line that ends it.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for len(head) < maxHead {
		line, err := r.ReadSlice('\n')
		head = append(head, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return head, err
		case len(head) > 2 && (bytes.HasSuffix(head, []byte("\n\r\n")) || bytes.HasSuffix(head, []byte("\n\n"))):
			return head, nil
		}
	}
	return head, errors.New("faults: head too long")
}

// framing is how a body's end is told.
type framing struct {
	length  int64 // -1: chunked, -2: by the end of the connection
	chunked bool
}

func requestFraming(r *http.Request) framing {
	if len(r.TransferEncoding) > 0 {
		return framing{-1, true}
	}
	return framing{r.ContentLength, false}
}

func replyFraming(r *http.Response) framing {
	bare := r.Request.Method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified
	switch {
	case bare:
		return framing{}
	case len(r.TransferEncoding) > 0:
		return framing{-1, true}
	case r.ContentLength >= 0:
		return framing{r.ContentLength, false}
	}
	return framing{-2, false}
}

// rawBody reads the bytes of one body as they stand on the connection, and no more. If the connection ends before it does, that
// is io.ErrUnexpectedEOF.
type rawBody struct {
	from    *bufio.Reader
	frame   framing
	left    int64  // of the body, or of the chunk and its line end
	line    []byte // read and not given out yet
	ending  bool   // the last chunk's size has come: trailers follow
	done    bool
	content func([]byte) // if set, gets the body's content without the framing
	inChunk int64        // of the chunk's content still to come
	whole   func()       // if set, is called when all of it was read
}

func newRawBody(from *bufio.Reader, frame framing) *rawBody {
	return &rawBody{from: from, frame: frame, left: max(frame.length, 0), done: frame.length == 0}
}

// Read implements io.Reader.
func (b *rawBody) Read(p []byte) (n int, err error) {
	switch {
	case len(b.line) > 0:
		n = copy(p, b.line)
		b.line = b.line[n:]
		return n, nil
	case b.done:
		return 0, io.EOF
	case b.frame.length == -2:
		n, err = b.from.Read(p)
		b.tell(p[:n])
		return n, err
	case b.left > 0:
		n, err = b.from.Read(p[:min(int64(len(p)), b.left)])
		b.tell(p[:n])
		if b.left -= int64(n); b.left == 0 && !b.frame.chunked {
			b.done = true
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	line, err := b.from.ReadBytes('\n')
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return copy(p, line), err
	}
	b.line = line
	text := strings.TrimSpace(string(line))
	if b.ending {
		b.done = text == ""
		return b.Read(p)
	}
	size, _, _ := strings.Cut(text, ";")
	length, err := strconv.ParseInt(strings.TrimSpace(size), 16, 63)
	if err != nil {
		return 0, err
	}
	if b.ending = length == 0; length > 0 {
		b.left, b.inChunk = length+2, length
	}
	return b.Read(p)
}

// tell gives the content on.
func (b *rawBody) tell(p []byte) {
	if b.frame.chunked {
		p = p[:min(int64(len(p)), b.inChunk)]
		b.inChunk -= int64(len(p))
	}
	if b.content != nil && len(p) > 0 {
		b.content(p)
	}
}

// lastChunk returns where in a chunked body the chunk begins that ends it, or -1.
func lastChunk(raw []byte) int {
	for i := 0; i < len(raw); {
		line := bytes.IndexByte(raw[i:], '\n')
		if line < 0 {
			return -1
		}
		size, _, _ := strings.Cut(strings.TrimSpace(string(raw[i:i+line])), ";")
		length, err := strconv.ParseInt(size, 16, 31)
		if err != nil {
			return -1
		}
		if length == 0 {
			return i
		}
		i += line + 1 + int(length) + 2
	}
	return -1
}
