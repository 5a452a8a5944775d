package typesense

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// maxDocument bounds how much of a body is held in memory at a time. A longer document passes as it stands.
const maxDocument = 32 << 20

// EnrichWrite implements adapters.Dialect. Documents of update, emplace and PATCH count as partial: the engine merges them into what
// is stored. (An emplace that finds nothing stored makes a document that merely lacks a sketch if it lacks a sketched field.)
func (Dialect) EnrichWrite(c adapters.Class, dst io.Writer, src io.Reader, e *adapters.Enricher) error {
	e.NoCreate = true // no write makes a collection
	partial, _ := c.Params.(bool)
	var out []byte
	enrich := func(document []byte) []byte {
		out = e.Append(out[:0], c.Target, document, partial)
		return out
	}
	if c.Form == formImport {
		return eachLine(dst, src, enrich)
	}
	return whole(dst, src, enrich)
}

// whole copies src to dst with its content edited; what is too large is copied as it stands.
func whole(dst io.Writer, src io.Reader, edit func([]byte) []byte) error {
	data, err := io.ReadAll(io.LimitReader(src, maxDocument))
	if err != nil {
		return err
	}
	if len(data) == maxDocument {
		if _, err := dst.Write(data); err != nil {
			return err
		}
		_, err := io.Copy(dst, src)
		return err
	}
	if len(bytes.TrimSpace(data)) > 0 {
		data = edit(data)
	}
	_, err = dst.Write(data)
	return err
}

// eachLine copies src to dst with each line edited, its line end included; blank lines and those that are too long are copied as
// they stand. Where src fails nothing of the line at hand is written.
func eachLine(dst io.Writer, src io.Reader, edit func([]byte) []byte) error {
	r := bufio.NewReaderSize(src, 64<<10)
	var line []byte
	long := false // the line at hand is being copied as it stands
	for {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		more := errors.Is(err, bufio.ErrBufferFull)
		line = append(line, piece...)
		if more && !long && len(line) < maxDocument {
			continue
		}
		out := line
		if long = long || more; !long && len(bytes.TrimSpace(line)) > 0 {
			out = edit(line)
		}
		if _, werr := dst.Write(out); werr != nil {
			return werr
		}
		line, long = line[:0], more
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}
