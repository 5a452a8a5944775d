package adapters

import "github.com/neardup/sidecar/internal/rule"

// Standing is the document that stands for one whose operation is left out of a write.
type Standing struct {
	// Index is the concrete index that it is in.
	Index string
	// Stored is the document as a scan read it; nil where it is one of the same write, of which Entry is then the entry in the
	// reply.
	Stored *Stored
	Entry  []byte
	// Reply is what the engine answered to Fetcher.Fetch.
	Reply []byte
}

// Replies parses the engine's reply to a write, and puts together one with entries for operations that were left out.
type Replies interface {
	// Split returns the entries of a successful reply, one for each operation that was sent, and of each whether the engine
	// refused it.
	Split(reply []byte) (entries [][]byte, refused []bool, err error)
	// NoOp returns the entry of an operation that changes nothing, in the engine's own form for it.
	NoOp(o rule.Operation, of Standing) ([]byte, error)
	// Join returns the reply with these entries. Where nothing was sent, and so there is no reply, it is nil.
	Join(reply []byte, entries [][]byte) ([]byte, error)
	// Empty returns the status and the type of a successful reply where nothing was sent; an empty type is that of an error.
	Empty() (status int, contentType string)
}

// A Fetcher is a Replies whose NoOp needs the engine's answer to the request that Fetch returns for a document, as far as method and path go.
type Fetcher interface {
	Fetch(o rule.Operation, id string) *Request
}

// OneReply is the part of [Replies] to the writing of one document: the reply is its only entry.
type OneReply struct{}

// Split implements Replies.
func (OneReply) Split(reply []byte) ([][]byte, []bool, error) {
	return [][]byte{reply}, []bool{false}, nil
}

// Join implements Replies.
func (OneReply) Join(_ []byte, entries [][]byte) ([]byte, error) { return entries[0], nil }
