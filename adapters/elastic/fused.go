package elastic

import (
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// A fused list is made from other lists: by their ranks, by their scores, or by scoring the best of one again. The engine reads as many hits of each
// as its window says, and the fused list holds no more than that. What is read of the parts follows from the window and not from the size of the
// search, so readings of any size are the beginning of one list. With a larger window the list would have another order. So it is
// read as it is, no further than the window, and a page can be shorter than the engine's own.

// rankWindow is the window of a fused list for which the client gives none, in all versions (RankBuilder.DEFAULT_RANK_WINDOW_SIZE).
const rankWindow = 10

// fused says how far a fused list goes. Of all other lists it is nil.
type fused struct {
	window int // the engine refuses a search for more hits than that
	length int // how many hits the list holds at most
	// hybrid says that the list is that of a hybrid query of OpenSearch. The window (pagination_depth) is of each part on each shard, and bounds neither
	// size nor length. sized says that the client gives none: then it is the size of the search.
	hybrid, sized bool
}

// readFused finds out whether the list is a fused one. It returns why the search is left alone, or nothing.
func (q *clientSearch) readFused() adapters.Reason {
	retriever, rank := jsonedit.Get(q.members, "retriever"), jsonedit.Get(q.members, "rank")
	kind, in := single(jsonedit.Get(q.members, "query"))
	switch {
	case kind == "hybrid" && q.d.OpenSearch:
		q.fused = &fused{window: maxResultWindow, length: maxResultWindow, hybrid: true, sized: jsonedit.Get(in, "pagination_depth") == nil}
	case retriever != nil:
		return q.readRetriever(retriever)
	case rank != nil:
		if kind, in := single(rank); kind == "rrf" {
			return q.fuse(windowOf(in, "rank_window_size", windowOf(in, "window_size", rankWindow)))
		}
		return adapters.ReasonVector
	case q.has("sub_searches"):
		return adapters.ReasonVector
	}
	return ""
}

// readRetriever is readFused for a search with a retriever. The retrievers within one that fuses need not be known: they are read in its window.
func (q *clientSearch) readRetriever(retriever []byte) (reason adapters.Reason) {
	kind, in := single(retriever)
	switch kind {
	case "knn":
		return ""
	case "standard":
		return standardReason(in)
	case "rrf", "linear", "text_similarity_reranker", "pinned", "rule":
		reason = q.fuse(windowOf(in, "rank_window_size", rankWindow))
	case "rescorer":
		reason = q.fuse(leastWindow(jsonedit.Get(in, "rescore")))
	case "diversify": // of the hits in its window it keeps as many as its size says
		reason = q.fuse(min(windowOf(in, "rank_window_size", rankWindow), windowOf(in, "size", rankWindow)))
		q.fused.window = maxResultWindow
	default:
		return adapters.ReasonVector
	}
	q.asked.Size = q.fused.length // unless the client gives a size: the engine then takes all of the list (RankDocsRetrieverBuilder)
	return reason
}

// standardReason returns why a search by such a retriever is left alone, or nothing. Its list is that of a query.
func standardReason(in []jsonedit.Member) adapters.Reason {
	for _, m := range in {
		switch m.Key {
		case "query", "filter", "min_score", "_name", "terminate_after":
		case "sort":
			if unsorted(m.Value) {
				return "export"
			}
		case "collapse":
			return "client_collapse"
		case "search_after":
			return adapters.ReasonCursor
		default:
			return adapters.ReasonNotUnderstood
		}
	}
	return ""
}

// fuse notes a fused list of that window, and returns why the search is left alone, or nothing.
func (q *clientSearch) fuse(window int) adapters.Reason {
	q.fused = &fused{window: window, length: window}
	if window < 1 {
		return adapters.ReasonNotUnderstood // the engine says what is wrong with it
	}
	return ""
}

// single returns the key of an object that has one, and the members of its value. It returns no key for anything else.
func single(object []byte) (key string, in []jsonedit.Member) {
	members, err := jsonedit.Members(object)
	if err != nil || len(members) != 1 {
		return "", nil
	}
	if in, err = jsonedit.Members(members[0].Value); err != nil || jsonedit.Repeated(in) {
		return "", nil
	}
	return members[0].Key, in
}

// windowOf returns the number that a key has in an object, or instead where the key is missing. It returns 0 for anything but a number.
func windowOf(in []jsonedit.Member, key string, instead int) int {
	value := jsonedit.Get(in, key)
	if value == nil {
		return instead
	}
	n, _ := strconv.Atoi(strings.Trim(string(value), `"`)) // engines take 10 and "10"
	return n
}

// leastWindow returns the window of a list that is rescored by one rescorer, or by several.
func leastWindow(rescore []byte) (least int) {
	rescorers, err := jsonedit.Elements(rescore)
	if err != nil {
		rescorers = [][]byte{rescore}
	}
	for i, rescorer := range rescorers {
		members, err := jsonedit.Members(rescorer)
		if err != nil {
			return 0
		}
		if window := windowOf(members, "window_size", rankWindow); i == 0 || window < least {
			least = window
		}
	}
	return least
}

// readFusedPage bounds the page of a fused list, and says why it can't be collapsed.
func (q *clientSearch) readFusedPage() adapters.Reason {
	a := &q.asked
	if a.Size > q.fused.window || q.fused.sized && a.From > 0 { // the engine says so
		return adapters.ReasonRankWindow
	}
	a.Limit, a.Shorter = min(a.Limit, q.fused.length), adapters.ReasonRankWindow
	return ""
}

// readWindow writes the window of the list into the body where it is the size of the search, and collapses over no more than the list holds.
func (q *clientSearch) readWindow() (err error) {
	a := &q.asked
	if q.fused.sized {
		q.base, err = setNumber(q.base, a.Size, "query", "hybrid", "pagination_depth")
	}
	a.Scope.Window = min(a.Scope.Window, a.Limit)
	return err
}

// setNumber sets a number in an object that lies within others.
func setNumber(object []byte, n int, path ...string) (_ []byte, err error) {
	value := strconv.AppendInt(nil, int64(n), 10)
	if len(path) > 1 {
		if value, err = setNumber(jsonedit.Lookup(object, path[0]), n, path[1:]...); err != nil {
			return nil, err
		}
	}
	return jsonedit.Set(object, path[0], value)
}
