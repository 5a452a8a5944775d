//go:build !(goexperiment.simd && amd64)

package sketch

// blocks32 leaves everything to the loop of blocks. Builds with GOEXPERIMENT=simd have another one in its place.
func (b *baseWriter) blocks32(_, _ []byte, _ string, blank uint64) (i int, _, half uint64) {
	return 0, blank, 0
}
