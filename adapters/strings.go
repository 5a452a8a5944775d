package adapters

import "strings"

// Strings makes strings that share memory: of many short ones few take an allocation. The zero Strings is ready.
type Strings struct{ room strings.Builder }

// Of returns bytes as a string.
func (s *Strings) Of(text []byte) string {
	const size = 1 << 10
	if s.room.Cap()-s.room.Len() < len(text) { // the strings of the room before keep it
		s.room.Reset()
		s.room.Grow(max(len(text), size))
	}
	start := s.room.Len()
	s.room.Write(text)
	return s.room.String()[start:]
}
