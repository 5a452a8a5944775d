package unseen

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/terminal"
)

// The file has three parts. Numbers are little-endian.
//
//	header   one line of JSON
//	filter   its words, and the xxHash of header and words
//	log      records of documents that came later: how many documents (32 bits), how many keys (32 bits), the keys, the xxHash of the record
//
// Once the log is as long as the filter, the file is replaced by one with all keys in the filter. So each key is written a few times, however many documents there
// are. A record that is not whole was being written when the process or the machine ended. It is left out with all that is behind it: its documents come again, and none
// is lost.

// header is the first line of the file. It says how documents were compared, with which nothing else can be mixed. The scheme depends on the seed, and does not tell it.
type header struct {
	Format         int      `json:"neardup_seen"`
	Scheme         string   `json:"scheme"`
	Fields         []string `json:"fields"`
	Threshold      float64  `json:"threshold"`
	MinShingles    int      `json:"min_shingles"`
	MinWords       int      `json:"min_words"`
	Numbers        bool     `json:"numbers_decide"`
	Bands          int      `json:"bands"`
	Rows           int      `json:"rows"`
	Expected       int      `json:"expected"`
	FalsePositives float64  `json:"false_positives"`
	Words          uint64   `json:"words"`
	Probes         int      `json:"probes"`
	// Remembered is how many documents the filter has.
	Remembered int `json:"remembered"`
}

// format is the version of the file.
const format = 1

// maxHeader is the length of the longest header.
const maxHeader = 1 << 16

// ErrDamaged is within the error of a file whose bytes are not those that were written.
var ErrDamaged = errors.New("is damaged: restore it from a backup, or remove it to begin with nothing seen")

