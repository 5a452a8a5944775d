package boilerplate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch"
)

const footer = "This message is confidential and is for its addressee alone. If you got it by mistake, please delete it."

// TestFile: what was written is read again, and so are a bare passage, empty lines and a byte order mark.
func TestFile(t *testing.T) {
	list := []Passage{{footer, 412, []string{"a<1>", "b"}}, {Text: strings.Repeat("夜间渡轮恢复航行", 5)}}
	var file bytes.Buffer
	expect.OK(t, Write(&file, list))
	expect.Same(t, list, expect.Value(Parse(file.Bytes()))(t), "read back")
	expect.Same(t, list, expect.Value(Parse([]byte("\uFEFF\n"+file.String()+"\r\n\n")))(t), "read back")
	expect.Same(t, footer+"\n"+list[1].Text+"\n", Lines(list), "lines")
	expect.Same(t, "a b\n", Lines([]Passage{{Text: " a\n b"}}), "a passage of two lines")
}

func TestBadFile(t *testing.T) {
	line := func(text string) string { return fmt.Sprintf("{\"passage\":%q}\n", text) }
	for text, want := range map[string]string{
		"": "has no passage: write a file with sidecar cluster --boilerplate", "\n \n": "has no passage",
		line(footer) + "{}\n":                                          "line 2: has no passage",
		line(footer) + "\n[]":                                          "line 3: is not a JSON object with a passage",
		line(footer) + `{"passage":"` + footer:                         "line 2: is not a JSON object with a passage: unexpected end",
		line(footer) + "\x1f\x8b\x08":                                  "line 2: is not a JSON object",
		strings.Repeat(line(footer), MostPassages) + line("x "+footer): "line 10001: is one more than the 10000 passages",
	} {
		if list, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, %d passages; want %q", text, err, len(list), want)
		}
	}
}

// TestCheck: whether a passage is long enough is the rule's to say.
func TestCheck(t *testing.T) {
	characters := strings.Repeat("夜间渡轮恢复航行", 3)
	for _, c := range []struct {
		text   string
		scheme sketch.Scheme
		enough bool
	}{
		{footer, sketch.Scheme{}, true},
		{"This message is confidential.", sketch.Scheme{}, false},
		{"1 2 3 4 5 6 7 8 9 10 11 12", sketch.Scheme{}, true},
		{"1 2 3 4 5 6 7 8 9 10 11 12", sketch.Scheme{DropNumbers: true}, false},
		{characters, sketch.Scheme{}, false}, // 24 characters, and 36 are as long as 12 words
		{characters, sketch.Scheme{Words: 3, Characters: 6}, true},
		{"<p>" + footer + "</p>", sketch.Scheme{Content: sketch.ContentUseful}, true},
	} {
		err := Check([]Passage{{Text: footer + footer}, {Text: c.text}}, c.scheme)
		if (err == nil) != c.enough || !c.enough && !strings.Contains(err.Error(), "is shorter than 12 words") {
			t.Errorf("%q: %v, want enough: %v", c.text, err, c.enough)
		}
		scheme := c.scheme
		scheme.Boilerplate = Lines([]Passage{{Text: c.text}})
		with, without := expect.Value(sketch.New(scheme))(t), expect.Value(sketch.New(c.scheme))(t)
		if slices.Equal(with.Shingles(c.text), without.Shingles(c.text)) == c.enough {
			t.Errorf("%q is left out: %v, want %v", c.text, !c.enough, c.enough)
		}
	}
}

// TestFit: what was learned is read again, however much it is. A passage that is too long leaves room for others.
func TestFit(t *testing.T) {
	long := []Passage{{Text: strings.Repeat(footer+"<", 1<<12)}} // 430 KB
	list := slices.Concat([]Passage{{Text: strings.Repeat("x", MostBytes)}}, slices.Repeat(long, 100), slices.Repeat([]Passage{{Text: footer}}, 2*MostPassages))
	for _, c := range []struct {
		list         []Passage
		least, bytes int
	}{{list, 1000, MostBytes - 200}, {list[101:], MostPassages, 0}, {list[1:3], 2, 0}} {
		var file bytes.Buffer
		fit := Fit(c.list)
		expect.OK(t, Write(&file, fit))
		expect.Same(t, fit, expect.Value(Parse(file.Bytes()))(t), "read back")
		if file.Len() > MostBytes || file.Len() < c.bytes || len(fit) < c.least {
			t.Errorf("%d of %d passages fit, in %d bytes", len(fit), len(c.list), file.Len())
		}
	}
	expect.Same(t, 0, len(Fit(list[:1])), "too long a passage")
}

// TestMarker finds passages, whole and in part, and where they stand.
func TestMarker(t *testing.T) {
	const closing = "You get this letter because you subscribed to it. To end your subscription, answer with an empty mail."
	list := []Passage{{Text: footer}, {Text: closing}, {Text: strings.Repeat("another passage ", 8)}}
	for _, scheme := range []sketch.Scheme{{}, {Boilerplate: Lines(list)}} {
		m := NewMarker(expect.Value(sketch.New(scheme))(t), list)
		for text, want := range map[string][]string{
			"Hello " + footer + " Bye": {footer}, strings.ToUpper(footer) + "\n\n" + closing: {strings.ToUpper(footer), closing},
			"I see. This message is confidential and is for its addressee alone. If you got it, say so.": {"This message is confidential and is for its addressee alone. If you got it,"},
			"Nothing.": nil, "This message is confidential.": nil, "<p>Hello</p> <p>" + closing + "</p>": nil,
		} {
			passages, marks := m.Find(text)
			var got []string
			for _, mark := range marks {
				got = append(got, text[mark.From:mark.To])
			}
			expect.Same(t, want, got, "marks of %q", text)
			if expected := strings.Contains(text, closing); slices.Contains(passages, 1) != expected || slices.Contains(passages, 2) {
				t.Errorf("%q has the passages %v", text, passages)
			}
		}
	}
}
