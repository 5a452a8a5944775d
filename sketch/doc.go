// Package sketch turns texts into small sketches and sketches into an estimate of how much the texts share.
//
// A text is normalised and cut into words; every run of w consecutive words is a shingle; a document is the set of its
// shingles. The resemblance of two documents is |A∩B| / |A∪B| of their sets (Broder 1997). A sketch is a fixed-size summary
// of one set: the share of positions on which two sketches agree estimates the resemblance without either text at hand.
//
//	scheme := sketch.DefaultScheme()
//	sketcher, err := sketch.New(scheme)
//	a, ok := sketcher.Sketch("My name is Inigo Montoya. You killed my father. Prepare to die.")
//	agreement, comparable := a.Agreement(b)
//
// Two sketches are comparable only when they come from the same [Scheme]. A scheme carries a seed, so that nobody who does not
// know it can craft a text that collides on purpose. The same text under the same scheme gives the same sketch on every
// machine and in every release; testdata/known_answers.json holds the vectors.
//
// The package does no I/O, starts no goroutine and reads no clock. A [Sketcher] is safe for concurrent use.
package sketch
