package adapters

import (
	"bytes"
	"errors"
	"slices"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/rerank"
)

// This file is what an engine provides so that its searches can be collapsed. Package internal/collapse decides what to read, sends the
// requests, compares the hits and cuts the page. The dialect writes requests, reads replies and renders. Nothing here does I/O.

// Searches are the searches of one client's request, parsed: one, or those of a multi-search.
type Searches struct {
	// Plain is the client's request less our controls: what is sent where it is left alone.
	Plain *Request
	// Refusal, if not nil, is the answer where a rule matches: a control of ours has a bad value. It has the engine's own error shape.
	Refusal *Reply
	// Reason, if not empty, says why the request is left alone. List and Wire are not set then.
	Reason Reason
	// NamesOurs says that the client names a field of ours: then it is shown in the reply to Plain.
	NamesOurs bool
	// List holds the searches in the client's order, with those that are left alone.
	List []Search
	// Single says that the client asked for one search alone. When it fails the whole request fails, and the caller sends it as the client
	// wrote it. Of several searches each that fails is asked again as the client wrote it, and the others go on.
	Single bool
	// Wire, if not nil, joins the requests of searches in requests of several. Without one each is sent by itself.
	Wire Wire
	// Envelope, if not nil, is what the client gets the results in. Without one it gets the result of the one search.
	Envelope Envelope
	// Plan is the one under which they were parsed.
	Plan Plan
	// Ahead, if not nil, is asked before anything else: the searches follow from its reply, and List is empty.
	Ahead Ahead
}

// Left reports whether the request holds no search to be collapsed.
func (s *Searches) Left() bool { return len(s.List) == 0 && s.Ahead == nil }

// Ahead is what has to be asked before it is known what is searched for.
type Ahead interface {
	// Request is what is asked.
	Request() *Request
	// Searches returns what follows from the reply. Its error is [ErrRefused], [ErrWidened] or an [Alone], or says what is not understood.
	Searches(reply *Reply) (*Searches, error)
}

// Search is one search of a request. Its methods are pure.
type Search interface {
	// Asked returns what the client asks for. It does not change.
	Asked() *Asked
	// Requests returns the requests of a reading, to be sent side by side. replies are those to its earlier requests; once they are enough, for
	// most readings after one round, it returns none. Its errors are those of Listing.
	Requests(r *Reading, replies []*Reply) ([]*Request, error)
	// Listing lists the hits of the replies to a reading. Its error is a [Declined]; [ErrMoved] if the replies do not agree with one another; an
	// [Alone] if the search can't be collapsed; or says what is not understood, or why the reading can't be made: see Narrowed.
	Listing(r *Reading, replies []*Reply) (*Listing, error)
	// Refusal returns what it means that the engine refuses requests for the search with a reply: [ErrRefused], [ErrWidened] or what is not understood;
	// nil if it does not.
	Refusal(requests []*Request, reply *Reply) error
	// Narrowed returns the search to go on with after an error of a reading, or nil.
	Narrowed(err error) Search
	// Render returns the result that the client gets: the page's hits in place of those of the frame, all beside them stays. groups, if not nil, are
	// what is folded into each of the hits. total, if not negative, replaces the engine's.
	Render(frame *Listing, page []*rule.Seen, groups []*Group, total int) (Pieces, error)
	// Name returns a JSON object that names the document of a hit.
	Name(hit *rule.Seen) []byte
	// Clean returns a result of the client's own search as the client gets it: without our fields, unless it names them.
	Clean(raw []byte) []byte
}

// Pieces are the parts of a text in their order. A page is put together from parts of the engine's replies, without a copy of them.
type Pieces [][]byte

// Bytes returns the text.
func (p Pieces) Bytes() []byte {
	if len(p) == 1 {
		return p[0]
	}
	return bytes.Join(p, nil)
}

// Len returns its length.
func (p Pieces) Len() (n int) {
	for _, piece := range p {
		n += len(piece)
	}
	return n
}

// Asked is what the client asks for with a search.
type Asked struct {
	// Target is what the search is sent to, as in [Plan.Scope].
	Target string
	// Reason, if not empty, says why the search is left alone. Then nothing of the rest but Target need be set.
	Reason Reason
	// Scope is what is known of the target, as the controls of the search have it.
	Scope Scope
	// From and Size are the page. Limit is how many ranks of the list can be read.
	From, Size, Limit int
	// Short, if not empty, is the reason for which a search is left alone whose page Limit cuts short.
	Short Reason
	// Unseen, if not empty, says that only the engine's reply tells the page: From and Size are a guess. It is the reason for which the search
	// is left alone where the engine's own reply is all that can be had.
	Unseen Reason
	// Neighbours is set for a search of nearest neighbours.
	Neighbours *Neighbours
	// Doubting is that of the search's [rule.Judge].
	Doubting bool
	Ways     Ways
	// Native is set where the engine can collapse the search itself, Cursor where clients go through its list by cursors, Point where it can
	// be made in a point in time.
	Native Native
	Cursor Cursor
	Point  Point
	// Sequence is set where clients may go through the list page by page, by From.
	Sequence Sequence
}

