package main

import (
	"io"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// endless gives zero bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestTyped: an object on standard input is a document, anything else a text.
func TestTyped(t *testing.T) {
	for in, want := range map[string]string{
		` {"title":"a"} `: `{"title":"a"}`, `{"title":`: `{"text":"{\"title\":"}`, "plain <b>text</b>\n": `{"text":"plain \u003cb\u003etext\u003c/b\u003e\n"}`,
		"": `{"text":""}`, "[1]": `{"text":"[1]"}`,
	} {
		expect.Same(t, want, string(expect.Value(readDocument(strings.NewReader(in)))(t)), "%q", in)
	}
	if _, err := readDocument(io.LimitReader(endless{}, maxStdin+1)); err == nil {
		t.Error("too long a text is taken")
	}
}
