package sketch

import "unsafe"

// SketchBytesInto is [Sketcher.SketchInto] of texts in bytes. It copies, keeps and changes none of them.
func (s *Sketcher) SketchBytesInto(k *Sketch, texts ...[]byte) bool {
	var room [8]string
	return s.SketchInto(k, appendViews(room[:0], texts)...)
}

// FingerprintBytes is [Sketcher.Fingerprint] of texts in bytes. It copies, keeps and changes none of them.
func (s *Sketcher) FingerprintBytes(texts ...[]byte) uint64 {
	var room [8]string
	return s.Fingerprint(appendViews(room[:0], texts)...)
}

// appendViews appends each text as a string that shares its memory: good only as long as no one writes into that.
func appendViews(dst []string, texts [][]byte) []string {
	for _, text := range texts {
		dst = append(dst, unsafe.String(unsafe.SliceData(text), len(text)))
	}
	return dst
}
