package cleanup

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/terminal"
)

// undoFormat is the version of the undo file's format.
const undoFormat = 1

// Undo is the first line of an undo file. Each further line is a document as it was: {"id":…,"routing":…,"source":…}. A document whose source has
// line breaks is stored as a JSON string under "text" instead. After an interrupted run a document may be there twice; the last line counts.
type Undo struct {
	Format   int    `json:"neardup_undo"`
	Engine   string `json:"engine"`
	Index    string `json:"index"`
	Identity string `json:"identity"`
	Hide     string `json:"hide,omitempty"`
	// Plan is the hash of the plan.
	Plan string `json:"plan"`
}

// undoFile is an undo file open for writing. After an error it writes nothing more, because its last line may be incomplete.
type undoFile struct {
	file   *os.File
	failed error
}

var errOtherUndo = errors.New("it belongs to another plan, or is not an undo file: name another one")

// openUndo creates an undo file, or continues that of an earlier run of the same plan. It ends an incomplete last line and keeps it, because its
// document may have been deleted. It fails if another run has the file open.
func openUndo(name string, head Undo) (u *undoFile, err error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600) // it holds documents
	if err != nil {
		return nil, err
	}
	u = &undoFile{file: file}
	defer func() {
		if err != nil {
			_ = file.Close()
			err = fmt.Errorf("undo file %s: %w", name, err)
		}
	}()
	if err := terminal.Lock(file); err != nil {
		return nil, fmt.Errorf("another run uses it, or it can't be locked: %w", err)
	}
	head.Format = undoFormat
	first, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	whole, rest := int64(0), []byte(nil)
	for in := bufio.NewReaderSize(file, 1<<20); ; {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			rest = line
			break
		}
		if err != nil {
			return nil, err
		}
		if whole == 0 && !bytes.Equal(bytes.TrimSpace(line), first) {
			return nil, errOtherUndo
		}
		whole += int64(len(line))
	}
	if whole == 0 && !bytes.HasPrefix(first, rest) {
		return nil, errOtherUndo
	}
	var begin []byte
	if whole == 0 {
		err = file.Truncate(0)
		begin = append(first, '\n')
	} else if len(rest) > 0 {
		begin = []byte("\n")
	}
	if err == nil {
		_, err = file.Write(begin)
	}
	if err != nil {
		return nil, err
	}
	return u, errors.Join(file.Sync(), terminal.SyncFolder(filepath.Dir(name)))
}

// add appends documents, and flushes them to disk.
func (u *undoFile) add(documents ...adapters.Stored) error {
	var lines []byte
	for _, d := range documents {
		lines = appendUndo(lines, d)
	}
	if u.failed == nil {
		_, u.failed = u.file.Write(lines)
	}
	if u.failed == nil {
		u.failed = u.file.Sync()
	}
	if u.failed != nil {
		return fmt.Errorf("write the undo file: %w: these documents were not touched", u.failed)
	}
	return nil
}

// appendUndo appends the line of a document.
func appendUndo(lines []byte, d adapters.Stored) []byte {
	lines = jsonedit.AppendString(append(lines, `{"id":`...), d.ID)
	if d.Routing != "" {
		lines = jsonedit.AppendString(append(lines, `,"routing":`...), d.Routing)
	}
	if bytes.ContainsAny(d.Source, "\r\n") {
		lines = jsonedit.AppendString(append(lines, `,"text":`...), string(d.Source))
	} else {
		lines = append(append(lines, `,"source":`...), d.Source...)
	}
	return append(lines, "}\n"...)
}

// readUndo reads a line of a document.
func readUndo(line []byte) (d adapters.Stored, err error) {
	members, err := jsonedit.Members(line)
	if err != nil {
		return d, err
	}
	d.ID, _ = jsonedit.Text(jsonedit.Get(members, "id"))
	d.Routing, _ = jsonedit.Text(jsonedit.Get(members, "routing"))
	if text, is := jsonedit.Text(jsonedit.Get(members, "text")); is {
		d.Source = []byte(text)
	} else {
		d.Source = bytes.Clone(jsonedit.Get(members, "source"))
	}
	if d.ID == "" || len(d.Source) == 0 {
		return d, errors.New("the line has no id, or no document")
	}
	return d, nil
}

// ReadUndo reads an undo file, and yields its documents with their line numbers. For a line that can't be read, such as an incomplete last line, it
// yields a document without an ID.
func ReadUndo(name string, begin func(Undo) error, yield func(line int, d adapters.Stored) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<20)
	for number := 1; ; number++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) && number > 1 && len(line) == 0 {
			return nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", name, err)
		}
		if number == 1 {
			var head Undo
			if err := json.Unmarshal(line, &head); err != nil || head.Format != undoFormat || head.Index == "" {
				return fmt.Errorf("%s is not an undo file of this version: name the file that you gave to --undo", name)
			}
			if err := begin(head); err != nil {
				return err
			}
			continue
		}
		d, err := readUndo(line)
		if err != nil {
			d = adapters.Stored{}
		}
		if err := yield(number, d); err != nil {
			return err
		}
	}
}

// OpenUndo reads a whole undo file, and returns its head and how many lines follow it.
func OpenUndo(name string) (head Undo, documents int, err error) {
	err = ReadUndo(name, func(u Undo) error { head = u; return nil }, func(int, adapters.Stored) error { documents++; return nil })
	return head, documents, err
}
