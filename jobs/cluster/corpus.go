package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/sketch"
)

// Algorithm is how near-duplicates are found.
type Algorithm string

// The algorithms: see the package's description.
const (
	Bands  Algorithm = "bands"
	Broder Algorithm = "broder"
	Exact  Algorithm = "exact"
)

// Algorithms are all of them, the default first.
var Algorithms = []Algorithm{Bands, Broder, Exact}

// AlgorithmFor returns the algorithm that fits the sketches of a scheme: Bands where they have any, else Broder.
func AlgorithmFor(s sketch.Scheme) Algorithm {
	if s.Family == sketch.MSmallest || s.Family == sketch.ZeroModM {
		return Broder
	}
	return Bands
}

const (
	// DefaultMemory is what Options.Memory is without a value, in bytes.
	DefaultMemory = 1 << 30
	// DefaultCommon is what Options.Common is without a value.
	DefaultCommon = 1000
	// MostDocuments is how many documents a corpus can hold.
	MostDocuments = math.MaxUint32 - 1
)

// Options say how documents are clustered. A zero member takes its default.
type Options struct {
	// Rule has the scheme of the sketches, says what near-duplicates are (Profile), and names clusters. Its Bands and Rows are
	// taken for Bands; where it has none, they are chosen for its threshold ([adapters.ChooseBands]).
	Rule      *rule.Rule
	Algorithm Algorithm
	// Memory is how many bytes are held at most of what grows with the texts: sketches, names, what is being sorted. Beyond that
	// there are some 24 bytes for each document, and what the caller holds.
	Memory int64
	// Common is in how many texts a shingle may occur for Broder to list the pairs of them.
	Common int
	// Dir is where temporary files are made; empty is the system's own place for them.
	Dir string
	// Decided are decided pairs of the documents.
	Decided []decided.Pair
	// SaveEvery is the least time between two saves, once [Corpus.Resume] was called: a save waits for the end of a batch of documents, or of some bands.
	SaveEvery time.Duration
	// Progress, if not nil, gets how far the work has come.
	Progress Progress
}

// Progress gets now and then what is being done and how much of it is done; of how much, or 0 where that is not known.
type Progress interface {
	Step(step string, done, of int)
}

// Document is one document of a corpus.
type Document struct {
	// ID names it. It need not be unique, but the order of documents that share one is undefined.
	ID string
	// Sketch is nil for a document without text, which is alone.
	Sketch *sketch.Sketch
	// Shingles is its set as sketch.Sketcher.Shingles returns it; needed where [Corpus.NeedsShingles]: without, it is joined by its
	// fingerprint alone.
	Shingles []uint64
	// Host is the host that its URL names, Cluster the cluster that is stored with it; either may be empty. They come back in
	// Member.
	Host, Cluster string
}

// Left counts what was left out of the comparison.
type Left struct {
	// Textless documents have no sketch.
	Textless int `json:"textless"`
	// CommonShingles are in more texts than Options.Common, CommonTexts at most; pairs that share these alone are not found.
	CommonShingles int `json:"common_shingles"`
	CommonTexts    int `json:"common_texts"`
	// CutBuckets had more than 50 texts, CutTexts of them altogether: not all of their pairs were looked at.
	CutBuckets int `json:"cut_buckets"`
	CutTexts   int `json:"cut_texts"`
}

// Corpus is a corpus that is clustered: documents are added, then numbered, joined, and visited. Its methods are called one after
// the other from one goroutine.
type Corpus struct {
	options Options
	scratch scratch
	masks   []uint64 // of ready values
	// records has one for each document in the order of their coming: see [reader.read].
	records spool
	record  []byte
	work    *work // nil unless the corpus saves its work
	// fingerprints sorts ⟨fingerprint, check of the payload and place⟩.
	fingerprints *sorter[pair]
	documents    int
	// number has each document's text, none where it has none; at each text's document.
	number, at []uint32
	// firsts has a bit for each document, set where it is its text's. To look for that in at takes as long as to read its sketch.
	firsts   []uint64
	forest   Forest
	left     Left
	spots    map[string]spot // of documents that decided pairs are about
	ordinary uint32          // numbers from here on are of documents that were parted from others of their text
	again    []uint32        // the numbers of these texts

	// Broder's: shingles sorts ⟨shingle, place⟩, sizes has the number of shingles of each document, and all is their sum.
	shingles *sorter[pair]
	sizes    []uint32
	all      int
	// surprise has for each text how improbable its set is, in bits: the sum of log2(texts / texts that have it) over its
	// elements, but for the common ones. For tags alone.
	surprise []float32
}

