package offline

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"sync/atomic"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/documents"
	"github.com/neardup/sidecar/internal/terminal"
)

// batchSize is the size of a batch in bytes: large enough that passing it to another goroutine costs nothing.
const batchSize = 256 << 10

// batch is a run of whole lines of a stream.
type batch struct {
	// first is the number of its first line, from 1.
	first int
	text  []byte
}

// Lines visits the lines with their numbers, without their ends and without blank ones. A line shares the batch's memory.
func (b batch) Lines() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		number := b.first
		for line := range bytes.Lines(b.text) {
			line = bytes.TrimRight(line, "\r\n")
			if number == 1 {
				line = bytes.TrimPrefix(line, []byte("\uFEFF"))
			}
			if len(bytes.TrimSpace(line)) > 0 && !yield(number, line) {
				return
			}
			number++
		}
	}
}

// eachBatch reads a stream to its end. It calls work for its batches on all cores, and use for their results in the order of the stream. It
// stops at the first error of work, after use has got the result of that batch, which may be partial. Its memory does not grow with the
// stream.
func eachBatch[R any](ctx context.Context, src io.Reader, work func(batch) (R, error), use func(R) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		result R
		err    error
	}
	ordered := make(chan chan outcome, runtime.GOMAXPROCS(0))
	var readErr error // valid once ordered is closed
	go func() {
		defer close(ordered)
		readErr = cutBatches(terminal.UntilDone(ctx, src), func(b batch) bool {
			done := make(chan outcome, 1)
			select {
			case ordered <- done:
			case <-ctx.Done():
				return false
			}
			go func() {
				result, err := work(b)
				done <- outcome{result, err}
			}()
			return true
		})
		if ctx.Err() != nil { // the stream was not read to its end
			readErr = terminal.ErrInterrupted
		}
	}()
	for done := range ordered {
		batch := <-done
		if err := errors.Join(use(batch.result), batch.err); err != nil {
			return err
		}
	}
	return readErr
}

// EachDocument reads the documents of a file, one in each line, on all cores. add adds a document and its line number to the result of a batch;
// use gets the results in the order of the file. If no document has any of the fields, a note says so.
func EachDocument[R any](
	ctx context.Context, g *Comparer, file, id string, add func(R, int, *documents.Document) (R, error), use func(R) error,
) error {
	src, name, err := Open(file, g.In)
	if err != nil {
		return err
	}
	defer src.Close()
	var count, withField atomic.Int64
	work := func(b batch) (result R, err error) {
		for number, line := range b.Lines() {
			d, err := documents.Read(line, id, g.Rule)
			if err == nil {
				result, err = add(result, number, &d)
			}
			if err != nil {
				return result, atLine(name, number, err)
			}
			count.Add(1)
			if d.Held {
				withField.Add(1)
			}
		}
		return result, nil
	}
	err = eachBatch(ctx, src, work, use)
	if err == nil && count.Load() > 0 && withField.Load() == 0 {
		const note = "note: %s: no document has a field %s: name the fields of your documents with --fields\n"
		_, _ = fmt.Fprintf(g.Err, note, name, config.Either(g.Rule.Fields))
	}
	return err
}

// cutBatches cuts a stream into batches, until its end or until next returns false. A batch is complete at batchSize, or if reading the next line
// would block.
func cutBatches(src io.Reader, next func(batch) bool) error {
	in, b := bufio.NewReaderSize(src, batchSize), batch{first: 1}
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		b.text = append(b.text, line...)
		buffered, _ := in.Peek(in.Buffered())
		blocks := bytes.IndexByte(buffered, '\n') < 0
		if len(b.text) > 0 && (blocks || err != nil || len(b.text) >= batchSize) {
			if !next(b) {
				return nil
			}
			b = batch{first: number + 1}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
