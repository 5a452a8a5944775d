// Package adapters is the port between neardup and the search engines, in words that belong to no engine.
//
// An adapter has two halves. Its [Dialect] is pure: it classifies requests, enriches the documents of a write by splicing bytes,
// cuts our fields out of replies, and parses searches ([Search]): what the engine is asked, what its replies show, and the page
// that the client gets. What to ask for, and when, is decided by package internal/collapse, for all engines. Its [Store] does I/O: it resolves names, prepares indices, and reads and patches documents that are stored.
//
// What both engines share is in package internal/rule: the rules that say which documents are sketched ([rule.Rule]), enriching one document
// ([rule.Enricher]). JSON is edited as bytes, by internal/jsonedit, so that whatever is not ours stays as it came.
//
// The dialects and this package do no I/O, start no goroutine and read no clock.
package adapters
