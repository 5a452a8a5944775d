package proxy

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestBuffers: a buffer is long enough and little longer, and each size is kept in its own place.
func TestBuffers(t *testing.T) {
	places := map[*sync.Pool]int{}
	for n := int64(1); n < 3*mostKept; n += 1 + n/50 {
		for _, n := range []int64{n - 1, n, bufferSize(n), leastKept} {
			buffer := newBuffer(n)
			size := int64(cap(buffer))
			if len(buffer) != 0 || size < n || size > n+n/4 || size != bufferSize(n) || bufferSize(size) != size {
				t.Fatalf("for %d bytes a buffer of %d", n, size)
			}
			place := keptFor(cap(buffer))
			if within := size >= leastKept && size <= mostKept; within != (place != nil) {
				t.Fatalf("a buffer of %d bytes, for %d: kept is %t", size, n, place != nil)
			}
			if other, ok := places[place]; ok && place != nil && other != cap(buffer) {
				t.Fatalf("buffers of %d and %d bytes are kept in one place", other, size)
			}
			places[place] = cap(buffer)
			reuseBuffer(append(buffer, 1))
		}
	}
	expect.Same(t, len(kept)+1, len(places), "places that are used, of which one is nowhere")
}

// TestLentEnds: a transport that reads a body while its buffer is reused never sees what is written there.
func TestLentEnds(t *testing.T) {
	for range 200 {
		h := &hold{all: &holds{}}
		buffer := append(newBuffer(leastKept), bytes.Repeat([]byte{'a'}, leastKept)...)
		body := h.lend(buffer)
		var read []byte
		var wg sync.WaitGroup
		wg.Go(func() { read, _ = io.ReadAll(body) })
		h.release()
		for i := range buffer {
			buffer[i] = 'b'
		}
		if wg.Wait(); bytes.IndexByte(read, 'b') >= 0 {
			t.Fatal("the next body was sent")
		}
		if n, err := body.Read(make([]byte, 9)); n > 0 || err != io.EOF {
			t.Fatalf("a body that was released has %d bytes, %v", n, err)
		}
	}
}

// TestReusedOnce: a body that is closed can't be read any more, and closing it again does not give its buffer away twice.
func TestReusedOnce(t *testing.T) {
	body := reusedBody(append(newBuffer(leastKept), 'a'), io.NopCloser(nil))
	for range 2 {
		expect.OK(t, body.Close())
		expect.Same(t, 0, cap(body.(*reused).buffer), "bytes that it may still give away")
	}
	expect.Same(t, "", string(expect.Value(io.ReadAll(body))(t)), "what can be read")
}