const none = math.MaxUint32

// New returns an empty corpus, or what is wrong with the options. It must be closed.
func New(o Options) (*Corpus, error) {
	if o.Memory <= 0 {
		o.Memory = DefaultMemory
	}
	if o.Common <= 0 {
		o.Common = DefaultCommon
	}
	if o.Algorithm == "" {
		o.Algorithm = AlgorithmFor(o.Rule.Sketcher.Scheme())
	}
	if o.Rule.Vector != "" {
		return nil, fmt.Errorf("the rule of %s compares vectors beside words, and groups are made of words alone: leave vector out of a copy of the configuration", o.Rule.Match)
	}
	c := &Corpus{options: o}
	c.expect(o.Decided)
	c.scratch.dir = o.Dir
	part := o.Memory / 8
	c.records = spool{scratch: &c.scratch, limit: int(5 * part)}
	c.fingerprints = newSorter[pair](&c.scratch, part, false)
	switch o.Algorithm {
	case Exact:
	case Bands:
		return c, c.chooseBands()
	case Broder:
		if !o.Rule.Sketcher.Scheme().Features.Sets() {
			return nil, errors.New("algorithm broder: ready values and vectors are not sets of shingles: use bands")
		}
		c.records.limit = int(3 * part)
		c.shingles = newSorter[pair](&c.scratch, 2*part, false)
	default:
		return nil, fmt.Errorf("algorithm %q is unknown: use bands, broder or exact", o.Algorithm)
	}
	return c, nil
}

// listed reports whether the sketches hold values of the set themselves (m_smallest, zero_mod_m).
func (c *Corpus) listed() bool { return AlgorithmFor(c.options.Rule.Sketcher.Scheme()) == Broder }

// NeedsShingles reports whether documents have to come with their shingles: Broder goes by them, unless the sketches list values.
func (c *Corpus) NeedsShingles() bool { return c.options.Algorithm == Broder && !c.listed() }

// progress passes on how far the work has come.
func (c *Corpus) progress(step string, done, of int) {
	if c.options.Progress != nil {
		c.options.Progress.Step(step, done, of)
	}
}

// Documents is how many were added.
func (c *Corpus) Documents() int { return c.documents }

// Left returns what was left out so far.
func (c *Corpus) Left() Left { return c.left }

// Close gives memory and files back. What was saved stays: see [Corpus.Resume].
func (c *Corpus) Close() {
	c.scratch.close()
	c.work.close()
}

// Add adds a document, of which it keeps nothing.
func (c *Corpus) Add(d Document) error {
	if c.documents >= MostDocuments {
		return fmt.Errorf("more than %d documents: cluster them in parts", uint64(MostDocuments))
	}
	var k sketch.Sketch
	if d.Sketch == nil {
		k.Fingerprint = c.options.Rule.NumberOf(d.ID)
	} else if k = *d.Sketch; k.Scheme != c.options.Rule.Sketcher.SchemeID() || k.Shingles == 0 {
		return fmt.Errorf("document %s: its sketch is of another scheme", d.ID)
	} else if c.options.Algorithm == Exact {
		k.Payload = nil
	}
	r := binary.LittleEndian.AppendUint64(c.record[:0], k.Fingerprint)
	r = binary.LittleEndian.AppendUint32(r, k.Shingles)
	r = append(r, byte(k.Form), k.Bits, 0)
	if k.Cut {
		r[len(r)-1] = 1
	}
	r = append(r, byte(len(k.Topics)))
	r = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(r, k.Words), k.Numbers)
	r = binary.LittleEndian.AppendUint16(r, uint16(len(k.Payload)))
	r = append(append(r, k.Topics...), k.Payload...)
	sketched := len(r)
	for _, text := range [namesInRecord]string{d.ID, d.Host, d.Cluster} {
		r = append(binary.AppendUvarint(r, uint64(len(text))), text...)
	}
	c.record = r
	if err := c.addRecord(r, sketched, d.ID); err != nil || c.options.Algorithm != Broder {
		return err
	}
	return c.addSet(&d, uint64(c.documents-1))
}