// Open opens the file of that name, or makes it. Without a name nothing is kept. It fails if another process has it open.
func Open(name string, o *Options) (*Seen, error) {
	if err := check(o.Rule); err != nil {
		return nil, err
	}
	s := &Seen{rule: o.Rule, name: name}
	if name == "" {
		return s, s.begin(o)
	}
	if err := s.open(o); err != nil {
		s.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// begin makes it empty.
func (s *Seen) begin(o *Options) (err error) {
	if s.header, err = headerFor(o); err != nil {
		return err
	}
	s.filter = filter{bits: make([]uint64, s.Words), probes: s.Probes}
	return nil
}

func (s *Seen) open(o *Options) error {
	if err := s.lock(); err != nil {
		return err
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		if err := s.begin(o); err != nil {
			return err
		}
		return s.replace()
	}
	whole, err := s.read(s.file, info.Size(), o)
	if err != nil {
		return err
	}
	s.Dropped = info.Size() - whole
	return s.file.Truncate(whole)
}

// lock opens the file and locks it.
func (s *Seen) lock() (err error) {
	if s.file, err = os.OpenFile(s.name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666); err != nil {
		return err
	}
	if err := terminal.Lock(s.file); err != nil {
		return fmt.Errorf("another process uses it, or it can't be locked: %w", err)
	}
	locked, err := s.file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(s.name); err != nil || !os.SameFile(locked, now) {
		return errors.New("another process uses it")
	}
	return nil
}

// read reads a file of this size, and returns how much of it is whole.
func (s *Seen) read(file io.Reader, size int64, o *Options) (whole int64, err error) {
	in := bufio.NewReaderSize(file, maxHeader)
	line, err := in.ReadSlice('\n')
	var h header
	if err != nil || json.Unmarshal(line, &h) != nil || h.Format == 0 {
		return 0, errors.New("is no file of seen documents: name another one")
	}
	if h.Expected < 1 || !(h.FalsePositives > 0 && h.FalsePositives < 1) || h.Words > uint64(size)/8 {
		return 0, ErrDamaged
	}
	own := Options{o.Rule, cmp.Or(o.Expected, h.Expected), cmp.Or(o.FalsePositives, h.FalsePositives)}
	if s.header, err = headerFor(&own); err != nil {
		return 0, err
	}
	if err := s.header.differs(&h); err != nil {
		return 0, err
	}
	if h.Words != s.Words || h.Probes != s.Probes || int64(len(line))+8*int64(h.Words)+8 > size {
		return 0, ErrDamaged
	}
	s.filter = filter{bits: make([]uint64, s.Words), probes: s.Probes}
	sum := xxhash.New()
	_, _ = sum.Write(line)
	whole = int64(len(line))
	chunk := make([]byte, 1<<16)
	for at := 0; at < len(s.bits); {
		chunk := chunk[:min(len(chunk), 8*(len(s.bits)-at))]
		if _, err := io.ReadFull(in, chunk); err != nil {
			return 0, err
		}
		_, _ = sum.Write(chunk)
		for ; len(chunk) > 0; chunk = chunk[8:] {
			s.bits[at] = binary.LittleEndian.Uint64(chunk)
			at++
		}
	}
	if _, err := io.ReadFull(in, chunk[:8]); err != nil {
		return 0, err
	}
	if binary.LittleEndian.Uint64(chunk) != sum.Sum64() {
		return 0, ErrDamaged
	}
	s.Remembered = h.Remembered
	whole += 8*int64(h.Words) + 8
	s.logged, err = s.readLog(in, size-whole)
	return whole + s.logged, err
}

// readLog adds the keys of the log, of which there are size bytes, and returns how many of these are whole.
func (s *Seen) readLog(in io.Reader, size int64) (whole int64, err error) {
	var record []byte
	for {
		record = slices.Grow(record[:0], 8)[:8]
		if size-whole < 8 {
			return whole, nil
		}
		if _, err := io.ReadFull(in, record); err != nil {
			return whole, err
		}
		documents, keys := binary.LittleEndian.Uint32(record), int64(binary.LittleEndian.Uint32(record[4:]))
		length := 8 + 8*keys + 8
		if length > size-whole {
			return whole, nil
		}
		record = slices.Grow(record, int(length))[:length]
		if _, err := io.ReadFull(in, record[8:]); err != nil {
			return whole, err
		}
		if binary.LittleEndian.Uint64(record[length-8:]) != xxhash.Sum64(record[:length-8]) {
			return whole, nil
		}
		for at := int64(8); at < length-8; at += 8 {
			s.add(binary.LittleEndian.Uint64(record[at:]))
		}
		s.Remembered += int(documents)
		whole += length
	}
}

// differs returns how a file can't be continued under this header.
func (h *header) differs(file *header) error {
	for _, v := range []struct {
		what       string
		file, this any
	}{
		{"version of the file", file.Format, h.Format},
		{"sketch or seed", file.Scheme, h.Scheme},
		{"threshold", file.Threshold, h.Threshold},
		{"min_shingles", file.MinShingles, h.MinShingles},
		{"min_words", file.MinWords, h.MinWords},
		{"numbers: decide", file.Numbers, h.Numbers},
		{"fields", fmt.Sprint(file.Fields), fmt.Sprint(h.Fields)},
		{"--expect", file.Expected, h.Expected},
		{"--false-positives", file.FalsePositives, h.FalsePositives},
		{"bands", file.Bands, h.Bands},
		{"rows", file.Rows, h.Rows},
	} {
		if v.file != v.this {
			return fmt.Errorf("was made with another %s (%v, not %v): use the same again, or another file", v.what, v.file, v.this)
		}
	}
	return nil
}

// Save writes what was remembered since the last time to the file, and returns when it is on the disk. Call it after the documents themselves are where they belong: what is
// saved counts as seen from then on.
func (s *Seen) Save() error {
	if s.file == nil || s.unsavedDocuments == 0 {
		return nil
	}
	record := make([]byte, 0, 16+8*len(s.unsaved))
	record = binary.LittleEndian.AppendUint32(record, uint32(s.unsavedDocuments))
	record = binary.LittleEndian.AppendUint32(record, uint32(len(s.unsaved)))
	for _, key := range s.unsaved {
		record = binary.LittleEndian.AppendUint64(record, key)
	}
	record = binary.LittleEndian.AppendUint64(record, xxhash.Sum64(record))
	if _, err := s.file.Write(record); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	s.unsaved, s.unsavedDocuments = s.unsaved[:0], 0
	if s.logged += int64(len(record)); s.logged > 8*int64(len(s.bits)) {
		return s.replace()
	}
	return nil
}

// replace replaces the file by one with all keys in the filter.
func (s *Seen) replace() error {
	line, err := json.Marshal(s.header)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if len(line) > maxHeader {
		return errors.New("the names of the fields are too long")
	}
	err = terminal.WriteFile(s.name, func(file io.Writer) error {
		sum := xxhash.New()
		out := io.MultiWriter(file, sum)
		_, err := out.Write(line)
		chunk := make([]byte, 0, 1<<16)
		for words := range slices.Chunk(s.bits, cap(chunk)/8) {
			if err != nil {
				return err
			}
			chunk = chunk[:0]
			for _, word := range words {
				chunk = binary.LittleEndian.AppendUint64(chunk, word)
			}
			_, err = out.Write(chunk)
		}
		if err == nil {
			_, err = file.Write(binary.LittleEndian.AppendUint64(nil, sum.Sum64()))
		}
		return err
	})
	if err != nil {
		return err
	}
	old := s.file
	s.logged, err = 0, s.lock()
	return errors.Join(err, old.Close())
}

// Close releases the file. What was not saved is forgotten.
func (s *Seen) Close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
