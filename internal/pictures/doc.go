// Package pictures holds the tests that draw docs/images from the code which the pictures are about. Every figure in them is
// what that code says or does: the sketches are sketches, the groups are those of rerank.Collapse, the dots were counted, and
// the requests are those that a sidecar in front of an engine sent. A change that alters one of them shows as a picture that is
// no longer the one in the tree:
//
//	go test ./internal/pictures            compares, byte for byte
//	go test ./internal/pictures -update    draws them anew; then look at them, in light and in dark
//
// The pictures stand on pages as <img>, so they have no script and ask for nothing from elsewhere; what they show is also said
// in their title and desc. The pages of docs that are made of code and files of the tree are held to these here too.
package pictures
