package flink

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/sketch"
)

// fileTexts is of how many texts a file holds what is wanted of them, some megabytes: files are what taskmanagers share out among themselves.
const fileTexts = 50000

// layout is part of a run's name. A change of what files hold, or of the rule, changes it, so that no run goes on from files of another kind.
const layout = 1

// repeated goes through the texts a first time, to learn which of their keys come at least twice. Most come once and make no pair. It names the
// run by a digest of all that the pairs depend on, so a later run of the same finds what is done.
func (r *run) repeated(texts iter.Seq2[*sketch.Sketch, error]) (*filter, error) {
	f, keys, digest, head := newFilter(r.Memory), []uint64(nil), xxhash.New(), []byte(nil)
	fmt.Fprintln(digest, layout, r.Bands, r.Rows, r.Threshold)
	for s, err := range texts {
		if err == nil {
			keys, err = r.keys(keys, s)
		}
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			f.add(key)
		}
		head = append(binary.LittleEndian.AppendUint64(head[:0], s.Fingerprint), byte(s.Form), s.Bits)
		_, _ = digest.Write(binary.LittleEndian.AppendUint32(head, uint32(len(s.Payload))))
		_, _ = digest.Write(s.Payload)
	}
	r.name = fmt.Sprintf("neardup-%016x", digest.Sum64())
	return f, nil
}

// keys returns the keys of a sketch's bands, in room that is used again: the number of the band, and the half of its key that engines
// store.
func (r *run) keys(room []uint64, s *sketch.Sketch) ([]uint64, error) {
	keys, ok := s.AppendBands(room[:0], r.Bands, r.Rows)
	if !ok {
		return keys, fmt.Errorf("the sketch of text %d has no %d bands of %d rows", s.Fingerprint, r.Bands, r.Rows)
	}
	for band, key := range keys {
		keys[band] = uint64(band)<<32 | key>>32
	}
	return keys, nil
}

// exported counts what was written.
type exported struct {
	texts, written, keys int // texts that there are; that share a key; keys that are shared
	there                int // files that an earlier run has written; what is in them is not counted
	bytes                int64
}

// export writes the texts that share a key as files of rows.
func (r *run) export(texts iter.Seq2[*sketch.Sketch, error], shared *filter) (count exported, err error) {
	var file *textFile // nil for one that is there
	var row row
	for s, err := range texts {
		if err == nil && count.texts == 0 {
			r.shape = shapeOf(s, r.Threshold)
		}
		if err == nil && count.texts%fileTexts == 0 {
			if err = file.end(&count); err == nil {
				file, err = r.create(&count)
			}
		}
		if err == nil && file != nil {
			err = row.set(r, s, shared)
		}
		if err == nil && file != nil && len(row.keys) > 0 {
			_, err = file.Write(row.text)
			count.written++
			count.keys += len(row.keys)
		}
		if err != nil {
			return count, errors.Join(err, file.close())
		}
		count.texts++
	}
	return count, file.end(&count)
}

// textFile is a file of rows, compressed: Huffman's code alone makes digits half as long, in a fifth of the time that a search for
// repetitions takes.
type textFile struct {
	*gzip.Writer
	buffer *bufio.Writer
	file   *os.File
	name   string // that it gets when it is whole
	mode   fs.FileMode
}

// create begins the next file, or returns nil if it is there.
func (r *run) create(count *exported) (*textFile, error) {
	name := filepath.Join(r.texts, fmt.Sprintf("%06d.csv.gz", count.texts/fileTexts))
	if _, err := os.Stat(name); err == nil {
		count.there++
		return nil, nil
	}
	file, err := os.Create(filepath.Join(r.texts, ".unfinished"))
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(file, 1<<20)
	w, err := gzip.NewWriterLevel(buffer, gzip.HuffmanOnly)
	return &textFile{w, buffer, file, name, r.mode &^ 0o111}, err
}

// end completes the file.
func (f *textFile) end(count *exported) error {
	if f == nil {
		return nil
	}
	err := errors.Join(f.Close(), f.buffer.Flush(), f.file.Chmod(f.mode), f.file.Sync())
	if info, err := f.file.Stat(); err == nil {
		count.bytes += info.Size()
	}
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return os.Rename(f.file.Name(), f.name)
}

// close leaves the file as it is.
func (f *textFile) close() error {
	if f == nil {
		return nil
	}
	return f.file.Close()
}

// row is a text's row in CSV, and what is used again to make the next.
type row struct {
	text  []byte
	keys  []uint64
	words []int64
}

// set makes the row of a text, of those of its keys that are shared. Without any there is no row.
func (w *row) set(r *run, s *sketch.Sketch, shared *filter) (err error) {
	if !r.shape.takes(s) {
		return fmt.Errorf("the sketch of text %d is of another form than the first", s.Fingerprint)
	}
	if w.keys, err = r.keys(w.keys, s); err != nil {
		return err
	}
	w.keys = slices.DeleteFunc(w.keys, func(key uint64) bool { return !shared.again(key) })
	if len(w.keys) == 0 {
		return nil
	}
	w.text = append(strconv.AppendUint(w.text[:0], s.Fingerprint, 10), ',')
	for i, key := range w.keys {
		if i > 0 {
			w.text = append(w.text, ';')
		}
		w.text = strconv.AppendUint(w.text, key, 10)
	}
	w.words = r.shape.appendWords(w.words[:0], s.Payload)
	for _, word := range w.words {
		w.text = strconv.AppendInt(append(w.text, ','), word, 10)
	}
	w.text = append(w.text, '\n')
	return nil
}

// committed returns the files of a directory that a job has committed. It writes into a directory that begins with a dot, and
// moves whole files out of that at its very end.
func committed(dir string) (files []string, err error) {
	list, err := os.ReadDir(dir)
	for _, f := range list {
		if f.Type().IsRegular() && !strings.HasPrefix(f.Name(), ".") && !strings.HasPrefix(f.Name(), "_") {
			files = append(files, filepath.Join(dir, f.Name()))
		}
	}
	return files, err
}

// pairsIn yields the pairs in the committed files of a directory, and the first error.
func pairsIn(dir string) iter.Seq2[[2]uint64, error] {
	return func(yield func([2]uint64, error) bool) {
		files, err := committed(dir)
		more := true
		for i := 0; i < len(files) && err == nil && more; i++ {
			err = eachPair(files[i], func(pair [2]uint64) bool {
				more = yield(pair, nil)
				return more
			})
		}
		if err != nil {
			yield([2]uint64{}, err)
		}
	}
}

// eachPair visits the pairs of a file until visit returns false.
func eachPair(path string, visit func([2]uint64) bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		if err != nil && err != io.EOF {
			return fmt.Errorf("%s: line %d: %w", path, n, err)
		}
		pair, ok := pairOf(line)
		if !ok || err == io.EOF { // every line that Flink writes is ended
			return fmt.Errorf("%s: line %d is no pair of numbers: %.80q", path, n, line)
		}
		if !visit(pair) {
			return nil
		}
	}
}

func pairOf(line []byte) (pair [2]uint64, ok bool) {
	a, b, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(","))
	x, err := strconv.ParseUint(string(a), 10, 64)
	y, err2 := strconv.ParseUint(string(b), 10, 64)
	return [2]uint64{x, y}, err == nil && err2 == nil && x < y
}
