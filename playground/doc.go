// Package playground serves a page that shows what is folded: a search as the engine answers it, the same search collapsed, and a
// threshold to move. The page gets the agreement of every two hits from the JSON API here, so that it can fold again by itself.
//
// The playground only reads: it lists an engine's indices and searches them, through the sidecar and with the credentials that the
// page's user types. These are neither stored nor logged. The sidecar's own credentials are never used.
package playground
