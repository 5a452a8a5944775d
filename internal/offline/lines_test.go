package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/terminal"
)

// echo returns the lines of a batch with their numbers, and an error at the line that reads "stop".
func echo(b batch) ([]byte, error) {
	var out []byte
	for number, line := range b.Lines() {
		if string(line) == "stop" {
			return out, fmt.Errorf("line %d", number)
		}
		out = fmt.Appendf(out, "%d %s\n", number, line)
	}
	return out, nil
}

// TestEachBatchKeepsOrder reads lines of all lengths, some longer than a batch, in pieces of all sizes.
func TestEachBatchKeepsOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var text, want strings.Builder
	for i := 1; i <= 5000; i++ {
		n := random.IntN(300)
		if i%1000 == 0 {
			n = 3 * batchSize
		}
		line := strings.Repeat("x", n)
		end := [...]string{"\n", "\r\n"}[i%2]
		if i == 5000 {
			end = ""
		}
		text.WriteString(line + end)
		if n > 0 {
			fmt.Fprintf(&want, "%d %s\n", i, line)
		}
	}
	for name, src := range map[string]io.Reader{
		"whole": strings.NewReader(text.String()), "halves": iotest.HalfReader(strings.NewReader(text.String())),
		"data and error": iotest.DataErrReader(strings.NewReader(text.String())),
	} {
		var got bytes.Buffer
		err := eachBatch(t.Context(), src, 0, echo, func(out []byte) error { got.Write(out); return nil })
		if err != nil || got.String() != want.String() {
			t.Errorf("%s: %v, %d bytes of %d", name, err, got.Len(), want.Len())
		}
	}
}

func TestEachBatchEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	filler := strings.Repeat(strings.Repeat("x", 99)+"\n", 20_000)
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		src  io.Reader
		use  error
		want string
		got  int // bytes handed on, -1 where that is left to chance
	}{
		{"empty", strings.NewReader(""), nil, "", 0},
		{"a mark in front and blank lines", strings.NewReader("\uFEFFa\n\n \nb"), nil, "", len("1 a\n4 b\n")},
		{"work fails", strings.NewReader("a\n\nstop\nb\n" + filler), nil, "line 3", len("1 a\n")},
		{"use fails", strings.NewReader(filler), broken, "broken", -1},
		{"the stream breaks", io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)), nil, "broken", len("1 a\n2 b\n")},
	} {
		n := 0
		err := eachBatch(t.Context(), c.src, 0, echo, func(out []byte) error { n += len(out); return c.use })
		if message := fmt.Sprint(err); c.want == "" && err != nil || c.want != "" && message != c.want || c.got >= 0 && n != c.got {
			t.Errorf("%s: %v, %d bytes", c.name, err, n)
		}
	}
	for range 3000 { // no goroutine is left behind
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

// TestEachBatchIsInterrupted ends while the stream gives nothing.
func TestEachBatchIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src, feed := io.Pipe()
	defer feed.Close()
	go func() { _, _ = feed.Write([]byte("a\n")) }()
	err := eachBatch(ctx, src, 0, echo, func([]byte) error { cancel(); return nil })
	if !errors.Is(err, terminal.ErrInterrupted) {
		t.Errorf("%v", err)
	}
}

// TestPipeIsRead reads from a pipe, in which nothing can be skipped.
func TestPipeIsRead(t *testing.T) {
	src, feed, err := os.Pipe()
	expect.OK(t, err)
	defer src.Close()
	defer feed.Close()
	expect.OK(t, skip(t.Context(), src, 0))
}
