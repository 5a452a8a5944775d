package adapters

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// Header is an HTTP header with canonical keys, convertible to and from http.Header.
type Header = map[string][]string

// Request is an HTTP request as far as a dialect looks at it.
type Request struct {
	Method string
	// Host is the host and port under which the client addressed us; empty where it did not say.
	Host string
	// Path is the escaped path as the client sent it; RawQuery the query as sent, without the question mark.
	Path, RawQuery string
	// Header is read and never changed; a dialect that needs another header makes a copy.
	Header Header
	Body   []byte

	// The rest is set in requests for a search that a dialect writes itself: what it asks for.

	// Hits is how many hits it asks for at most.
	Hits int
	// Ahead says that it only fetches what the search is made from (a template); the search itself comes next.
	Ahead bool
	// JudgingOnly says that it asks for no more than what hits are judged by. Its reply is best sent uncompressed.
	JudgingOnly bool
	// Raw says that the result is handed on as it comes, and not read.
	Raw bool
	// Own says that this is the client's own search. The time for collapsing does not bound it.
	Own bool
	// For is the dialect's own note of what it asks for, for [Wire.Split].
	For any
}

// MaxAtOnce bounds how many requests for one search are under way at a time. (More readings at once than an engine has idle cores take
// no less time, and each searches anew.)
const MaxAtOnce = 4

// Reply is an HTTP reply that was read whole. Body is decoded; Header still names the coding in which the client gets it.
type Reply struct {
	Status int
	Header Header
	Body   []byte
	// Parsed is the dialect's own reading of the body, kept from [Wire.Split].
	Parsed any
}

// Kind is what a request means to us.
type Kind int

// The kinds of request.
const (
	// KindPass goes through as it came.
	KindPass Kind = iota
	// KindWrite carries documents.
	KindWrite
	// KindRead answers documents or mappings that may hold our fields.
	KindRead
	// KindSearch answers a ranked list.
	KindSearch
)

// String returns the kind as logs and metrics name it.
func (k Kind) String() string { return [...]string{"pass", "write", "read", "search"}[k] }

// Class is what a dialect sees in a request's method, path and query.
type Class struct {
	Kind Kind
	// Target is the index, alias or pattern named in the path, unescaped; empty where the body names it or nothing does.
	Target string
	// ID is the id of the document that the path of a write names; empty where the body does, or the engine makes one up.
	ID string
	// Format is the format of a write's body where that is not JSON, as the documentation names it.
	Format string
	// Form is the dialect's own name of the endpoint. It means nothing to anyone else.
	Form string
	// Params are the parameters of the query, as the engine reads them.
	Params []Param
	// MayLeaveOut says that operations of a write can be left out: its reply comes in a form that can be completed.
	MayLeaveOut bool
	// CleanWrite says that the reply of this write can hold our fields and goes through CleanReply.
	CleanWrite bool
	// Address, if not empty, is what CleanReply puts in place of the nodes' addresses in the reply to a read: it is to see every such reply.
	Address string
	// Elsewhere says that the body can name other indices than Target.
	Elsewhere bool
	// Verbatim says that the engine reads the body as it is, whatever the headers say of its encoding and type.
	Verbatim bool
	// Hasty says that the engine may answer before it has read the body, and then never again on that connection.
	Hasty bool
	// NamesOurs says that the client names a field of ours in its request: then it is shown.
	NamesOurs bool
	// Reason, if not empty, says why a read that is a search is left alone.
	Reason Reason
	// Alters says that a request may make, change or drop an index, alias or template. A write that does brings a schema: a field of
	// ours that its body names is shown.
	Alters bool
	// NewIndex is the name for which a request makes an index, whose mapping gets our field; empty if it makes none.
	NewIndex string
}

