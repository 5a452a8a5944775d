package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/bench/internal/corpora"
)

// document is one line of the file that all contenders read. Its id is the number of the line.
type document struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// words cuts a text the way in which every contender cuts it again: its letters and digits in lower case.
func words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// planted makes the text of the i-th of many documents. Three in ten are edited versions of an earlier one, in which each word is changed with
// one probability between 0 and 0.15. So some are far above a threshold, some far below, and some near it.
func planted(t *corpora.Texts, s corpora.Shelf, i int) string {
	d := t.Document(s, i)
	w := words(d.Body)
	if d.Cluster == "c"+d.ID[1:] {
		return strings.Join(w, " ")
	}
	r := corpora.Random(i, 3)
	rate, edited := r.Float64()*0.15, make([]string, 0, len(w))
	for _, word := range w {
		switch kind := r.Float64() / rate; {
		case kind >= 1:
			edited = append(edited, word)
		case kind < 0.6:
			edited = append(edited, anyWord(t, r))
		case kind < 0.8:
			edited = append(edited, word, anyWord(t, r))
		}
	}
	return strings.Join(edited, " ")
}

func anyWord(t *corpora.Texts, r *rand.Rand) string {
	for {
		if w := words(t.Sentences[r.IntN(len(t.Sentences))]); len(w) > 0 {
			return w[r.IntN(len(w))]
		}
	}
}

// writeDocuments writes texts to a file, one document a line, and returns how many bytes it has.
func writeDocuments(file string, texts []string) (int64, error) {
	f, err := os.Create(file)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	into := json.NewEncoder(w)
	for i, text := range texts {
		if err := into.Encode(document{ID: strconv.Itoa(i), Text: text}); err != nil {
			return 0, errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return 0, err
	}
	stat, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return stat.Size(), nil
}
