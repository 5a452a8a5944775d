// Package rerank collapses a ranked list of hits into groups of near-duplicates and cuts pages from the collapsed list.
//
// It works on ranks and sketches alone, answers in ranks, and never sees a document. Hits h₀, h₁, … in the engine's order, which alone
// breaks ties among equal scores, are collapsed over a window of W ranks. This is the definition:
//
// # Near-duplicates
//
// A hit may fold into one before it if both have sketches of one scheme, the conditions of the later one's profile hold (Same, Different,
// Within; a hit that lacks a value a condition needs folds with nothing under it), and one of these is true ([Profile.Judge]):
//
//   - The texts are the same: their fingerprints are equal.
//   - The words are the same ([sketch.Sketch.SameWords]).
//   - The agreement is at or above the Threshold, both texts are long enough (MinShingles, MinWords), and neither often has a word that the
//     other does not repeat ([sketch.Sketch.OtherTopics]).
//
// If numbers decide, they must be equal too, unless the texts are the same. By the measure containment the agreement is the share of the
// smaller set that the larger has too, as far as the sketches tell it with a standard error of at most [MaxContainmentError], and the
// topics do not matter.
//
// If people have decided that two hits with these texts are the same or different ([Decided]), only that counts, as long as both have sketches.
//
// Near-duplication is not transitive, and with mixed profiles not symmetric: which hits fold depends on their order.
//
// # Groups
//
// Over the first W ranks, in their order: hᵢ joins the group of the first leader that it may fold into; where there is none, it is a
// leader itself. Hits are compared with leaders only, the first-ranked members, whatever is shown of a group. A pinned hit is always
// a leader. A hit without a sketch is alone.
//
// With transitive, a group is a connected component instead: two hits of the window that are not pinned are joined where the later one
// may fold into the earlier one; this does not depend on the order in which pairs are looked at. The leader is the first-ranked member.
// A component that holds two hits which were decided to be different is divided. Its joins are made again one by one: decided ones first, then by falling
// agreement, ties by the later and then the earlier rank. A join that would bring two such hits together is left out. After that, components in the order
// of their first members join pinned hits: each the first one before its own first member that one of its members may fold into, and whose group then
// holds no two such hits.
//
// # What is shown
//
// By the leader's profile, members are ordered by rank or, where it Chooses, by Merit: the greatest first, the least where
// Ascending, those without a merit last, ties by rank. The first Keep of them are shown. The best, the representative, stands in the leader's
// place; the leader, if it is shown and not the best, in the place of the best; all others at their own ranks. A pinned leader is the best of
// its group and stays where it is.
//
// The collapsed list is what is shown over the first W ranks, by place, then the ranks beyond W as the engine gave them: nothing is
// hidden there. A page is a slice of that list. If leaders are shown and groups are by leaders, what is shown of the first n ranks
// does not depend on those behind them, so a page is known once enough was read; otherwise the whole window has to be ([Page.Whole]).
//
// [Collapse] is the definition over a list at hand. [FindPage] finds a page of it while reading as little of the engine's list as it can.
// [Walk] goes through it in pieces.
package rerank
