// Package cluster finds the near-duplicates among all documents of a corpus and groups them.
//
// Two documents are joined if their fingerprints are equal, or if both have [rerank.Profile.MinShingles] shingles and agree at or
// above the profile's threshold: what makes two hits of a search fold makes an edge here. Clusters are the connected components.
// One of three ways finds the edges:
//
//   - [Broder] is the algorithm of the lectures (Broder and others, "Syntactic clustering of the Web", 1997): sort ⟨shingle, document⟩
//     pairs, list ⟨a, b, 1⟩ for each pair of documents that share one, sort and count those, join what shares enough. It finds every
//     edge, and its counts are exact.
//   - [Bands] looks at pairs that share a band of their sketches ([sketch.Sketch.AppendBands]) and holds their agreement against the
//     threshold. It misses a pair of resemblance r with the probability 1 - sketch.Candidate(r).
//   - [Exact] joins equal fingerprints alone.
//
// Pairs that a person has decided about come before all this: decided.go says how. [Corpus.Learn] finds passages that join unlike documents.
//
// A [Corpus] takes documents in any order and from any source, and keeps what it needs of them in memory or, past
// [Options.Memory], in temporary files. What comes out depends neither on the order nor on the memory, nor on how many cores
// there are:
//
//   - Documents of equal text are joined first, and one of them goes on: a text. Texts are numbered from 0 in the order of their
//     fingerprints, as unsigned numbers, so there are no ties.
//   - A bucket is all texts with one key of one band. Its candidates are all pairs among its first 50 texts by number, and the first
//     with each of the rest ([Pairs]).
//   - A cluster's first is its least number; the cluster is named for that one's fingerprint.
//
// It writes temporary files, which vanish with the process, and the directory of [Corpus.Resume].
package cluster
