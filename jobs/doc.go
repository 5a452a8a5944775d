// Package jobs works on documents that are already stored, through an [adapters.Store].
//
// [Reindex] gives every document of an index what our fields are to hold under the rule. Workers on any number of machines share
// the parts of the index by leases in an [adapters.Journal] (lease.go says how), which is the checkpoint too: a part says how far
// it is done, as far as the engine can go on from anywhere. Beside it the stored sketches are one: a document whose sketch is right
// is read and left alone, so a second run writes nothing. A document that changed between being read and being written is never
// overwritten. [Pace] holds a rate and gives way to an engine that has no room. [Watch] goes on where a run ended.
//
// [Verify] compares in the same way and writes nothing.
//
// The package knows no engine and does no I/O but through the store.
package jobs
