// Package boilerplate reads and writes files of passages that stand in many otherwise unlike documents, such as disclaimers and footers. A line
// is a JSON object: the passage, in how many documents it stands, and the ids of some of these. Only the passage is needed.
package boilerplate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/neardup/sidecar/sketch"
)

// Limits of a file.
const (
	// MostPassages is how many passages a file may hold.
	MostPassages = 10_000
	// MostBytes is how large a file may be.
	MostBytes = 8 << 20
)

// Passage is a line of a file.
type Passage struct {
	Text string `json:"passage"`
	// Documents is in how many otherwise unlike documents it stands, IDs are some of them.
	Documents int      `json:"documents,omitempty"`
	IDs       []string `json:"ids,omitempty"`
}

// Parse reads the text of a file. Its error names the line. [Check] says whether the passages are long enough.
func Parse(text []byte) (list []Passage, err error) {
	number := 0
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\uFEFF"))) {
		if number++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		p := Passage{}
		switch wrong := json.Unmarshal(line, &p); {
		case wrong != nil:
			err = fmt.Errorf("is not a JSON object with a passage: %w", wrong)
		case p.Text == "":
			err = errors.New(`has no passage: write {"passage": "…"}`)
		case len(list) == MostPassages:
			err = fmt.Errorf("is one more than the %d passages that a file may have: drop those in the fewest documents", MostPassages)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, errors.New("has no passage: write a file with sidecar cluster --boilerplate, or leave the key out")
	}
	return list, nil
}

// Check returns an error if a passage is too short for a scheme: then nothing is left out because of it.
func Check(list []Passage, scheme sketch.Scheme) error {
	scheme.Boilerplate, scheme.Content = "", sketch.ContentRaw
	s, err := sketch.New(scheme)
	if err != nil {
		return err
	}
	for _, p := range list {
		if len(s.Windows(p.Text)) == 0 {
			return fmt.Errorf("%.40q is shorter than %d words, as the rule counts them: only longer passages are left out", p.Text, sketch.PassageWords)
		}
	}
	return nil
}

// Write writes a file.
func Write(w io.Writer, list []Passage) error {
	out := bufio.NewWriter(w)
	for _, p := range list {
		_, _ = out.Write(p.line()) // Flush returns the error
	}
	return out.Flush()
}

// Fit returns those of a list that a file may hold. The first ones come first.
func Fit(list []Passage) (fit []Passage) {
	size := 0
	for _, p := range list {
		if more := len(p.line()); len(fit) < MostPassages && size+more <= MostBytes {
			fit, size = append(fit, p), size+more
		}
	}
	return fit
}

// line returns the line of a file.
func (p *Passage) line() []byte {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	_ = e.Encode(p) // never fails: texts and a number
	return line.Bytes()
}

// Lines returns the passages as [sketch.Scheme] takes them.
func Lines(list []Passage) string {
	var all strings.Builder
	for _, p := range list {
		all.WriteString(strings.Join(strings.Fields(p.Text), " "))
		all.WriteByte('\n')
	}
	return all.String()
}
