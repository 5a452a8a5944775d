// Package decided keeps what people have decided about pairs of documents: the same (always near-duplicates), or different (never).
//
// A [Pair] says who decided, when, and about which texts: it holds the fingerprints of both. Once one of the texts changes, the pair is ignored, and should
// be asked again. So a decision never applies to a text that somebody writes later under the same id. Searches take the fingerprint from the stored sketch.
// A text that was changed without the sidecar counts as the old one until its sketch is renewed.
//
//	Log    the pairs as the engine keeps them: every decision is an entry of a journal, and the later one wins
//	Find   looks up the documents of pairs, and adds their fingerprints
//	Set    what searches look pairs up in
//	Live   the newest Set, read at intervals
//	Parse  the pairs of a file, a line each
package decided
