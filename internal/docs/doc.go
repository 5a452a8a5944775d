// Package docs reads the project's Markdown, checks it, and runs the commands that stand in it. Its own tests check the pages of
// the tree; those in internal/e2e run them in front of real engines.
//
// # What is checked of a page
//
// Links within the tree, with their anchors; files, commands of the sidecar and targets of the Makefile that the prose names
// between backticks. Of each fenced block, by the language behind its fence:
//
//	sh                    is run, or says why not; bash reads it without a complaint; the sidecar's commands and flags in it exist
//	yaml                  is a whole configuration, or says what else it is
//	json                  is JSON; … stands for anything left out
//	go, python, js, html  stands, line by line, in a file of the tree that a test runs, or says why not
//	promql                names metrics that docs/metrics.md explains
//	text                  is what it is, but does not begin with a command. No language is text
//
// # Markers
//
// What a block is, HTML comments say in the lines right before its fence, where a reader of the page does not see them:
//
//	<!-- run: ENGINE -->          run it, where the page's addresses lead to elasticsearch, opensearch, typesense or none
//	<!-- run: ENGINE and ENGINE -->  in front of each of them
//	<!-- run: ENGINE, OPTIONS --> with options between commas:
//	                                index NAME    an index of this name holds the sample corpus before the page begins, and
//	                                              config.yaml a rule for it
//	                                prepared      sidecar setup and reindex have been there, too
//	                                served        and a sidecar serves it
//	                                makes NAME    the page makes an index of this name itself: it is dropped in the end
//	                                background    it goes on while the next blocks run, which wait until it listens
//	                                exit N        its last command ends with this code
//	                                in the tree   it runs in the root of the sources, where it must leave nothing
//	                                needs NAME    without this program the page is left out, or fails where CI=true
//	<!-- not run: REASON -->      leave it out
//	<!-- first minute -->         a test of its own runs it
//	<!-- output -->               what the run block before it prints, on standard output; … stands for anything
//	<!-- config -->               a whole configuration
//	<!-- config: part of PATH --> a part of one, such as indices[], engines[] or engines[].limits; "part" alone: some of its keys
//	<!-- yaml: KIND -->           YAML of something else: kubernetes, values (of the chart), prometheus …
//	<!-- file: NAME -->           put it there before the blocks behind it are run
//
// All run blocks of a page with one engine are run by one bash, in the order of the page, in a folder of their own in which the
// tree's deploy/ stands. It stops at the first command that fails, and a curl that is answered with 400 or more fails. The usual
// ports (9200, 8108, 9201, 8109, 7610 …) are led to others, so that a page may be run beside anything else.
package docs
