package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/terminal"
)

// A corpus can save its work in a directory, so that the run goes on if it is killed. The directory has these files:
//
//	neardup-records    the records of the documents, in the order of their coming
//	neardup-forest-N   the union-find forest after N bands: the parent of each text, in 4 bytes
//	neardup-state      what the run is of and how far it is, in JSON: see [state]
//	neardup-lock       is locked while a run uses the directory
//
// Bytes beyond what the state counts are ignored. The state is replaced atomically, after everything that it counts is on the disk. So a run may end
// at any moment, and so may the machine.
const (
	recordsName = "neardup-records"
	forestName  = "neardup-forest-"
	stateName   = "neardup-state"
	lockName    = "neardup-lock"
)

// workFormat is the version of all this. It changes with the form of a record and with what is computed into it, the keys of bands, and the
// numbering of texts.
//
//	1  the first
const workFormat = 1

// DefaultSaveEvery is what Options.SaveEvery is without a value.
const DefaultSaveEvery = 5 * time.Second

// state says what a run is of, and how far it is.
type state struct {
	Format int `json:"neardup_work"`
	// Run is the input and options that determine the result.
	Run map[string]string `json:"run"`
	// Documents is the number of records, Bytes their size, Sum their hash. Note is what the caller noted with them.
	Documents int             `json:"documents"`
	Bytes     int64           `json:"bytes"`
	Sum       uint64          `json:"sum"`
	Note      json.RawMessage `json:"note"`
	// Bands is how many bands are done. Forest is the hash of the forest file. The buckets that were cut are those of [Left].
	Bands      int    `json:"bands"`
	Forest     uint64 `json:"forest"`
	CutBuckets int    `json:"cut_buckets"`
	CutTexts   int    `json:"cut_texts"`
	// Hash is the hash of the state without it.
	Hash uint64 `json:"hash"`
}

// encode returns the JSON of the state, with its hash.
func (s state) encode() ([]byte, error) {
	s.Hash = 0
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	s.Hash = xxhash.Sum64(raw)
	return json.Marshal(s)
}

// parseState reads the state of a run. It is an error if the state is not of this version.
func parseState(raw []byte) (s state, err error) {
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, errDamaged
	}
	whole, err := s.encode()
	switch {
	case s.Format != workFormat:
		return s, fmt.Errorf("the saved run is of another version of sidecar, in format %d: go on with that version, or name another directory", s.Format)
	case err != nil || !bytes.Equal(raw, whole) || s.Documents < 0 || s.Documents > MostDocuments || s.Bytes < 0 || s.Bands < 0:
		return s, errDamaged
	}
	return s, nil
}

// ErrSaved is within every error of a file in the directory of [Corpus.Resume].
var ErrSaved = errors.New("saved run")

var errDamaged = errors.New("the saved run is damaged: remove its files neardup-* to start over")

// work saves the work of a corpus. A nil work saves nothing.
type work struct {
	scratch       // its directory
	state   state // what is saved, or is being saved
	sum     *xxhash.Digest
	every   time.Duration
	next    time.Time
	saving  chan error // gets the result of the save under way; nil without one
}

