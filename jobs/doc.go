// Package jobs works on documents that are already stored, through an [adapters.JobStore].
//
// [Reindex] gives every document of an index what our fields are to hold under the rule. Read it in this order:
//
//	Reindex            one run, to its report
//	run.untilDone      joins the job and works on its parts, until all are done
//	run.join           takes up the run that others are at work on, or splits the index and begins one
//	run.workInSlices   each slice claims one part after the other
//	board.claim        the lease of a part (the head of lease.go says how leases work)
//	run.workOn         holds one part, renews its lease, and gives it back
//	run.readSketchWrite  a page is read while one is sketched and one is written
//	Pace.scan          reads the pages
//	run.sketch         what is to be written of a page
//	run.write          writes it
//	Pace.Patch         as fast as the pace allows; what the engine had no room for is sent again
//	Patch              of the store. On Elasticsearch and OpenSearch the first documents of an index are compared in all their fields
//	                   before and after, and the job ends where one has changed (writeAndCompare in store_compare.go)
//
// Workers on any number of machines share the parts by leases in an [adapters.Journal], which is the checkpoint too: a part says how
// far it is done, as far as the engine can go on from anywhere. The stored sketches are a second one: a document whose sketch is right
// is read and left alone, so a second run writes nothing. A document that changed between being read and being written is never
// overwritten. [Watch] goes on where a run ended.
//
// [Verify] compares in the same way and writes nothing unless it repairs; [Remove] takes our fields out. Both go through mend, which reads
// and writes by the same two methods of [Pace].
//
// The package knows no engine and does no I/O but through the store.
package jobs