// Dialect is the pure half of an adapter. All methods are safe for concurrent use and keep nothing of their arguments.
type Dialect interface {
	// Classify looks at method, path and query alone.
	Classify(r *Request) Class
	// EnrichWrite copies the body of a Write from src to dst, one operation in memory at a time, with the documents enriched as long as that
	// adds no more than growth bytes. It returns what parses the reply, nil where no operation can be left out of the write.
	// What it can't parse is copied unchanged. The exception is a body in which the engine could find a value of the client's for one of our
	// fields: for that it returns a [Refusal], before it has written anything. All other errors are those of src and dst.
	EnrichWrite(c Class, dst io.Writer, src io.Reader, w rule.Writing, growth int64) (Replies, error)
	// CleanReply copies a reply of the class from src to dst less our fields. Whatever it can't parse is copied
	// unchanged. It returns only errors of src and dst.
	CleanReply(c Class, dst io.Writer, src io.Reader) error
	// ParseSearch parses a search with its body.
	ParseSearch(c Class, r *Request, p Plan) *Searches
	// Targets returns what the searches of such a request are sent to, whatever is wrong with its controls.
	Targets(c Class, r *Request) iter.Seq[string]
	// ErrorReply returns an error of the sidecar's own to a request, in the engine's shape.
	ErrorReply(r *Request, status int, reason string) *Reply
}

// Errors of a search that is collapsed.
var (
	// ErrRefused: the engine refused for a reason that is not ours (credentials, load, its own failure); its reply is the answer.
	ErrRefused = errors.New("the engine refused the search")
	// ErrWidened: the engine refused what we asked; it may grant what the client asked.
	ErrWidened = errors.New("the engine refused the widened search")
	// ErrNotUnderstood: a reply is not of the form that the dialect knows.
	ErrNotUnderstood = errors.New("the reply is not understood")
)

// Refusal is the error of a write that must not go on to the engine. Its text says why and what the client can do.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return string(r) }

// Alone is the error of a search of which it is found out on the way that it is to be left alone for what it is.
type Alone struct {
	Reason Reason
	// Searched says that the engine has searched for it already.
	Searched bool
}

// Error implements error.
func (a Alone) Error() string { return "the search is left alone: " + string(a.Reason) }

// ReasonOf returns the reason for which an error leaves the search alone.
func ReasonOf(err error) Reason {
	if alone, ok := errors.AsType[Alone](err); ok {
		return alone.Reason
	}
	if IsLate(err) {
		return ReasonDeadline
	}
	return ReasonNotUnderstood
}

// NotUnderstood returns err as an [ErrNotUnderstood].
func NotUnderstood(err error) error { return fmt.Errorf("%w: %w", ErrNotUnderstood, err) }

// Answer is what the client gets.
type Answer struct {
	// Reply has no Body: that is the Pieces.
	Reply
	Pieces Pieces
	// Outcomes has one entry for each search of the request.
	Outcomes []Outcome
	// After, if not nil, is a last request for which the client does not wait: it gives back what the searches kept open in the engine.
	After *Request
}

// Outcome is what was done with one search.
type Outcome struct {
	// Target is what the search was sent to, as in [Plan.Scope].
	Target string
	// Reason, if not empty, says why the search was left alone; the numbers are then zero.
	Reason Reason
	// Again says that it was asked a second time, as the client wrote it, because collapsing it failed.
	Again bool
	// Raw is the engine's total, or the ranks read where it gave none.
	Raw int
	// Stats are what the readings showed, Without how many of the hits had no sketch stored.
	rerank.Stats
	Without int
	// Sketches are those of the hits that were looked at.
	Sketches rule.Sketches
	// Exact says that Folded is final for the whole window.
	Exact bool
	// Rounds is how often the engine was asked; Window the ranks collapsed over.
	Rounds, Window int
	// DryRun says that the answer is the engine's own, and Folded what would have been folded.
	DryRun bool
	// CursorLost says that what earlier pages of a cursor showed was not known any more, so that the page was collapsed by itself.
	CursorLost bool
	NativeOutcome
}

// NativeOutcome is what came of having the engine collapse a search by the ids of clusters.
type NativeOutcome struct {
	// Native says that the engine collapsed the whole list itself; Read and Window are then zero.
	Native bool
	// Fell, if not empty, says why a search was collapsed at query time that was to be native. Tried says that the engine was asked in vain,
	// Unfit that this was for what is stored, which other searches of the target will find too.
	Fell         Reason
	Tried, Unfit bool
}