// Resume has the corpus save its work in a directory, which is made if need be, and goes on with the run that is saved there. run says which documents are
// added. A saved run with other options is an error. Resume is called before the first Add. It returns what was last noted
// with [Corpus.Save], nil if nothing was. One run at a time uses a directory.
func (c *Corpus) Resume(ctx context.Context, dir string, run map[string]string) (note []byte, err error) {
	if c.options.Algorithm == Broder {
		return nil, errors.New("a run of algorithm broder can't be picked up later: use bands or exact")
	}
	run = maps.Clone(run)
	maps.Copy(run, c.run())
	c.work = &work{scratch: scratch{dir: dir, kept: true}, sum: xxhash.New(), every: cmp.Or(c.options.SaveEvery, DefaultSaveEvery)}
	if err := c.work.open(run); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := c.loadRecords(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return c.work.state.Note, nil
}

// run says what of the options decides what comes out.
func (c *Corpus) run() map[string]string {
	rule, profile := c.options.Rule, c.options.Rule.Profile
	profile.Threshold = 0 // has a line of its own
	pairs := xxhash.New()
	for _, p := range c.options.Decided {
		_, _ = fmt.Fprintf(pairs, "%q %q %v %x %x\n", p.A, p.B, p.Verdict, p.TextA, p.TextB)
	}
	bands, rows := c.Shape()
	return map[string]string{
		"algorithm": string(c.options.Algorithm), "threshold": fmt.Sprint(rule.Profile.Threshold), "bands": fmt.Sprintf("%d of %d rows", bands, rows),
		"scheme of sketches": fmt.Sprintf("%08x", rule.Sketcher.SchemeID()), "rule": fmt.Sprintf("%+v", profile),
		"decided pairs": fmt.Sprintf("%d (%016x)", len(c.options.Decided), pairs.Sum64()),
	}
}

func (w *work) path(file string) string { return filepath.Join(w.dir, file) }

// open locks the directory and reads the state that is there, which must be of this run.
func (w *work) open(run map[string]string) error {
	for key, value := range run {
		run[key] = strconv.Quote(value) // JSON keeps valid UTF-8 alone
	}
	err := os.Mkdir(w.dir, 0o700)
	if err == nil {
		err = terminal.SyncFolder(filepath.Dir(filepath.Clean(w.dir)))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := w.lock(); err != nil {
		return err
	}
	raw, err := w.readFile(stateName)
	if errors.Is(err, fs.ErrNotExist) {
		w.state = state{Format: workFormat, Run: run}
		return w.removeForests("")
	}
	if err != nil {
		return err
	}
	if w.state, err = parseState(raw); err != nil {
		return err
	}
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(run)) {
		if there := w.state.Run[key]; there != run[key] {
			differ = append(differ, fmt.Sprintf("the saved run has %s %s, this one %s", key, there, run[key]))
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("%s: repeat the command of that run, or name another directory", strings.Join(differ, "; "))
	}
	return w.removeForests(w.forest())
}

// lock locks the directory until the work is closed.
func (w *work) lock() error {
	file, err := w.openFile(lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	w.files = append(w.files, file)
	if err := terminal.Lock(file); err != nil {
		return fmt.Errorf("another run uses it, or it can't be locked: %w", err)
	}
	return nil
}

// openFile opens a file of the directory, which must be a regular one if it exists. With os.O_EXCL a new file replaces it.
func (w *work) openFile(name string, flag int) (*os.File, error) {
	info, err := os.Lstat(w.path(name))
	if err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: remove it, or name another directory", name)
	}
	if err == nil && flag&os.O_EXCL != 0 {
		if err := os.Remove(w.path(name)); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(w.path(name), flag, 0o600)
}

// anew has openFile make a new file.
const anew = os.O_RDWR | os.O_CREATE | os.O_EXCL

// readFile reads a file of the directory.
func (w *work) readFile(name string) ([]byte, error) {
	file, err := w.openFile(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// forest is the name of the file of what was joined.
func (w *work) forest() string { return fmt.Sprint(forestName, w.state.Bands) }

// removeForests removes all files of what was joined but one.
func (w *work) removeForests(but string) error {
	list, err := os.ReadDir(w.dir)
	for _, entry := range list {
		if name := entry.Name(); strings.HasPrefix(name, forestName) && name != but {
			err = errors.Join(err, os.Remove(w.path(name)))
		}
	}
	return err
}

// due reports whether it is time to save.
func (w *work) due() bool { return w != nil && !time.Now().Before(w.next) }

// add notes that a record was added.
func (w *work) add(record []byte) {
	if w != nil {
		_, _ = w.sum.Write(record)
	}
}

// syncFile flushes a file. Tests watch it.
var syncFile = (*os.File).Sync

// save saves a state, once flush has flushed what it counts. It does so in the background, one save at a time.
func (w *work) save(s state, flush func() error) error {
	if err := w.wait(); err != nil {
		return err
	}
	w.state, w.next = s, time.Now().Add(w.every)
	saving, forest := make(chan error, 1), w.forest()
	w.saving = saving
	go func() {
		err := flush()
		if err == nil {
			err = w.replace(s)
		}
		if err == nil {
			err = w.removeForests(forest)
		}
		saving <- err
	}()
	return nil
}

// wait waits for the save under way.
func (w *work) wait() error {
	if w == nil || w.saving == nil {
		return nil
	}
	err := <-w.saving
	w.saving = nil
	if err != nil {
		return w.failed(err)
	}
	return nil
}

// replace replaces the state.
func (w *work) replace(s state) error {
	raw, err := s.encode()
	if err != nil {
		return err
	}
	const next = stateName + ".new"
	file, err := w.openFile(next, anew)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	if err = errors.Join(err, syncFile(file), file.Close(), terminal.SyncFolder(w.dir)); err != nil { // the directory for the other new files
		return err
	}
	return errors.Join(os.Rename(w.path(next), w.path(stateName)), terminal.SyncFolder(w.dir))
}

// close gives the directory back as it is.
func (w *work) close() {
	if w != nil {
		_ = w.wait()
		w.scratch.close()
	}
}

// loadRecords opens the file of records and adds those that are there.
func (c *Corpus) loadRecords(ctx context.Context) error {
	w, s := c.work, c.work.state
	flag := os.O_RDWR
	if s.Bytes == 0 {
		flag = anew
	}
	file, err := w.openFile(recordsName, flag)
	if errors.Is(err, fs.ErrNotExist) {
		return errDamaged
	}
	if err != nil {
		return err
	}
	w.files = append(w.files, file)
	if info, err := file.Stat(); err != nil || info.Size() < s.Bytes {
		return cmp.Or(err, errDamaged)
	}
	if err := file.Truncate(s.Bytes); err != nil {
		return err
	}
	c.records.scratch, c.records.file, c.records.written = &w.scratch, file, s.Bytes
	in := &io.LimitedReader{R: bufio.NewReaderSize(io.NewSectionReader(file, 0, s.Bytes), writeSize), N: s.Bytes}
	for c.documents < s.Documents {
		if c.documents%looksEvery == 0 {
			c.progress("reading what was done", c.documents, s.Documents)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		record, sketched, err := readRecord(in, c.record)
		if err != nil {
			return err
		}
		c.record = record
		names := record[sketched:]
		if err := c.addRecord(record, sketched, cutText(&names)); err != nil {
			return err
		}
	}
	if in.N != 0 || s.Bytes > 0 && w.sum.Sum64() != s.Sum {
		return errDamaged
	}
	w.next = time.Now().Add(w.every)
	return nil
}

// readRecord reads the next record into room, which may grow. sketched is the size of the sketch in it. The names follow.
func readRecord(in *io.LimitedReader, room []byte) (record []byte, sketched int, err error) {
	take := func(n uint64) {
		if err == nil && n > uint64(in.N) {
			err = errDamaged
		}
		if err != nil {
			return
		}
		from := len(record)
		record = slices.Grow(record, int(n))[:from+int(n)]
		_, err = io.ReadFull(in, record[from:])
	}
	record = room[:0]
	take(headerSize)
	if err != nil {
		return record, 0, err
	}
	take(uint64(record[15]) + uint64(binary.LittleEndian.Uint16(record[24:])))
	sketched = len(record)
	for range namesInRecord {
		from, length := len(record), uint64(0)
		for width := 0; width <= 0 && err == nil; {
			take(1)
			if length, width = binary.Uvarint(record[from:]); width < 0 {
				err = errDamaged
			}
		}
		take(length)
	}
	return record, sketched, err
}

// Save saves the documents that were added if a save is due, or if last is true. It saves note with them, as JSON: the caller gets it back from
// [Corpus.Resume]. Without Resume it does nothing.
func (c *Corpus) Save(note func() any, last bool) error {
	if c.work == nil || !last && !c.work.due() {
		return nil
	}
	raw, err := json.Marshal(note())
	if err != nil {
		return err
	}
	if err := c.records.write(); err != nil {
		return err
	}
	s, file := c.work.state, c.records.file
	s.Documents, s.Bytes, s.Sum, s.Note = c.documents, c.records.written, c.work.sum.Sum64(), raw
	return c.work.save(s, func() error { return syncFile(file) })
}

// saveForest saves what the first bands joined, if it is time to.
func (c *Corpus) saveForest(bands int) error {
	w := c.work
	if !w.due() {
		return nil
	}
	if err := w.wait(); err != nil {
		return err
	}
	s := w.state
	s.Bands, s.CutBuckets, s.CutTexts = bands, c.left.CutBuckets, c.left.CutTexts
	file, err := w.openFile(fmt.Sprint(forestName, bands), anew)
	if err != nil {
		return w.failed(err)
	}
	sum := xxhash.New()
	out := bufio.NewWriterSize(io.MultiWriter(file, sum), writeSize)
	for i := range c.forest {
		_, _ = out.Write(binary.LittleEndian.AppendUint32(out.AvailableBuffer(), c.forest[i].Load())) // Flush has the error
	}
	if err := out.Flush(); err != nil {
		return w.failed(errors.Join(err, file.Close()))
	}
	s.Forest = sum.Sum64()
	return w.save(s, func() error { return errors.Join(syncFile(file), file.Close()) })
}

// loadForest joins what was joined before.
func (c *Corpus) loadForest() error {
	if c.work == nil || c.work.state.Bands == 0 {
		return nil
	}
	s := c.work.state
	file, err := c.work.openFile(c.work.forest(), os.O_RDONLY)
	if err != nil {
		return c.work.failed(err)
	}
	defer file.Close()
	sum := xxhash.New()
	in := bufio.NewReaderSize(io.TeeReader(file, sum), writeSize)
	var raw [4]byte
	for i := range c.forest {
		_, _ = io.ReadFull(in, raw[:]) // the hash tells
		c.forest[i].Store(min(binary.LittleEndian.Uint32(raw[:]), uint32(i)))
	}
	if sum.Sum64() != s.Forest || s.Bands > c.options.Rule.Bands {
		return c.work.failed(errDamaged)
	}
	c.left.CutBuckets, c.left.CutTexts = s.CutBuckets, s.CutTexts
	return nil
}

// bandsDone is how many bands were gone through before.
func (c *Corpus) bandsDone() int {
	if c.work == nil {
		return 0
	}
	return c.work.state.Bands
}

// RemoveSaved removes what was saved, because all is done. The lock stays, so that two runs never lock different files.
func (c *Corpus) RemoveSaved() error {
	w := c.work
	if w == nil {
		return nil
	}
	err := w.wait()
	for _, name := range []string{stateName, recordsName, stateName + ".new"} { // the state first: without it nothing else counts
		if failed := os.Remove(w.path(name)); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, w.removeForests(""))
}
