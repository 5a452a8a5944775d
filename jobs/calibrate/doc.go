// Package calibrate looks at how far the documents of an index agree with one another, and says which threshold their own texts
// speak for.
//
// [Run] reads documents through an [adapters.Store] and writes nothing. It counts the agreements of random pairs, which show
// what unrelated documents share by chance, and those of candidate pairs, which are found by their bands, since near-duplicates
// are rare among pairs drawn at random. It reads the texts of some pairs of every level, and reports their exact resemblance
// beside the agreement.
//
// What it says of documents is counted in documents, not in pairs: a thousand copies of one page are half a million pairs, and
// one thing to learn. A document is contested at a threshold if it has a partner whose agreement lies within one standard error
// of it, so that chance decides whether the two fold. [Suggest] looks for the threshold at which the fewest are.
//
// With the same seed and the same documents the report is the same, unless the engine chose the documents.
package calibrate
