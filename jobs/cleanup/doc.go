// Package cleanup makes a plan of which near-duplicates of an index to delete or to hide, carries it out, and takes it back.
//
//	Find      the groups of an index: in each the document that stays, why, and those that are near-duplicates of it
//	WritePlan writes them to a file, and changes nothing
//	Apply     carries a plan out, and writes each document to an undo file before it touches it
//	Restore   puts back what an undo file holds
//
// A cluster is what chains of near-duplicates connect, so its first document and its last may be unlike. A group is not: each document that goes is
// a near-duplicate of the one that stays, under all conditions of the rule and all decisions of people. Of one cluster several documents may stay.
//
// Apply loses nothing, unless the caller accepts a loss:
//
//   - It begins only where the engine can put a deleted document back as it was (adapters.Cleaner).
//   - A document is in the undo file, and the file is on the disk, before anything is done to it.
//   - It deletes one document and creates it again, or, to hide, writes it again, before it touches any other. The store compares that in all ways in which it can be read.
//   - Just before, it reads each document and the one that stays, and judges the two again. If either is not what the plan saw, or they are no
//     near-duplicates, nothing is done.
//   - Afterwards it reads those that stay once more. If one has gone or changed in between, what went because of it is put back. So of two
//     plans that are carried out at the same time, and that keep what the other one deletes, at least one puts its documents back.
//
// A run that was killed goes on with the same command. What a plan saw of a document is its [Digest].
package cleanup
