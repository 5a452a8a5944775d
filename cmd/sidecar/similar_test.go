package main

import (
	"io"
	"strings"
	"testing"
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
		if got, err := readDocument(strings.NewReader(in)); err != nil || string(got) != want {
			t.Errorf("%q is read as %s, %v", in, got, err)
		}
	}
	if _, err := readDocument(io.LimitReader(endless{}, maxStdin+1)); err == nil {
		t.Error("too long a text is taken")
	}
}
