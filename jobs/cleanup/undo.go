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
)

// undoFormat is the version of the form of an undo file.
const undoFormat = 1

// Undo is the first line of an undo file. Each further line is a document as it was: {"id":…,"routing":…,"source":…}. A document that the engine
// keeps in several lines stands there as a text, under "text". A document can stand there twice, after a run that was interrupted.
type Undo struct {
	Format   int    `json:"neardup_undo"`
	Engine   string `json:"engine"`
	Index    string `json:"index"`
	Identity string `json:"identity"`
	Hide     string `json:"hide,omitempty"`
	// Plan is a hash of the plan that was carried out.
	Plan string `json:"plan"`
}

// undoFile is an undo file that is written. After an error nothing more is: its last line may not be whole.
type undoFile struct {
	file   *os.File
	failed error
}

var errOtherUndo = errors.New("it is of another plan, or no undo file: name another one")

// openUndo makes an undo file, or goes on with that of an earlier run of the same plan: a last line that did not become whole is ended, and stays: it
// may be of a document that was deleted. No other process may have it open.
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
	if err := lock(file); err != nil {
		return nil, fmt.Errorf("another run is at work with it, or it can't be locked: %w", err)
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
	return u, errors.Join(file.Sync(), syncFolder(filepath.Dir(name)))
}

// syncFolder puts the name of a new file on the disk.
func syncFolder(name string) error {
	folder, err := os.Open(name)
	if err != nil {
		return err
	}
	_ = folder.Sync() // not every system can
	return folder.Close()
}

// add writes documents, and returns when they are on the disk.
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
		return fmt.Errorf("write the undo file: %w: nothing was done to these documents", u.failed)
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
		return d, errors.New("has no id, or no document")
	}
	return d, nil
}

// ReadUndo reads an undo file, and yields its documents with the numbers of their lines, without an ID those of lines that can't be read, such as
// a last line that did not become whole.
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
				return fmt.Errorf("%s is no undo file of this version: name the one that --undo named", name)
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

// OpenUndo reads a whole undo file, and returns its head and how many documents it holds.
func OpenUndo(name string) (head Undo, documents int, err error) {
	err = ReadUndo(name, func(u Undo) error { head = u; return nil }, func(int, adapters.Stored) error { documents++; return nil })
	return head, documents, err
}
