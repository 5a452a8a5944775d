package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/neardup/sidecar/jobs/ask"
)

// readAnswers reads a file of answers, if it exists. If a pair was answered twice, the later answer counts.
func readAnswers(file string) ([]ask.Answer, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var answers []ask.Answer
	places := map[[2]string]int{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		var a ask.Answer
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &a); err != nil || !slices.Contains([]ask.Verdict{ask.Same, ask.Different, ask.Skip, ask.Undo}, a.Verdict) {
			return nil, fmt.Errorf(`%s: line %d: %.80q is not an answer such as {"a":"1","b":"2","verdict":"same","at":"2024-03-01T12:00:00Z"}: correct it or delete the line`,
				file, number, line)
		}
		pair := [2]string{min(a.A, a.B), max(a.A, a.B)}
		if at, known := places[pair]; known {
			answers[at].Verdict = ask.Undo
		}
		places[pair] = len(answers)
		answers = append(answers, a)
	}
	return slices.DeleteFunc(answers, func(a ask.Answer) bool { return a.Verdict == ask.Undo }), err
}

// appendAnswer appends an answer to the file. It overwrites nothing, so two runs at the same time lose no answers.
func appendAnswer(file string, a ask.Answer) (err error) {
	var line bytes.Buffer
	lines := json.NewEncoder(&line)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(a); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("%w: name another file with --answers", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	whole := line.Bytes()
	if last := make([]byte, 1); info.Size() > 0 {
		if _, err := f.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
		if last[0] != '\n' { // the line was cut off, or written by hand
			whole = append([]byte("\n"), whole...)
		}
	}
	if _, err := f.Write(whole); err != nil {
		return err
	}
	return f.Sync()
}
