// Package jobs works on documents that are already stored, through an [adapters.JobStore].
//
// [Reindex] gives every document of an index what our fields are to hold under the rule. Read it in this order, from top to bottom of
// reindex.go but for what is named otherwise:
//
//	reindexJob.run       reindex.go in cmd/sidecar: RunE of its command. Each index in turn goes to reindexJob.reindex
//	Reindex              one run, to its report
//	run.untilDone        joins the job, works on its parts, and looks whether the index is still the same one
//	run.join             joins the plan that others are at work on, or splits the index into parts and makes one
//	run.workInSlices     each slice claims one part after the other, and works on it while it is held
//	run.readSketchWrite  a page of the part is read while one is sketched and one is written
//	Store.Scan           store_scan.go of the adapter: one page after another, from where the part was left. On Elasticsearch and OpenSearch
//	                     by readShards, readShard and yieldHits
//	run.write            writes those that are not right, and notes in the lease how far the part is done
//	Pace.Patch           pace.go: as fast as the pace allows; what the engine had no room for is sent again
//	Store.Patch          store_patch.go of the adapter: on Elasticsearch and OpenSearch a bulk by send, of two lines for each document
//	                     (appendPatch)
//	run.end              the report
//	Store.Release        the last request: on Elasticsearch and OpenSearch it removes the alias that documents were written through
//
// What these call beside one another is named after what it does. Of four things more can be read where they are kept:
//
//	lease                a part that the run holds: lease.go, which begins with how workers share the parts. The run's board gives leases out,
//	                     and keeps what it last read of the journal. A worker that is alone claims each part once
//	Pace                 when how much may be written: the rest of pace.go. By patientStore, reading waits too while the engine has no room
//	part                 of an index, as Store.Split names it: store_part.go of the adapter
//	destination          an index that documents are written back to: store_patch.go of Elasticsearch and OpenSearch. The first document of an
//	                     index is compared in all its fields before and after, and the job ends where it has changed (store_compare.go)
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
