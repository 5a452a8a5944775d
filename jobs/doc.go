// Package jobs works on documents that are already stored, through an [adapters.JobStore].
//
// [Reindex] gives every document of an index what our fields are to hold under the rule. It calls these functions in order. Those
// with a star need not be opened: their line says what they do. Everything else that they call does what its name says. The types that are
// passed along are Selection, Page and Stored, in adapters/store.go, and Progress and Report, in report.go.
//
//	main, run*                    cmd/sidecar/main.go     cobra finds the command, and calls what it has as RunE
//	reindexCommand                cmd/sidecar/reindex.go  its flags; its RunE is reindexJob.run, by withEngines*, which reads the configuration
//	reindexJob.run                cmd/sidecar/reindex.go  all indices of the engines
//	  job.eachIndex*              cmd/sidecar/job.go      each index that a rule matches, once our fields are declared in it
//	    reindexJob.reindex        cmd/sidecar/reindex.go  one index, and its summary
//	      Reindex                 reindex.go              one run, to its report
//	        run.untilDone         reindex.go              joins the job, works on its parts, and looks whether the index is still the same one
//	          run.join*           reindex.go              joins the plan that others are at work on, or splits the index into parts and makes one
//	          run.workInSlices    reindex.go              several slices at once, each by
//	            board.eachPart*   lease.go                one part after the other, held while it calls
//	            readSketchWrite   reindex.go              a page of the part is read while one is sketched and one is written
//	              Store.Scan      of the dialect          one page after another, from where the part was left
//	              Rule.OursFor*   internal/rule/ours.go   what our fields of a document are to hold, and whether they do
//	              run.write       reindex.go              writes those that are not right, and notes in the lease how far the part is done
//	                Pace.Patch*   pace.go                 as fast as the pace allows; what the engine had no room for is sent again
//	                  Store.Patch of the dialect          writes documents, unless they changed since they were read
//	        run.report*           reindex.go              the report
//	        Store.Release*        of the dialect          takes out of the index what Patch left there
//	        reindexJob.print      cmd/sidecar/reindex.go  the report's line (Report.String*), by job.printf*
//	  job.finish*                 cmd/sidecar/job.go      the reports in JSON, and how the command ends
//
// The dialect's part, in store_scan.go and store_patch.go of its folder, is listed in its doc.go. Three things can be read apart from all that:
//
//	lease      a part that the run holds: lease.go, which begins with how workers share the parts. The run's board gives leases out (claim), and
//	           keeps what it last read of the journal. A worker that is alone claims each part once, and renews its lease meanwhile (whileHeld)
//	Pace       when how much may be written: the rest of pace.go. By patientStore, reading waits too while the engine has no room
//	dryStore   what a dry run writes to: the end of reindex.go
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
