package adapters

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// This file is what only some searches need, and the errors of all.

// Ahead is what has to be asked before it is known what is searched for.
type Ahead interface {
	// Request is what is asked.
	Request() *Request
	// Searches returns what follows from the reply. Its error is [ErrRefused], [ErrWidened] or an [Alone], or says what is not understood.
	Searches(reply *Reply) (*Searches, error)
}

// Neighbours says how many nearest neighbours are looked for.
type Neighbours struct {
	// Raised, never less than the client's own number, is for how many all readings but the client's own look, so that all pages are cut from one list.
	Raised int
	// Mixed says that the list holds other hits too, so that it does not end with their number.
	Mixed bool
}

// Envelope is what the client's reply has around the results of its searches.
type Envelope interface {
	// Body returns the body of the client's reply, given one of the engine's.
	Body(reply *Reply, results []Pieces) (Pieces, error)
}

// Decliner is a Wire whose engine can decline a single search in a reply that is a success.
type Decliner interface {
	// Declined returns the reply to the client, in the form in which the engine declines a single search.
	Declined(reply *Reply, d *Declined) *Reply
}

// Declined is the error of a result in which the engine declines a query.
type Declined struct {
	Status int
	// Reason is the engine's own text.
	Reason string
	// Final says that it would decline the client's own search too.
	Final bool
	// Most, if above 0, is the largest page that the engine grants where it declines one for its size.
	Most int
	// Raw is the result.
	Raw []byte
}

// Error implements error.
func (d *Declined) Error() string { return "the engine declines the search: " + d.Reason }

// HTTPStatus is for [StatusOf].
func (d *Declined) HTTPStatus() int { return d.Status }

// ErrMoved: the list changed between two readings, or between two parts of one.
var ErrMoved = errors.New("the list moved while it was read")

// Group is what the client gets to see of a hit's group: its Label, nil where that is not asked for, and the hits that are folded into the hit, where
// [Scope].Expand asks for them. Numbers and reasons are JSON.
type Group struct {
	Label  *Label
	Folded []Folded
	// Exact says that no more hits of the list can fold into this one.
	Exact bool
	// Why, if not nil, says why the hit is shown. A further member of a group that is shown has Beside in its place: how far it agrees with the
	// leader.
	Why, Beside []byte
}

// Label says which group a hit belongs to.
type Label struct {
	// ID is the id of its leader's cluster where that is stored, or else one of the leader: see [rule.Judge.GroupID].
	ID string
	// Size is how many hits of the group there are, 0 where that is not known. Exact says that no more can come.
	Size  int
	Exact bool
	// Agreement is the lowest one of a member with the leader, nil where nothing was compared.
	Agreement []byte
}

// Members returns the label as the members of an object, in JSON without the braces.
func (l *Label) Members() []byte {
	out := jsonedit.AppendString([]byte(`"group":`), l.ID)
	if l.Size > 0 {
		out = strconv.AppendBool(append(strconv.AppendInt(append(out, `,"size":`...), int64(l.Size), 10), `,"exact":`...), l.Exact)
	}
	if l.Agreement != nil {
		out = append(append(out, `,"agreement":`...), l.Agreement...)
	}
	return out
}

// Folded is a folded hit.
type Folded struct {
	// Judged is the hit as it was judged, Source as the client wants hits: nil unless it is to be shown so.
	Judged, Source *rule.Seen
	// Agreement is that with the hit that it folds into. Why, if not nil, says more about it.
	Agreement, Why []byte
}

// Native has the engine collapse a search itself, by the ids of clusters.
type Native interface {
	// Natively returns the requests that have the engine do so.
	Natively() ([]*Request, error)
	// NativePage reads the replies. Its error is [ErrUnclustered], [ErrMoved], a [Declined], an [Alone] or says what is not understood.
	NativePage(replies []*Reply) (*NativePage, error)
}

// NativePage is a page that the engine has collapsed.
type NativePage struct {
	// Result is what the client gets.
	Result []byte
	// Raw is how many hits there are, Shown how many are left of them. Exact says that both are exact.
	Raw, Shown int
	Exact      bool
	// Counts says what facets count where they are to count groups, and can.
	Counts Counts
}

