package cluster

import (
	"bufio"
	"crypto/rand"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/neardup/sidecar/internal/jsonedit"
)

// File is a file of clusters that takes its name when it is whole.
type File struct {
	name string
	file *os.File
	out  *bufio.Writer
	csv  *csv.Writer // nil for JSON lines
	line []byte
}

// NewFile makes a file: of CSV where its name says so, else of JSON lines.
func NewFile(name string) (*File, error) {
	// not os.CreateTemp, which knows nothing of who else may read files here: see umask(2)
	const readable = 0o666
	hidden := filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text())
	file, err := os.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readable)
	if err != nil {
		return nil, fmt.Errorf("--output: %w", err)
	}
	f := &File{name: name, file: file, out: bufio.NewWriterSize(file, 1<<20)}
	if strings.HasSuffix(name, ".csv") {
		f.csv = csv.NewWriter(f.out)
		err = f.csv.Write([]string{"id", "cluster", "size", "agreement"})
	}
	return f, err
}

// Add writes one document's line.
func (f *File) Add(m *Member) error {
	err := f.write(m)
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("--output: %w: make room, or name another place", err)
	}
	return err
}

func (f *File) write(m *Member) error {
	if f.csv != nil {
		return f.csv.Write([]string{m.ID, m.Cluster, strconv.Itoa(m.Size), strconv.FormatFloat(m.Agreement, 'f', 4, 64)})
	}
	line := jsonedit.AppendString(append(f.line[:0], `{"id":`...), m.ID)
	line = jsonedit.AppendString(append(line, `,"cluster":`...), m.Cluster)
	line = strconv.AppendInt(append(line, `,"size":`...), int64(m.Size), 10)
	line = strconv.AppendFloat(append(line, `,"agreement":`...), m.Agreement, 'f', 4, 64)
	f.line = append(line, "}\n"...)
	_, err := f.out.Write(f.line)
	return err
}

// Keep gives the file its name.
func (f *File) Keep() error {
	if f.csv != nil {
		f.csv.Flush()
		if err := f.csv.Error(); err != nil {
			return fmt.Errorf("--output: %w", err)
		}
	}
	err := errors.Join(f.out.Flush(), f.file.Sync(), f.file.Close())
	if err == nil {
		err = os.Rename(f.file.Name(), f.name)
	}
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}

// Drop removes what did not get its name.
func (f *File) Drop() {
	_ = f.file.Close()
	_ = os.Remove(f.file.Name())
}
