package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"

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
	// lines is how many it has, with blank ones.
	lines int
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

// eachBatch reads a stream to its end. lines is the number of lines that were read before. It calls work for the batches on all cores, and use for
// the results in the order of the stream. After use, the memory of a batch holds the next one. It stops at the first error of work, once use has got
// the result of that batch, which may be partial. It ends with ctx even if a read blocks. Its memory does not grow with the stream.
func eachBatch[R any](ctx context.Context, src io.Reader, lines int, work func(batch) (R, error), use func(R) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		text   []byte
		result R
		err    error
	}
	ordered := make(chan chan outcome, runtime.GOMAXPROCS(0))
	used := make(chan []byte, cap(ordered)+2) // the memory of as many batches as there are at once
	var readErr error                         // valid once ordered is closed
	go func() {
		defer close(ordered)
		readErr = cutBatches(src, lines, used, func(b batch) bool {
			done := make(chan outcome, 1)
			select {
			case ordered <- done:
			case <-ctx.Done():
				return false
			}
			go func() {
				result, err := work(b)
				done <- outcome{b.text, result, err}
			}()
			return true
		})
		if ctx.Err() != nil { // the stream was not read to its end
			readErr = terminal.ErrInterrupted
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return terminal.ErrInterrupted
		case done, more := <-ordered:
			if !more {
				return readErr
			}
			batch := <-done
			if err := errors.Join(use(batch.result), batch.err); err != nil {
				return err
			}
			if cap(batch.text) == batchSize { // else it had a long line
				select {
				case used <- batch.text[:0]:
				default:
				}
			}
		}
	}
}

// Place is how far a file of documents was read: whole lines alone.
type Place struct {
	// Bytes were read, unpacked, and Lines.
	Bytes int64 `json:"bytes"`
	Lines int   `json:"lines"`
	// Documents were in them, of which WithField had one of the fields.
	Documents int `json:"documents"`
	WithField int `json:"with_field"`
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
	return EachDocumentFrom(ctx, g, src, name, id, Place{}, add, func(result R, _ Place) error { return use(result) })
}

// EachDocumentFrom is EachDocument for the rest of what [Open] returned. use also gets the place behind the documents of the result.
func EachDocumentFrom[R any](
	ctx context.Context, g *Comparer, src io.Reader, name, id string, from Place,
	add func(R, int, *documents.Document) (R, error), use func(R, Place) error,
) error {
	if err := skip(ctx, src, from.Bytes); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	type read struct {
		result R
		Place
	}
	work := func(b batch) (r read, err error) {
		r.Bytes, r.Lines = int64(len(b.text)), b.lines
		for number, line := range b.Lines() {
			d, err := documents.Read(line, id, g.Rule)
			if err == nil {
				r.result, err = add(r.result, number, &d)
			}
			if err != nil {
				r.Lines = number - b.first
				r.Bytes = endOf(b.text, r.Lines)
				return r, atLine(name, number, err)
			}
			r.Documents++
			if d.Held {
				r.WithField++
			}
		}
		return r, nil
	}
	at := from
	err := eachBatch(ctx, src, from.Lines, work, func(r read) error {
		at = Place{at.Bytes + r.Bytes, at.Lines + r.Lines, at.Documents + r.Documents, at.WithField + r.WithField}
		return use(r.result, at)
	})
	if err == nil && at.Documents > 0 && at.WithField == 0 {
		const note = "note: %s: no document has a field %s: name the fields of your documents with --fields\n"
		_, _ = fmt.Fprintf(g.Err, note, name, config.Either(g.Rule.Fields))
	}
	return err
}

// endOf returns where the first lines of a text end.
func endOf(text []byte, lines int) (end int64) {
	for range lines {
		end += int64(bytes.IndexByte(text[end:], '\n') + 1)
	}
	return end
}

// skip leaves out the first bytes of a stream.
func skip(ctx context.Context, src io.Reader, bytes int64) error {
	if bytes == 0 { // perhaps of a pipe
		return nil
	}
	if file, plain := src.(io.Seeker); plain {
		_, err := file.Seek(bytes, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, terminal.UntilDone(ctx, src), bytes)
	return err
}

// cutBatches cuts a stream into batches, until its end or until next returns false. lines is the number of lines that were read before. A batch is the
// whole lines that are there after a read. Its memory is one from used, or new if there is none.
func cutBatches(src io.Reader, lines int, used <-chan []byte, next func(batch) bool) error {
	memory := func() []byte {
		select {
		case text := <-used:
			return text
		default:
			return make([]byte, 0, batchSize)
		}
	}
	text, first := memory(), lines+1
	for {
		before := len(text)
		if before == cap(text) {
			text = slices.Grow(text, before)
		}
		n, err := src.Read(text[before:cap(text)])
		text = text[:before+n]
		end := before + bytes.LastIndexByte(text[before:], '\n') + 1
		if err != nil { // what is left is the last line
			end = len(text)
		}
		if end > before || err != nil && end > 0 {
			b := batch{first: first, lines: bytes.Count(text[:end], []byte("\n")), text: text[:end]}
			if text[end-1] != '\n' {
				b.lines++
			}
			first += b.lines
			text = append(memory(), text[end:]...) // before the batch's memory is used again
			if !next(b) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