// NativeOutcome says how it went to have the engine collapse a search by the ids of clusters.
type NativeOutcome struct {
	// Native says that the engine collapsed the whole list itself; Read and Window are then zero.
	Native bool
	// Fell, if not empty, says why a search was collapsed at query time that was to be native. Tried says that the engine was asked in vain,
	// Unfit that this was for what is stored, which other searches of the target will find too. Costly says that it was refused while groups
	// were to be counted, which can be too much where to collapse is not.
	Fell                 Reason
	Tried, Unfit, Costly bool
}

// Counting has the engine compute the client's facets over the documents that a collapsed list shows: see [Reading.Counts].
type Counting interface {
	// WithCounts returns the result that the client gets with the facets of a reading in place of its own.
	WithCounts(result []byte, counts *Listing) ([]byte, error)
}

// Counts says what the facets of a reply count, where the client asked them to count groups.
type Counts int

const (
	// CountsUnasked: the client did not ask, or the search has no facets.
	CountsUnasked Counts = iota
	// CountsExact: each group once.
	CountsExact
	// CountsApproximate: the engine estimated how many groups there are.
	CountsApproximate
	// CountsWindow: the groups of the window alone, since the list goes on behind it.
	CountsWindow
	// CountsEngine: all hits.
	CountsEngine
)

// Count notes whether the search's facets count groups, which c does: if the client wants that, and it can be done. It returns why the search is left
// alone, or nothing.
func (a *Asked) Count(c Counting, wanted, can bool) Reason {
	switch {
	case can:
		a.Counting = c
	case wanted && a.Size == 0:
		return ReasonUncountable
	case a.Size == 0:
		return ReasonSizeZero
	default:
		a.Uncounted = wanted
	}
	return ""
}

// Counted returns what the facets of the search count: that, if they can count groups.
func (a *Asked) Counted(groups Counts) Counts {
	switch {
	case a.Uncounted:
		return CountsEngine
	case a.Counting == nil:
		return CountsUnasked
	}
	return groups
}

// String returns what the header of an answer says.
func (c Counts) String() string {
	return [...]string{"", "exact", "approximate", "window", "engine"}[c]
}

// ErrUnclustered: documents have no id of a cluster, or one of another rule.
var ErrUnclustered = errors.New("documents without the id of a cluster")

// Cursor is the place in a list at which a page begins, where clients go through the list by cursors: after the last hit of the page before.
type Cursor interface {
	// Key returns under which key of [Cursors] it is remembered what was shown in front of the page, nothing for one that begins a list.
	Key() string
	// Next returns the same for the page that begins after a hit, the last one of a page within a frame; nothing where it is not remembered.
	Next(frame *Listing, last *rule.Seen) string
	// At reports whether a hit has the sort values of the cursor, as several can.
	At(hit *rule.Seen) bool
}

// Sequence is a list whose pages are asked for by their number.
type Sequence interface {
	// List returns under which key of [Cursors], apart from the page, its pages are remembered: all that decides which list it is.
	List() string
}

// Point opens a point in time for a search, where the list does not move and has no end.
type Point interface {
	// Open returns the request that opens one.
	Open() *Request
	// In returns the search in the point in time that the reply names, and the request, [Request.Unanswered], that gives it back; nil where it names none.
	In(reply *Reply) (in Search, giveBack *Request)
}

// ErrLate: the time for collapsing a search was over before its page was known, and no reply that is at hand holds the client's own page.
var ErrLate = rerank.ErrLate

// MaxSearches is how many searches one request may hold to be collapsed. Each of them is kept in some 4 kB while they are answered.
const MaxSearches = 1000

// Late reports whether the time for the search is over.
func (p Plan) Late() bool { return p.Deadline != nil && p.Deadline.Late() }

// WasLate reports whether a search was given up because the time was over.
func WasLate(outcomes []Outcome) bool {
	return slices.ContainsFunc(outcomes, func(o Outcome) bool { return o.Reason == ReasonDeadline })
}

// IsLate reports whether an error says that the time was over.
func IsLate(err error) bool { return errors.Is(err, ErrLate) }

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
