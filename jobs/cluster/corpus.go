package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/cespare/xxhash/v2"

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
	// MostName is how many bytes the id, the host and the cluster of a document may have together.
	MostName = 1 << 16
)

// Options say how documents are clustered. A zero member takes its default.
type Options struct {
	// Rule has the scheme of the sketches, says what near-duplicates are (Profile), and names clusters. Its Bands and Rows are
	// taken for Bands; where it has none, they are chosen for its threshold ([adapters.ChooseBands]).
	Rule      *rule.Rule
	Algorithm Algorithm
	// Memory is how many bytes are held at most of what grows with the texts: sketches, names, what is being sorted. Beyond that
	// there are some 40 bytes for each document, and what the caller holds.
	Memory int64
	// Common is in how many texts a shingle may occur for Broder to list the pairs of them.
	Common int
	// Dir is where temporary files are made; empty is the system's own place for them.
	Dir string
	// Progress, if not nil, is told how far the work has come.
	Progress Progress
}

// Progress is told now and then what is being done and how much of it is; of how much, or 0 where that is not known.
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
// the other from one goroutine, but for those that say otherwise.
type Corpus struct {
	options Options
	scratch scratch
	recordShape
	shingleSets
	// sketches has a record for each document in the order of their coming, names its id, host and cluster. offsets is where each
	// record stands, where they differ in length.
	sketches, names *spool
	offsets         []int64
	// fingerprints sorts ⟨fingerprint, check of the payload and place⟩.
	fingerprints *sorter
	record       []byte
	documents    int
	// number has each document's text, none where it has none; at each text's document.
	number, at []uint32
	forest     Forest
	left       Left
}

// recordShape is what follows from the scheme.
type recordShape struct {
	form sketch.Form
	bits uint8
	// stride is the length of a record of sketches, 0 where they differ; size is the bytes of a payload where they do not.
	stride, size int
	masks        []uint64 // of ready values
}

// shingleSets is what Broder goes by.
type shingleSets struct {
	// shingles sorts ⟨shingle, place⟩.
	shingles *sorter
	// sizes has the number of shingles of each document, and all is their sum.
	sizes []uint32
	all   int
	// surprise has for each text how improbable its set is, in bits: the sum of log2(texts / texts that have it) over its
	// elements, but for the common ones. For tags alone.
	surprise []float32
}

const (
	headerSize = 24
	none       = math.MaxUint32
	// recordsInChunk is how many records of one length a chunk of sketches has.
	recordsInChunk = 1 << 12
	// chunkSize is how long a chunk is where records differ in length: at least as long as the longest.
	chunkSize = 1 << 19
)

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
	c := &Corpus{options: o}
	c.scratch.dir = o.Dir
	if err := c.shape(o.Rule.Sketcher.Scheme()); err != nil {
		return nil, err
	}
	chunk, part := chunkSize, o.Memory/8
	if c.stride > 0 {
		chunk = c.stride * recordsInChunk
	}
	held := 4 * part
	if c.options.Algorithm == Broder {
		held = 2 * part
		c.shingles = newSorter(&c.scratch, 2*part, false)
	}
	c.sketches, c.names = newSpool(&c.scratch, chunk, held), newSpool(&c.scratch, chunkSize, part)
	c.fingerprints = newSorter(&c.scratch, part, false)
	return c, nil
}

// shape sets what follows from the scheme.
func (c *Corpus) shape(s sketch.Scheme) error {
	c.form, c.bits, c.size = sketch.Positions, uint8(s.Bits), s.Positions*s.Bits/8
	lists := false
	switch s.Family {
	case sketch.MSmallest:
		c.form, c.bits, lists = sketch.Values, 64, true
	case sketch.ZeroModM:
		c.form, c.bits, lists = sketch.Sample, 64, true
	case sketch.SimHash:
		c.form, c.bits, c.size = sketch.Sides, 1, s.Positions/8
	case sketch.Hamming:
		c.form, c.bits, c.size = sketch.Ready, 1, 8
	}
	if c.options.Algorithm == Exact {
		lists, c.size = false, 0
	}
	c.stride = headerSize + c.size
	if lists {
		c.stride = 0
	}
	switch c.options.Algorithm {
	case Exact:
	case Bands:
		if lists {
			return fmt.Errorf("algorithm bands: sketches of family %s have no bands: use broder, which goes by their values", s.Family)
		}
		return c.chooseBands()
	case Broder:
		if s.Features == sketch.Value64 {
			return errors.New("algorithm broder: ready values are no sets of shingles: use bands")
		}
	default:
		return fmt.Errorf("algorithm %q is unknown: use bands, broder or exact", c.options.Algorithm)
	}
	return nil
}

// NeedsShingles reports whether documents have to come with their shingles: Broder goes by them, unless the sketches hold values
// of the set themselves (m_smallest, zero_mod_m).
func (c *Corpus) NeedsShingles() bool { return c.options.Algorithm == Broder && c.stride > 0 }

// progress tells how far the work has come.
func (c *Corpus) progress(step string, done, of int) {
	if c.options.Progress != nil {
		c.options.Progress.Step(step, done, of)
	}
}

