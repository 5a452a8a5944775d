// Package flink finds the pairs of near-duplicates among texts as one SQL job on an Apache Flink that runs already, through the
// REST interface of its SQL gateway, so that the work is spread over as many machines as that Flink has.
//
// [Job.Seek] writes the texts' band keys and sketches as files into a directory that Flink's taskmanagers see as well, opens a
// session, declares the files as tables, runs one INSERT and reads the files that it wrote. Which pairs those are is said in the
// description of package jobs/cluster; statements.go says the same in SQL. What is left for the caller, connected components over
// the pairs, takes little memory and no comparing.
//
// # What happens when something fails
//
// A job runs in batch mode: what a lost taskmanager was working on, and what it kept for others to read, is computed again by
// those that are left or by one that takes its place. A job's files are moved to where they are read at its very end, and then a
// file says that all are there, so what failed attempts left never counts. A gateway that can't be reached for a minute is waited for,
// and one that was started anew is asked for the job by its name. An end of the caller's context stops the job on Flink as well.
//
// The directory of a run is named by a digest of what it is about, as its job is. It stays until [Job.Finish], so a later run of the same
// goes on from there, however this one ended.
package flink
