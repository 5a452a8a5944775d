package proxy

import "sync"

// pieceSize is how much is copied at once.
const pieceSize = 32 << 10

// pool keeps the buffers through which bodies and replies are copied.
type pool struct{ sync.Pool }

var pieces = &pool{sync.Pool{New: func() any { return new([pieceSize]byte) }}}

// Get returns a buffer of pieceSize bytes, to be given back by Put.
func (p *pool) Get() []byte { return p.Pool.Get().(*[pieceSize]byte)[:] }

// Put takes back what Get returned.
func (p *pool) Put(piece []byte) { p.Pool.Put((*[pieceSize]byte)(piece)) }
