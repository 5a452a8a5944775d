// Package playground serves a page to look at what is folded: a search as the engine answers it, the same collapsed, and a
// threshold to move. The page holds the agreement of every two hits, so that it folds anew by itself; the handler here answers it
// in JSON.
//
// Nothing here writes: what reaches an engine are lists of its indices and searches, through the sidecar that stands in front of
// it and with the credentials that the page's user gives. They are neither kept nor logged, and the sidecar's own never take
// their place.
package playground
