// Package rule says which documents get sketches and which pairs fold: the rules of indices, what documents get on their way in
// ([Enricher]), and what of a hit is compared ([Judge]).
package rule
