package rule

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/sketch"
)

// Field names of ours in the engine's documents. Every one begins with FieldPrefix.
const (
	FieldPrefix = "neardup_"
	// SketchField holds the stored form of the sketch. It is not indexed.
	SketchField = "neardup_sketch"
	// BandsField holds the sketch's band keys, whole numbers, indexed. It is there only for a rule with bands.
	BandsField = "neardup_bands"
	// ClusterField holds the id of the document's cluster, a short text, indexed. It is there only for a rule with clusters.
	ClusterField = "neardup_cluster"
)

// OurFields are the names of all our fields. A new one needs its constant and its place here, a member of [Ours] (append, Equal, OursOf), its
// declaration in store_prepare.go of each dialect and in schema.go of Typesense, and its line in docs/internals/formats.md. Nothing in a
// clean.go changes.
var OurFields = []string{SketchField, BandsField, ClusterField}

// Our reports whether a field name is one of ours. Dots at its end count for nothing, as Elasticsearch and OpenSearch have it.
func Our(field string) bool {
	if !strings.HasPrefix(field, FieldPrefix) {
		return false
	}
	return slices.Contains(OurFields, strings.TrimRight(field, "."))
}

// Ours is what our fields of a document hold. A zero member is a field that is not there.
type Ours struct {
	// Sketch is the stored form of its sketch.
	Sketch string
	// Bands are its band keys: see [Rule.BandKeys].
	Bands []int64
	// Cluster is the id of its cluster: see [Rule.ClusterID].
	Cluster string
}

// Equal reports whether two documents' fields hold the same.
func (o Ours) Equal(p Ours) bool {
	return o.Sketch == p.Sketch && o.Cluster == p.Cluster && slices.Equal(o.Bands, p.Bands)
}

