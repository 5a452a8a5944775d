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

// Parse reads the text of a file. Its error names the line.
func Parse(text []byte) (list []Passage, err error) {
	plain, err := sketch.New(sketch.Scheme{Content: sketch.ContentRaw})
	if err != nil {
		return nil, err
	}
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
		case len(plain.Windows(p.Text)) == 0:
			err = fmt.Errorf("%.40q is shorter than %d words: only longer passages are left out", p.Text, sketch.PassageWords)
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

// Write writes a file.
func Write(w io.Writer, list []Passage) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, p := range list {
		if err := e.Encode(p); err != nil {
			return err
		}
	}
	return out.Flush()
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
