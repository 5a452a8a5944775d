// Package rerank collapses a ranked list of hits into groups of near-duplicates and cuts pages from the collapsed list.
//
// It works on ranks and sketches alone, answers in ranks, and never sees a document. The collapsed list of hits h₀, h₁, … over a
// window of W ranks is:
//
//   - over the first W ranks: hᵢ is kept unless it is a near-duplicate of a leader kept before it; otherwise it is folded into
//     the group of the first such leader. Near-duplication is not transitive, so a hit is compared with leaders only. A pinned hit
//     is always kept;
//   - then the ranks beyond W as the engine gave them.
//
// A page is a slice of that list. [Collapse] is the definition over a list at hand. [Pager] finds a page of it while reading as
// little of the engine's list as it can.
package rerank
