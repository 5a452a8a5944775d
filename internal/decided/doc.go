// Package decided keeps what people have decided about pairs of documents: the same (always near-duplicates), or different (never).
//
// A [Pair] says who decided, when, and about which texts: it holds the fingerprints of both. Once one of the texts is another, the pair is obeyed
// no more and is to be asked again. So nobody can make use of a decision by writing another document under an id.
//
//	Log    the pairs as the engine keeps them: every decision is an entry of a journal, and the later one wins
//	Find   looks up documents of pairs, and takes the fingerprints
//	Set    what searches look pairs up in
//	Live   the newest Set, read again and again
//	Parse  the pairs of a file, a line each
package decided