// Documents is how many were added.
func (c *Corpus) Documents() int { return c.documents }

// Left returns what was left out so far.
func (c *Corpus) Left() Left { return c.left }

// Close gives memory and files back.
func (c *Corpus) Close() { c.scratch.close() }

// Add adds a document, of which it keeps nothing.
func (c *Corpus) Add(d Document) error {
	place := uint64(c.documents)
	if place >= MostDocuments {
		return fmt.Errorf("more than %d documents: cluster them in parts", uint64(MostDocuments))
	}
	if len(d.ID)+len(d.Host)+len(d.Cluster) > MostName {
		return fmt.Errorf("document %.40s…: its id, host and cluster have more than %d bytes", d.ID, MostName)
	}
	name := c.record[:0]
	for _, text := range []string{d.ID, d.Host, d.Cluster} {
		name = append(binary.AppendUvarint(name, uint64(len(text))), text...)
	}
	at, err := c.names.add(name)
	if err != nil {
		return err
	}
	named := at<<lengthBits | int64(len(name))
	r := c.record[:0]
	if s := d.Sketch; s == nil {
		c.left.Textless++
		r = appendHeader(r, xxhash.Sum64String(d.ID), named, 0, 0, flagTextless)
	} else {
		if err := c.fits(d.ID, s); err != nil {
			return err
		}
		flags, payload := byte(0), s.Payload
		if s.Cut {
			flags = flagCut
		}
		if c.options.Algorithm == Exact {
			payload = nil
		}
		r = append(appendHeader(r, s.Fingerprint, named, s.Shingles, len(payload), flags), payload...)
		check := xxhash.Sum64(r[16:])
		if err := c.fingerprints.add(s.Fingerprint, check&^math.MaxUint32|place); err != nil {
			return err
		}
	}
	if err := c.keep(&d, r); err != nil {
		return err
	}
	c.documents++
	return nil
}

const (
	flagTextless = 1
	flagCut      = 2
	// lengthBits is how many bits hold the length of a document's names, behind their place.
	lengthBits = 17
)

func appendHeader(r []byte, fingerprint uint64, named int64, shingles uint32, length int, flags byte) []byte {
	r = binary.LittleEndian.AppendUint64(r, fingerprint)
	r = binary.LittleEndian.AppendUint64(r, uint64(named))
	r = binary.LittleEndian.AppendUint32(r, shingles)
	r = binary.LittleEndian.AppendUint16(r, uint16(length))
	return append(r, flags, 0)
}

// fits returns an error for a sketch of another scheme.
func (c *Corpus) fits(id string, s *sketch.Sketch) error {
	if s.Scheme != c.options.Rule.Sketcher.SchemeID() || s.Form != c.form || s.Bits != c.bits || s.Shingles == 0 {
		return fmt.Errorf("document %s: its sketch is of another scheme", id)
	}
	if c.options.Algorithm != Exact && c.stride > 0 && len(s.Payload) != c.size {
		return fmt.Errorf("document %s: its sketch has %d bytes, those of the scheme %d", id, len(s.Payload), c.size)
	}
	return nil
}

// keep stores a document's record, and for Broder its set.
func (c *Corpus) keep(d *Document, r []byte) error {
	if c.stride > 0 && len(r) < c.stride {
		r = append(r, make([]byte, c.stride-len(r))...)
	}
	c.record = r
	at, err := c.sketches.add(r)
	if err != nil {
		return err
	}
	if c.stride == 0 {
		c.offsets = append(c.offsets, at)
	}
	if c.options.Algorithm != Broder {
		return nil
	}
	set := d.Shingles
	if d.Sketch == nil {
		set = nil
	} else if c.stride == 0 {
		set = values(d.Sketch.Payload)
	} else if len(set) > 0 && len(set) != int(d.Sketch.Shingles) {
		return fmt.Errorf("document %s: came with %d shingles, its sketch says %d", d.ID, len(set), d.Sketch.Shingles)
	}
	c.sizes, c.all = append(c.sizes, uint32(len(set))), c.all+len(set)
	for _, shingle := range set {
		if err := c.shingles.add(shingle, uint64(c.documents)); err != nil {
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
	if err := errors.Join(c.sketches.seal(), c.names.seal()); err != nil {
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
		place := uint32(p.lo)
		if len(c.at) == 0 || p.hi != last {
			c.at = append(c.at, place)
		}
		last = p.hi
		c.number[place] = uint32(len(c.at) - 1)
		return nil
	})
	c.fingerprints = nil
	if err != nil {
		return err
	}
	c.forest = NewForest(len(c.at))
	return nil
}

// Cluster numbers the texts and joins near-duplicates by the algorithm of the options.
func (c *Corpus) Cluster(ctx context.Context) error {
	if err := c.Number(ctx); err != nil {
		return err
	}
	switch c.options.Algorithm {
	case Bands:
		return c.joinBands(ctx)
	case Broder:
		return c.joinShared(ctx)
	}
	return nil
}
