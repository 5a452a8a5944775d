// Package jobs works on documents that are already stored, through an [adapters.JobStore].
//
// [Reindex] gives every document of an index what our fields are to hold under the rule. Of its types these are to be known: a run is one
// call of Reindex; a lease is a part of the index that the run holds; the board gives out the leases; the [Pace] says when how much may be
// written. Read it in this order, from top to bottom of reindex.go but for what is named otherwise:
//
//	reindexCommand       reindex.go in cmd/sidecar: the flags, and RunE. From there withEngines, run, eachIndex and reindex call Reindex for each
//	                     index (withEngines and eachIndex are in job.go)
//	Reindex              one run, to its report
//	run.untilDone        joins the job, works on its parts, and looks whether the index is still the same one
//	run.join             joins the plan that others are at work on, or splits the index into parts and makes one
//	run.workInSlices     each slice claims one part after the other, and waits until it can (board.claim in lease.go, which begins with how
//	                     leases work)
//	run.workOn           works on a part; lease.during in lease.go renews the lease meanwhile, and marks the part as done or gives it back
//	run.readSketchWrite  a page is read while one is sketched and one is written
//	Store.Scan           store_scan.go of the adapter: one page after another, from where the part was left. It waits while the engine has
//	                     no room (patientStore in pace.go). On Elasticsearch and OpenSearch by readShards, readShard and yieldHits
//	run.sketch           what is wanted of the documents of a page
//	run.write            writes those that are not right, and notes in the lease how far the part is done
//	Pace.Patch           pace.go: as fast as the pace allows; what the engine had no room for is sent again
//	Store.Patch          store_patch.go of the adapter: on Elasticsearch and OpenSearch a bulk by send, of two lines for each document
//	                     (appendPatch). The first document of an index is compared in all its fields before and after, and the job ends
//	                     where it has changed (writeAndCompare in store_compare.go)
//	run.sameIndex        once all parts are, the index must be the one that was joined
//	run.end              the report
//	Store.Release        the last request: on Elasticsearch and OpenSearch it removes the alias that documents were written through
//
// Workers on any number of machines share the parts by leases in an [adapters.Journal]. It is the checkpoint too: a part says how far it
// is done, as far as the engine can go on from anywhere. The stored sketches are a second one: a document whose sketch is right
// is read and left alone, so a second run writes nothing. A document that changed between being read and being written is never
// overwritten. [Watch] goes on where a run ended.
//
// [Verify] compares in the same way and writes nothing unless it repairs; [Remove] takes our fields out. Both go through mend, which reads
// and writes in the same way.
//
// The package knows no engine and does no I/O but through the store.
package jobs
