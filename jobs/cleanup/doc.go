// Package cleanup plans which near-duplicates of an index to delete or hide, carries the plan out, and undoes it.
//
//	Find        find.go     the groups of an index: in each the document that stays, why, and those that are near-duplicates of it
//	WritePlan   plan.go     writes them to a file, and changes nothing
//	Apply       apply.go    carries a plan out
//	  heal                  puts back what an earlier run left missing
//	  batch                 reads and judges up to a hundred documents, and writes those that go to the undo file
//	    prove               before any other: tests on one document that the engine takes it back as it was
//	    take                deletes or hides them, and puts back those whose document that stays has gone or changed meanwhile
//	Restore     restore.go  puts back what an undo file holds
//	  putBack               creates deleted documents again
//	  show                  shows hidden documents again
//
// A cluster is connected by chains of near-duplicates, so its first and its last document may be unlike. In a group that can't happen: each document
// that goes is a near-duplicate of the one that stays, under all conditions of the rule and all decisions of people. A cluster may have several groups.
//
// Apply loses nothing, unless the caller accepts a loss:
//
//   - It begins only where the engine can put a deleted document back as it was (adapters.Cleaner).
//   - A document is in the undo file, and the file is on the disk, before anything is done to it.
//   - Before it touches any other document, it deletes one and creates it again or, to hide, writes one again. The store checks in every way it can
//     that this left it as it was.
//   - Before it deletes or hides a document, it reads it and the one that stays, and judges the two again. If either has changed since the plan, or
//     they are not near-duplicates, it leaves both alone.
//   - Afterwards it reads the documents that stay once more. If one was deleted or changed meanwhile, it puts back what it deleted because of it.
//     So if two plans run at the same time and each deletes what the other keeps, at least one puts its documents back.
//
// To resume a run that was killed, run the same command again. A plan records the [Digest] of each document.
package cleanup
