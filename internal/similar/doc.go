// Package similar finds the stored documents that are near-duplicates of one, and says what two documents share.
package similar
