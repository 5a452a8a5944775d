// Package similar finds the stored documents that are near-duplicates of one, says what two documents share, and drops near-duplicates from a list.
package similar