// addRecord adds the record of a document. sketched is the size of the sketch in it. The names follow.
func (c *Corpus) addRecord(record []byte, sketched int, id string) error {
	place, fingerprint := uint64(c.documents), binary.LittleEndian.Uint64(record)
	if binary.LittleEndian.Uint32(record[8:]) == 0 { // no shingles
		c.left.Textless++
	} else {
		c.notice(id, fingerprint, place)
		if err := c.fingerprints.add(pair{fingerprint, xxhash.Sum64(record[:sketched])&^math.MaxUint32 | place}); err != nil {
			return err
		}
	}
	c.documents++
	c.work.add(record)
	return c.records.add(record)
}

// addSet keeps the set of a document for Broder.
func (c *Corpus) addSet(d *Document, place uint64) error {
	set := d.Shingles
	if d.Sketch == nil {
		set = nil
	} else if c.listed() {
		set = values(d.Sketch.Payload)
	} else if len(set) > 0 && len(set) != int(d.Sketch.Shingles) {
		return fmt.Errorf("document %s: came with %d shingles, its sketch says %d", d.ID, len(set), d.Sketch.Shingles)
	}
	c.sizes, c.all = append(c.sizes, uint32(len(set))), c.all+len(set)
	for _, shingle := range set {
		if err := c.shingles.add(pair{shingle, place}); err != nil {
			return err
		}
	}
	return nil
}

// values returns the hashes of a payload that lists them.
func values(payload []byte) []uint64 {
	list := make([]uint64, len(payload)/8)
	for i := range list {
		list[i] = binary.BigEndian.Uint64(payload[8*i:])
	}
	return list
}

// Number ends the adding: it joins the documents of equal text and numbers the texts in the order of their fingerprints.
func (c *Corpus) Number(ctx context.Context) error {
	if err := c.records.seal(); err != nil {
		return err
	}
	c.progress("sorting fingerprints", 0, 0)
	c.number = make([]uint32, c.documents)
	for i := range c.number {
		c.number[i] = none
	}
	c.at = make([]uint32, 0, c.documents-c.left.Textless)
	last := uint64(0)
	err := c.fingerprints.each(ctx, func(p pair) error {
		place := uint32(p[1])
		if len(c.at) == 0 || p[0] != last {
			c.at = append(c.at, place)
		}
		last = p[0]
		c.number[place] = uint32(len(c.at) - 1)
		return nil
	})
	c.fingerprints = nil
	if err != nil {
		return err
	}
	if err := c.partTexts(); err != nil {
		return err
	}
	c.firsts = make([]uint64, (c.documents+63)/64)
	for number, document := range c.at {
		if c.number[document] == uint32(number) {
			c.firsts[document/64] |= 1 << (document % 64)
		}
	}
	c.forest = NewForest(len(c.at))
	for i, number := range c.again {
		c.forest.Join(c.ordinary+uint32(i), number)
	}
	return c.loadForest()
}

// Cluster numbers the texts and joins near-duplicates by the algorithm of the options.
func (c *Corpus) Cluster(ctx context.Context) error {
	if err := c.Number(ctx); err != nil {
		return err
	}
	var err error
	switch c.options.Algorithm {
	case Bands:
		err = c.joinBands(ctx)
	case Broder:
		err = c.joinShared(ctx)
	}
	if err != nil {
		return err
	}
	return c.decide(ctx)
}
