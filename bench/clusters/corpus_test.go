package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/internal/expect"
)

// The file has each record once and in order, however many cores made it.
func TestRecords(t *testing.T) {
	texts := expect.Value(corpora.LoadTexts(0))(t)
	s := shelfOf(9_001, 300)
	var file bytes.Buffer
	size := expect.Value(writeRecords(t.Context(), &file, texts, s))(t)
	expect.Same(t, size, int64(file.Len()), "bytes")
	if mean := file.Len() / s.Count; mean < 270 || mean > 330 {
		t.Errorf("a record has %d bytes in the mean", mean)
	}
	i := 0
	for line := range strings.Lines(file.String()) {
		var r record
		expect.JSON(t, []byte(line), &r)
		expect.Same(t, recordOf(texts, s, i), r, "record %d", i)
		i++
	}
	expect.Same(t, s.Count, i, "records")
}