// Ways are how the hits of a search can be read.
type Ways struct {
	// Apart says that what hits are judged by can't be read with the hits as the client wants them, TextsApart that their texts can't.
	Apart, TextsApart bool
	// Scattered says that one request can read hits of any ranks. Folded hits are then read with the page's own, once the page is known, and all
	// hits are read again with their texts as soon as one lacks a sketch. Otherwise folded hits are read with all others, and only the missing
	// texts are read again.
	Scattered bool
	// Weighed says that it matters how long the hits are: the sketches of long ones are read first.
	Weighed bool
}

// Neighbours says how many nearest neighbours are looked for.
type Neighbours struct {
	// Raised, never less than the client's own number, is for how many all readings but the client's own look, so that all pages are cut from one list.
	Raised int
	// Mixed says that the list holds other hits too, so that it does not end with their number.
	Mixed bool
}

// Reading is one look at the engine's list.
type Reading struct {
	// Own asks for the client's own page. AsWritten asks for it as the client wrote it; otherwise with what is needed to read and render it.
	Own, AsWritten bool
	// From and To are the ranks [From, To). Ranks, if not nil, are those of them that are wanted, ascending. A reading of no ranks asks only
	// for what a reply has beside its hits.
	From, To int
	Ranks    []int
	// Known are the hits from rank 0 on that the Ranks were chosen from, as far as these were judged. Picked is for the dialect, which notes
	// that its request names the documents of the Ranks.
	Known  []rule.Seen
	Picked bool
	// Before asks for the list from its beginning, not from the cursor on at which the search begins.
	Before bool
	// Sources asks for hits as the client wants them, Judged for what they are judged by, Texts for the sketched texts too, to compute missing
	// sketches from.
	Sources, Judged, Texts bool
	// Frame asks for everything that a reply has beside its hits, such as facets, where it can come with this reading.
	Frame bool
}

// Wire joins several searches in one request. Of a request for one search it takes the body alone, and of what the request is for.
type Wire interface {
	// Join writes requests, in their order, into ones that go side by side, [MaxAtOnce] at most: each is JudgingOnly if all in it are. parts are
	// those in each of them. Those that find no room are joined again once the others are answered.
	Join(requests []*Request) (joined []*Request, parts [][]*Request, err error)
	// Split reads the reply to a joined request: one for each of its parts, whose body is the result. Its error says what is not understood.
	Split(parts []*Request, reply *Reply) ([]*Reply, error)
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

// Listing is what a reading shows of the list.
type Listing struct {
	// Hits are the hits of the reading, in the order of their ranks.
	Hits []rule.Seen
	// Reply is what the dialect keeps of the reply around them, for Render.
	Reply any
	// Total is the engine's count, -1 where it gives none. AtLeast says that there may be more.
	Total   int
	AtLeast bool
	// Framed says that it holds everything that a reply has beside its hits.
	Framed bool
	// HitBytes is how long the hits are that came whole, in the mean; 0 where none did.
	HitBytes int
	// From and Size are, of the client's own page, where the engine says that it lies.
	From, Size int
	// Full says, of neighbours, that the engine found as many as it looked for: it may have more.
	Full bool
}

// Group is what is to be shown of the hits that are folded into another one. Numbers and reasons are JSON.
type Group struct {
	Folded []Folded
	// Exact says that no more of the list can fold into it.
	Exact bool
	// Why, if not nil, says why the hit is shown; Beside, in place of it, how far a hit agrees that is shown beside the one that represents
	// their group.
	Why, Beside []byte
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
	// In returns the search in the point in time that the reply names, and the request that gives it back; nil where it names none.
	In(reply *Reply) (in Search, giveBack *Request)
}

// ErrLate: the time for collapsing a search was over before its page was known, and no reply that is at hand holds the client's own page.
var ErrLate = rerank.ErrLate

// MaxSearches is how many searches one request may hold to be collapsed. Each of them is kept in some 4 kB while they are answered.
const MaxSearches = 1000

// Late reports whether the time for the search is over.
func (p Plan) Late() bool { return p.Deadline != nil && p.Deadline.Late() }

// WasLate reports whether a search of the answer was given up because the time was over.
func (a *Answer) WasLate() bool {
	return slices.ContainsFunc(a.Outcomes, func(o Outcome) bool { return o.Reason == ReasonDeadline })
}

// IsLate reports whether an error says that the time was over.
func IsLate(err error) bool { return errors.Is(err, ErrLate) }
