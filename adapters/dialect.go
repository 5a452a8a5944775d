package adapters

import (
	"bytes"
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
	// Unanswered says that no one waits for its reply: it gives back what the search kept open in the engine.
	Unanswered bool
	// Undo, if set, says that the engine keeps something open once it has answered, and returns the request that gives it back; nil where the reply
	// names nothing. Such a request goes on where the search breaks off, so that what it opens is given back.
	Undo func(*Reply) *Request
	// For is the dialect's own note of what it asks for, for [Wire.Split].
	For any
}

// MaxAtOnce bounds how many requests for one search are under way at a time. (More readings at once than an engine has idle cores take
// no less time, and each searches anew.)
const MaxAtOnce = 4

// Reply is an HTTP reply that was read whole, or one for the client. Body is decoded; Header still names the coding in which the client gets it.
type Reply struct {
	Status int
	Header Header
	Body   []byte
	// Pieces are the body of a page for the client, in place of Body.
	Pieces Pieces
	// Took is how long it took to come, from the request on, in milliseconds; 0 where that is not known.
	Took float64
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

// Class is what a dialect sees in a request but for its body; in a read also what ReadBody sees there. Of an ordinary search Kind, Target and Form count, of a bulk Params and ReplyMayHoldOurs too.
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
	// ReplyMayHoldOurs says that the reply to this write can hold our fields, and goes through CleanReply as replies to reads do.
	ReplyMayHoldOurs bool
	// Address, if not empty, is what CleanReply puts in place of the nodes' addresses in the reply to a read.
	Address string
	// Always says that CleanReply is to see every reply to this read, and not only one with the name of a field of ours.
	Always bool
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
	// ReplyHeader is the header of the reply that goes through CleanReply, nil where that is not known.
	ReplyHeader Header
	// Alters says that a request may make, change or drop an index, alias or template. A write that does brings a schema: a field of
	// ours that its body names is shown.
	Alters bool
	// NewIndex is the name for which a request makes an index, whose mapping gets our field; empty if it makes none.
	NewIndex string
}

// Dialect is the pure half of an adapter. All methods are safe for concurrent use and keep nothing of their arguments.
type Dialect interface {
	// Classify looks at all but the body.
	Classify(r *Request) Class
	// ReadBody returns the class of a read whose body is known, and what is sent in the place of the body: nearly always the same.
	ReadBody(c Class, body []byte) (Class, []byte)
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

// The rest is a search, in the order in which it is answered. Package internal/collapse decides what to read, sends the requests, compares the hits
// and cuts the page. The dialect parses the search, writes requests, lists the hits of their replies and renders the page.

// Plan is what a dialect needs to know for a search.
type Plan struct {
	Rules rule.Rules
	// Scope returns what is known of a target: an index, alias, pattern or list, as the client wrote it.
	Scope func(target string) Scope
	// MaxWindow caps the window that a request may ask for.
	MaxWindow int
	// Deadline, if not nil, is when the time for collapsing the search is over.
	Deadline rerank.Deadline
	// Cursors remembers, for this client alone, what pages of a cursor have shown. It is nil where nothing is remembered.
	Cursors Cursors
}

// Cursors remembers what a client's cursors have shown, bounded and for a time: anything in it can be gone at any moment. What is in it is
// never changed. Safe for concurrent use.
type Cursors interface {
	// Get returns what was put last under the key.
	Get(key string) (walk *rerank.Walk, ok bool)
	// Put takes a walk, which the caller does not change any more.
	Put(key string, walk *rerank.Walk)
}

// Scope is what is known of a search's target under the client's credentials. A default rule (config.Preset.Start) sets only Configured,
// Window, VectorWindow and Texts: it groups by leaders and shows these, expand and group are off, no field decides, it is no dry run, and missing sketches are
// computed. Widening, Lacking, Decided, Piped and Fuses are not of a rule: they were learned from the target.
type Scope struct {
	// Configured says that a rule matches an index of the target, or may do so.
	Configured bool
	// Window is the largest window of the rules that match indices of the target.
	Window int
	// VectorWindow is the number of neighbours that a search by vectors asks for at least, where hits fold.
	VectorWindow int
	// Chooses says that a rule shows other members than the first-ranked. It takes the whole window.
	Chooses bool
	// Transitive says that a rule groups by connected components. It takes the whole window.
	Transitive bool
	// CollapsedTotals, CountsGroups, Expand, Group and DryRun are those of the rules, the farthest-reaching of several; but DryRun only where all say so.
	CollapsedTotals bool
	CountsGroups    bool
	Expand          rule.Expand
	Group           bool
	DryRun          bool
	// Clusters says that documents of the target may store the ids of their clusters.
	Clusters bool
	// Threshold and Keep, if above 0, replace those of the rules. Explains says that hits come with the reason why they were folded or shown.
	Threshold float64
	Keep      int
	Explains  bool
	// Deciding are the fields whose values are needed of each hit, Texts the sketched ones of the rules that compute missing sketches. Vectors says
	// that one of these holds vectors, which the engine may not show with a document.
	Deciding []rule.Deciding
	Texts    []string
	Vectors  bool
	// Widening is what recent searches of the target have shown.
	rerank.Widening
	// Lacking says that recent searches found hits without a sketch.
	Lacking bool
	// Decided is what people have decided about pairs of documents of the target, nil for nothing. With it, readings must show which document each hit
	// is of.
	Decided rule.Decisions
	// Piped says that an index of the target has the engine change what it finds there: see [Index].
	Piped bool
	// Fuses says that the engine makes one list of several that it finds there: see [Index].
	Fuses bool
	// Native is the rule of all indices of the target, if they have one rule and it lets the engine collapse searches by clusters; otherwise nil.
	// Fell, if not empty, is the reason why that is not tried at present: see [Outcome]. Costly says that it is not tried where groups are counted.
	Native *rule.Rule
	Fell   Reason
	Costly bool
}

// Searches are the searches of one client's request, parsed: one, or those of a multi-search.
type Searches struct {
	// Plain is the client's request less our controls: what is sent where it is left alone.
	Plain *Request
	// Refusal, if not nil, is the answer to a control of ours with a bad value, in the engine's own error shape. It is given only if a rule matches.
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
	// the groups of these hits, as the client is to see them. total, if not negative, replaces the engine's.
	Render(frame *Listing, page []*rule.Seen, groups []*Group, total int) (Pieces, error)
	// Name returns a JSON object that names the document of a hit.
	Name(hit *rule.Seen) []byte
	// Clean returns a result of the client's own search as the client gets it: without our fields, unless it names them.
	Clean(raw []byte) []byte
}

// Asked is what the client asks for with a search. Of page 1 of an ordinary search only Target, Scope, From, Size, Limit, Doubting and Ways count.
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
	// Shorter, if not empty, says that the list may end before all hits that the engine counts are in it. It is the reason that stands beside a page
	// that is shorter than the engine's own for that.
	Shorter Reason
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
	// Counting is set where facets are to count groups, and can. Uncounted says that they are to, and can't.
	Counting  Counting
	Uncounted bool
}

