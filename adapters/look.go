package adapters

import "github.com/neardup/sidecar/internal/rule"

// What a person who looks at lists asks of an engine: which indices there are, and a search of the words that were typed. Each
// adapter has functions that make the requests and read the replies. None of them changes anything.

// Look is a search of typed words in one index, or of documents by their ids.
type Look struct {
	Index, Words string
	// IDs, if not nil, are the documents to find, in place of Words. The engine may find others too.
	IDs []string
	// Size is how many ranks are read.
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
}

// Listed is a concrete index and how many documents it holds, -1 where that is not told.
type Listed struct {
	Index
	Documents int
}
