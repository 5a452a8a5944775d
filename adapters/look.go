package adapters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// What a person who looks at lists asks of an engine: which indices there are, and a search of the words that were typed or of a client's
// own. Each adapter has functions that make the requests and read the replies. None of them changes anything.

// Look is a search of typed words in one index, a client's own search of it, or one of documents by their ids.
type Look struct {
	Index, Words string
	// Search, if not nil, is a client's own search, in place of Words: see [Query].
	Search []byte
	// IDs, if not nil, are the documents to find, in place of Words. The engine may find others too. If LookFor refuses several, look up each alone.
	IDs []string
	// Size is how many ranks are read, from the first on. 0 reads the page that Search asks for, as its client would: Fields and Titles do not count.
	Size int
	// Header carries the credentials with which it is made.
	Header Header
	// Fields are the text fields to search in and to show, Titles further ones to show.
	Fields, Titles []string
	// Judged says that what hits are folded and chosen by is read too: our field and the Deciding ones.
	Judged   bool
	Deciding []rule.Deciding
}

// Looked is the list that a look found.
type Looked struct {
	// Total is the engine's count, -1 where it gave none.
	Total int
	Hits  []LookedHit
	// Doubting is that of a [rule.Judge] of the hits.
	Doubting bool
}

// LookedHit is a hit of a look.
type LookedHit struct {
	// Seen is what a [rule.Judge] takes, ID the document's own id and Document its JSON as far as it was read.
	rule.Seen
	Document []byte
	// Name is the concrete index, be it other than the one that rules are matched against.
	Name string
	// Score is a JSON number, nil where there is none.
	Score []byte
	// Folded are the hits that are listed as folded into this one, where a control asks for that.
	Folded []Named
}

// Named is the name of a document: its index, as in Name of a hit, and its id.
type Named struct{ Index, ID string }

// Listed is a concrete index and how many documents it holds, -1 where that is not told.
type Listed struct {
	Index
	Documents int
}

// Query is what a person searches for, or what a log holds of a search: words, or a client's own search.
type Query struct {
	Words string
	// Search, if not nil, counts in place of Words. It is the JSON body of a search, or for an engine of parameters these, as a JSON object or as a
	// query string. Controls of ours in it do not count.
	Search []byte
	// Index is the index that it was sent to, where a log says so.
	Index string
}

// Object returns an error that says what is wrong, and where, unless a text is a JSON object.
func Object(text []byte) error {
	if _, err := jsonedit.Members(text); err == nil {
		return nil
	}
	var value json.RawMessage
	if wrong, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &value)); ok {
		before := text[:max(min(int(wrong.Offset), len(text))-1, 0)]
		place := fmt.Sprint("column ", len(before)-bytes.LastIndexByte(before, '\n'))
		if bytes.IndexByte(text, '\n') >= 0 {
			place = fmt.Sprintf("line %d, %s", bytes.Count(before, []byte("\n"))+1, place)
		}
		what := wrong.Error()
		if int(wrong.Offset) >= len(text) && strings.HasPrefix(what, "unexpected end") {
			what = "it ends too early"
		}
		return fmt.Errorf("it is not valid JSON (%s: %s)", place, what)
	}
	return errors.New("it is not a JSON object: begin it with { and end it with }")
}

// Typed returns a line of words, which may be a JSON string.
func Typed(line string) string {
	var words string
	if json.Unmarshal([]byte(line), &words) != nil {
		return line
	}
	return words
}
