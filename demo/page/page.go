// Package page holds the page of the walk-through: one search, the engine's list and the collapsed list side by side.
package page

import _ "embed"

// Index is the page. It asks /plain/ and /collapsed/ of its own origin.
//
//go:embed index.html
var Index []byte
