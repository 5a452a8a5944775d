// Package decided keeps what people have decided about pairs of documents: the same (always near-duplicates), or different (never).
//
// A [Pair] says who decided, when, and about which texts: it holds the fingerprints of both. Once one of the texts changes, the pair is ignored and is to be
// asked again. So a decision says nothing of another text that somebody writes under one of the ids. Searches take the fingerprint from the stored sketch: a
// text that was changed past the sidecar counts as the old one until its sketch is renewed.
//
//	Log    the pairs as the engine keeps them: every decision is an entry of a journal, and the later one wins
//	Find   looks up documents of pairs, and takes the fingerprints
//	Set    what searches look pairs up in
//	Live   the newest Set, read at intervals
//	Parse  the pairs of a file, a line each
package decided