// append appends the fields to an object's members, each with a comma in front. Of those that are not there the ones in null are null.
func (o Ours) append(dst []byte, null ...string) []byte {
	absent := func(field string) {
		if slices.Contains(null, field) {
			dst = append(dst, `,"`+field+`":null`...)
		}
	}
	if o.Sketch != "" {
		dst = jsonedit.AppendString(append(dst, `,"`+SketchField+`":`...), o.Sketch)
	} else {
		absent(SketchField)
	}
	for i, key := range o.Bands {
		if i == 0 {
			dst = append(dst, `,"`+BandsField+`":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, key, 10)
	}
	if len(o.Bands) > 0 {
		dst = append(dst, ']')
	} else {
		absent(BandsField)
	}
	if o.Cluster != "" {
		return jsonedit.AppendString(append(dst, `,"`+ClusterField+`":`...), o.Cluster)
	}
	absent(ClusterField)
	return dst
}

// Fields returns the fields as the members of an object, in JSON without the braces. Of those that are not there the ones in null are null.
func (o Ours) Fields(null ...string) []byte {
	list := o.append(make([]byte, 0, len(o.Sketch)+12*len(o.Bands)+len(o.Cluster)+80), null...) // no more than they take, but for some
	if len(list) > 0 {
		list = list[1:]
	}
	return list
}

// OursOf returns what our fields of a document's JSON hold. What is not of their form counts as not there.
func OursOf(document []byte) (o Ours) {
	members, err := jsonedit.Members(document)
	if err != nil {
		return o
	}
	o.Sketch, _ = jsonedit.Text(jsonedit.Get(members, SketchField))
	o.Cluster, _ = jsonedit.Text(jsonedit.Get(members, ClusterField))
	keys, _ := jsonedit.Elements(jsonedit.Get(members, BandsField))
	for _, key := range keys {
		n, err := strconv.ParseInt(string(key), 10, 64)
		if err != nil {
			return Ours{Sketch: o.Sketch, Cluster: o.Cluster}
		}
		o.Bands = append(o.Bands, n)
	}
	return o
}

// HasOurs reports whether a document's JSON has a value in a field of ours, whatever it is.
func HasOurs(document []byte) bool {
	members, err := jsonedit.Members(document)
	return err == nil && slices.ContainsFunc(members, func(m jsonedit.Member) bool { return Our(m.Key) && string(m.Value) != "null" })
}

// WithOurs returns the document's JSON with our fields set to these, without those that are not among them, and every other byte as
// it stands.
func WithOurs(document []byte, o Ours) ([]byte, error) {
	document, err := jsonedit.Cut(document, Our)
	list := o.Fields()
	if err != nil || len(list) == 0 {
		return document, err
	}
	members, err := jsonedit.Members(document)
	if err != nil {
		return nil, err
	}
	last := 0
	if len(members) > 0 {
		last = members[len(members)-1].End
	}
	return jsonedit.AppendMembers(nil, document, last, list), nil
}

// BandKeys returns the keys of a sketch's bands as they are stored, one for each of the rule's bands: numbers from -2^32 to -1, which
// both kinds of engine index as whole numbers, and for which nobody looks who searches all fields. None without bands, or where the
// sketch has none. Two sketches of one scheme that share a key are candidates and no more: of n documents, some n·Bands/2^32 share
// one with another by chance.
func (r *Rule) BandKeys(s *sketch.Sketch) []int64 {
	if r.Bands == 0 || s == nil {
		return nil
	}
	wide, ok := s.AppendBands(make([]uint64, 0, r.Bands), r.Bands, r.Rows)
	if !ok {
		return nil
	}
	keys := make([]int64, len(wide))
	for i, key := range wide {
		keys[i] = -1 - int64(key>>32)
	}
	return keys
}

// ChooseBands returns the bands and rows over so many positions by which all but one in a hundred pairs of the resemblance are found,
// with as many rows as that allows: more rows let fewer others through. Where none do, rows is 1.
func ChooseBands(positions int, threshold float64) (bands, rows int) {
	const found = 0.99
	for rows = min(positions, 16); rows > 1; rows-- {
		if sketch.Candidate(threshold, positions/rows, rows) >= found {
			break
		}
	}
	return positions / rows, rows
}

// ClusterMark is what cluster ids made under the rule begin with: four characters, the first one that no word begins with, that stand
// for all that decides what is in a cluster. An id with another mark was made under another threshold or scheme.
func (r *Rule) ClusterMark() string {
	text := strings.Join([]string{
		strconv.FormatUint(uint64(r.Sketcher.SchemeID()), 16), strconv.Itoa(int(r.Source())),
		strconv.FormatUint(math.Float64bits(r.Profile.Threshold), 16), strconv.Itoa(r.Profile.MinShingles), string(r.Profile.Measure),
		strconv.Itoa(r.Profile.MinWords), string(r.Profile.Numbers),
	}, "/")
	return "_" + idText(xxhash.Sum64String(text))[:3]
}

// ClusterID returns a cluster's id under the rule, of 17 characters. The number is the least fingerprint among the
// cluster's members; of a document that is alone its own, so that the same text always has the same id. A document without a text
// takes a number of its own: see [Rule.NumberOf].
func (r *Rule) ClusterID(number uint64) string { return r.ClusterMark() + idText(number) }

// NumberOf returns the number that a document without a text takes for its cluster, and by which one is set apart that has the text of others. It is a
// keyed hash of the id: an id that led to the number of somebody's text would put a document without a text in front of it, in native mode.
func (r *Rule) NumberOf(id string) uint64 {
	h := hmac.New(sha256.New, []byte(r.Sketcher.Scheme().Seed))
	_, _ = io.WriteString(h, id)
	return binary.BigEndian.Uint64(h.Sum(nil))
}

var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// idText returns a number as 13 characters, which sort as the numbers do.
func idText(number uint64) string {
	return idEncoding.EncodeToString(binary.BigEndian.AppendUint64(nil, number))
}

// OursFor returns what our fields of a stored document are to hold under the rule, and whether they do. A cluster that stands there
// with a right sketch and the rule's mark stays; else the document is alone in one.
func (r *Rule) OursFor(document []byte, id string) (want Ours, right bool) {
	computed, stored := r.Wanted(document)
	have := OursOf(document)
	fits := computed != nil && stored != nil && computed.Text == stored.Text
	if computed != nil {
		want.Sketch, want.Bands = computed.Text, r.BandKeys(&computed.Sketch)
	}
	if r.Clusters {
		if computed != nil {
			want.Cluster = r.ClusterID(computed.Fingerprint)
		} else {
			want.Cluster = r.ClusterID(r.NumberOf(id))
		}
		if strings.HasPrefix(have.Cluster, want.Cluster[:4]) && (fits || computed == nil) {
			want.Cluster = have.Cluster
		}
	}
	if want.Equal(Ours{}) {
		return want, !HasOurs(document)
	}
	return want, have.Equal(want)
}

// NamesOurs reports whether one of our fields is named anywhere in a text.
func NamesOurs[T string | []byte](text T) bool {
	all := []byte(text)
	return bytes.Contains(all, []byte(FieldPrefix)) && slices.ContainsFunc(OurFields, func(field string) bool {
		return bytes.Contains(all, []byte(field))
	})
}
