package jsonedit

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/expect"
)

// bracket puts what it is given in brackets, in the memory that it used before.
func bracket() func([]byte) []byte {
	var out []byte
	return func(text []byte) []byte {
		out = append(append(append(out[:0], '['), text...), ']')
		return out
	}
}

func TestEditLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10) // longer than a buffer
	for _, c := range []struct{ body, want string }{
		{"", ""},
		{"a", "[a]"},
		{"a\n", "[a\n]"},
		{"\n\n a\r\nb", "[\n][\n][ a\r\n][b]"},
		{long + "\n" + long, "[" + long + "\n][" + long + "]"},
	} {
		for _, src := range []io.Reader{strings.NewReader(c.body), iotest.OneByteReader(strings.NewReader(c.body)), iotest.DataErrReader(strings.NewReader(c.body))} {
			var out bytes.Buffer
			expect.OK(t, EditLines(&out, src, '\n', bracket(), nil))
			expect.Same(t, c.want, out.String(), "%.100q", c.body)
		}
	}
}

// A line that is too long passes, wherever it stands, and the lines around it are edited.
func TestOverlongLines(t *testing.T) {
	atBound := strings.Repeat("y", MaxDocument-1) + "\n"
	long := "y" + atBound
	endless := long[:len(long)-1]
	var body []io.Reader
	var out, want maphash.Hash // which takes less than the texts
	out.SetSeed(want.Seed())
	for _, part := range []string{"a\n", long, long, "b\n", atBound, endless, "y"} {
		body = append(body, strings.NewReader(part))
	}
	for _, part := range []string{"[a\n]", long, long, "[b\n]", "[", atBound, "]", endless, "y"} {
		_, _ = want.WriteString(part)
	}
	told := 0
	err := EditLines(&out, io.MultiReader(body...), '\n', bracket(), func(dst io.Writer, src io.Reader) error {
		told++
		_, err := io.Copy(dst, src)
		return err
	})
	if err != nil || out.Sum64() != want.Sum64() || told != 3 {
		t.Errorf("it is another text, or told of %d (%v)", told, err)
	}
}

func TestEditWhole(t *testing.T) {
	full := strings.Repeat("y", MaxDocument)
	for body, want := range map[string]string{"": "[]", "a\nb": "[a\nb]", full: "[" + full + "]", full + "y": full + "y"} {
		var out bytes.Buffer
		expect.OK(t, EditWhole(&out, strings.NewReader(body), bracket(), nil))
		expect.Same(t, want, out.String(), "%.100q", body)
	}
}

// once hands out an error once, and no data with it.
type once struct{ err error }

func (o *once) Read([]byte) (int, error) {
	err := o.err
	o.err = io.EOF
	return 0, err
}

// Where a client breaks off, nothing looks whole: the error is handed on and the line at hand is not edited.
func TestBrokenOff(t *testing.T) {
	broken := errors.New("broken off")
	lines := func(dst io.Writer, src io.Reader, edit func([]byte) []byte, long LongCopy) error {
		return EditLines(dst, src, '\n', edit, long)
	}
	for name, c := range map[string]struct {
		edit func(io.Writer, io.Reader, func([]byte) []byte, LongCopy) error
		want string
	}{"lines": {lines, "[a\n]"}, "whole": {EditWhole, ""}} {
		var out bytes.Buffer
		err := c.edit(&out, io.MultiReader(strings.NewReader("a\nb"), &once{broken}), bracket(), nil)
		if diff := cmp.Diff(c.want, out.String()); diff != "" || !errors.Is(err, broken) {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
	}
}
