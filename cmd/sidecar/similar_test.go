package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// TestSimilarRefuses: what the command line asks for wrongly is refused with what to do, before any engine is asked.
func TestSimilarRefuses(t *testing.T) {
	for args, why := range map[string]string{
		"--index news":                 "takes the id of a document, or - for standard input",
		"1":                            "--index is missing",
		"--index news --threshold 0 1": "--threshold: 0 is out of range",
	} {
		var out, complaint bytes.Buffer
		code := run(t.Context(), append([]string{"similar"}, strings.Fields(args)...), nil, &out, &complaint)
		if code != exitFailed || !strings.Contains(complaint.String(), why) || out.Len() > 0 {
			t.Errorf("%s: %d %s%s", args, code, out.String(), complaint.String())
		}
	}
}

// endless gives zero bytes.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestTyped: an object on standard input is a document, anything else a text.
func TestTyped(t *testing.T) {
	for in, want := range map[string]string{
		` {"title":"a"} `: `{"title":"a"}`, `{"title":`: `{"text":"{\"title\":"}`, "plain <b>text</b>\n": `{"text":"plain \u003cb\u003etext\u003c/b\u003e\n"}`,
		"": `{"text":""}`, "[1]": `{"text":"[1]"}`,
	} {
		if got, err := typed(strings.NewReader(in)); err != nil || string(got) != want {
			t.Errorf("%q is read as %s, %v", in, got, err)
		}
	}
	if _, err := typed(io.LimitReader(endless{}, maxStdin+1)); err == nil {
		t.Error("too long a text is taken")
	}
}