// Ways are how the hits of a search can be read.
type Ways struct {
	// Apart says that what hits are judged by can't be read with the hits as the client wants them, TextsApart that their texts can't.
	Apart, TextsApart bool
	// Scattered says that one request can read hits of any ranks. Folded hits are then read with the page's own, once the page is known, and all
	// hits are read again with their texts as soon as one lacks a sketch. Otherwise folded hits are read with all others, and only the missing
	// texts are read again.
	Scattered bool
	// Weighed says that what readings took and how long hits are decides whether a page is read with its sources at once. It is for searches that are
	// alike in both: those for whole hits, which can be picked.
	Weighed bool
}

// Reading is one look at the engine's list. The ordinary one, for page 1, has To, Sources, Judged and Frame, and nothing else.
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
	// Counts asks for the client's facets over the documents of the Ranks, all of them Known, and for nothing else.
	Counts bool
}

// Wire joins several searches in one request. Of the request for each search only Body and For are used.
type Wire interface {
	// Join writes requests, in their order, into ones that go side by side, [MaxAtOnce] at most: each is JudgingOnly if all in it are. parts are
	// those in each of them. Those that find no room are joined again once the others are answered.
	Join(requests []*Request) (joined []*Request, parts [][]*Request, err error)
	// Split reads the reply to a joined request: one for each of its parts, whose body is the result. Its error says what is not understood.
	Split(parts []*Request, reply *Reply) ([]*Reply, error)
}

// Listing is what a reading shows of the list.
type Listing struct {
	// Hits are the hits of the reading, in the order of their ranks.
	Hits []rule.Seen
	// Parsed is what the dialect keeps of the reply around them, for Render.
	Parsed any
	// Total is the engine's count, -1 where it gives none. AtLeast says that there may be more.
	Total   int
	AtLeast bool
	// Framed says that it holds everything that a reply has beside its hits.
	Framed bool
	// HitBytes is how long the hits are that came whole, in the mean; 0 where none did.
	HitBytes int
	// Took is how long the replies took to come, in milliseconds; 0 where that is not known. The dialect does not set it.
	Took float64
	// From and Size are, of the client's own page, where the engine says that it lies.
	From, Size int
	// Full says, of neighbours, that the engine found as many as it looked for: it may have more.
	Full bool
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
	// Shorter is that of [Asked]. It counts if the page was Limited.
	Shorter Reason
	// Exact says that Folded is final for the whole window.
	Exact bool
	// Rounds is how often the engine was asked; Window the ranks collapsed over.
	Rounds, Window int
	// DryRun says that the answer is the engine's own, and Folded what would have been folded.
	DryRun bool
	// CursorLost says that what earlier pages of a cursor showed was not known any more, so that the page was collapsed by itself.
	CursorLost bool
	// Counts says what facets count that were to count groups.
	Counts Counts
	NativeOutcome
}
