package adapters

import (
	"bytes"
	"errors"

	"github.com/neardup/sidecar/internal/jsonedit"
)

// What is read and edited as bytes is in internal/jsonedit. These are its names for those who know it by this package.
type (
	Member = jsonedit.Member
	Cuts   = jsonedit.Cuts
	Long   = jsonedit.Long
)

// Reader is [jsonedit.Reader].
type Reader struct{ jsonedit.Reader }

// NewReader is [jsonedit.NewReader].
func NewReader(data []byte) Reader { return Reader{jsonedit.NewReader(data)} }

// CountNames has the names counted that may be those of fields of ours.
func (r *Reader) CountNames() { r.Reader.CountNames(FieldPrefix) }

const (
	MaxDocument = jsonedit.MaxDocument
	MaxEntered  = 128
)

var (
	ErrMalformed   = jsonedit.ErrMalformed
	Members        = jsonedit.Members
	Elements       = jsonedit.Elements
	Get            = jsonedit.Get
	Set            = jsonedit.Set
	Cut            = jsonedit.Cut
	Cleaned        = jsonedit.Cleaned
	CleanedInPlace = jsonedit.CleanedInPlace
	Strict         = jsonedit.Strict
	Shallow        = jsonedit.Shallow
	Text           = jsonedit.Text
	TextBytes      = jsonedit.TextBytes
	ValueText      = jsonedit.ValueText
	AppendString   = jsonedit.AppendString
)

// ManyMembers reports whether an object has more members than [jsonedit.FewMembers] takes.
func ManyMembers(data []byte) bool {
	_, err := jsonedit.FewMembers(data)
	return errors.Is(err, jsonedit.ErrTooMany)
}

// NamesOurs reports whether one of our fields is named anywhere in a text.
func NamesOurs[T string | []byte](text T) bool {
	for rest := []byte(text); ; {
		at := bytes.Index(rest, []byte(FieldPrefix))
		if at < 0 {
			return false
		}
		rest = rest[at+len(FieldPrefix):]
		for _, field := range [...]string{SketchField, BandsField, ClusterField} {
			if bytes.HasPrefix(rest, []byte(field[len(FieldPrefix):])) {
				return true
			}
		}
	}
}
