package flink

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/sketch"
)

// fileTexts is how many texts a file holds, some 15 MB: files are what taskmanagers share out among themselves.
const fileTexts = 20000

// export writes the texts as files of rows, and returns how many texts and bytes there were.
func (r *run) export(texts iter.Seq2[*sketch.Sketch, error]) (count int, size int64, err error) {
	var f *os.File
	w := bufio.NewWriterSize(nil, 1<<20)
	end := func() error {
		if f == nil {
			return nil
		}
		err := errors.Join(w.Flush(), f.Chmod(r.mode&^0o111), f.Close())
		f = nil
		return err
	}
	var row row
	for s, err := range texts {
		if err == nil && count == 0 {
			r.shape = shapeOf(s, r.Threshold)
		}
		if err == nil && count%fileTexts == 0 {
			if err = end(); err == nil {
				f, err = os.Create(filepath.Join(r.texts, fmt.Sprintf("%06d.csv", count/fileTexts)))
				w.Reset(f)
			}
		}
		if err == nil {
			err = row.set(r, s)
		}
		if err == nil {
			_, err = w.Write(row.text)
		}
		if err != nil {
			return count, size, errors.Join(err, end())
		}
		count++
		size += int64(len(row.text))
	}
	return count, size, end()
}

// row is a text's row in CSV, and what is used again to make the next.
type row struct {
	text  []byte
	keys  []uint64
	words []int64
}

func (w *row) set(r *run, s *sketch.Sketch) error {
	var ok bool
	if w.keys, ok = s.AppendBands(w.keys[:0], r.Bands, r.Rows); !ok {
		return fmt.Errorf("the sketch of text %d has no %d bands of %d rows", s.Fingerprint, r.Bands, r.Rows)
	}
	if !r.shape.takes(s) {
		return fmt.Errorf("the sketch of text %d is of another form than the first", s.Fingerprint)
	}
	w.text = append(strconv.AppendUint(w.text[:0], s.Fingerprint, 10), ',')
	for band, key := range w.keys {
		if band > 0 {
			w.text = append(w.text, ';')
		}
		w.text = strconv.AppendUint(w.text, uint64(band)<<32|key>>32, 10) // the half that engines store
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
