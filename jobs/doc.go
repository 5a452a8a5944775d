// Package jobs works on documents that are already stored, through an [adapters.Store].
//
// [Reindex] gives every document of an index the sketch that its text has under the rule. It keeps no state of its own: the
// sketches that are stored are the checkpoint. A document whose sketch is right is read and left alone, so a second run writes
// nothing, and a run that was broken off in any way (by an error, an interrupt, kill -9) goes on where it stopped when it is
// started again. A document that changed between being read and being written is never overwritten.
//
// [Verify] compares in the same way and writes nothing.
//
// The package knows no engine and does no I/O but through the store.
package jobs
