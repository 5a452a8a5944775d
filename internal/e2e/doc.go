// Package e2e holds the whole-program tests: the built sidecar in front of real engines, driven by the engines' official clients, and
// judged by the definition of the collapsed list over what the engine itself answers.
package e2e
