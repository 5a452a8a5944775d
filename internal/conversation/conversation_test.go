package conversation

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/jobs/ask"
)

// TestAnswerOrNothing: an answer that can't be kept does not count, and the question stands. Nor does one to another pair, as a second tab may send, or one that is no verdict.
func TestAnswerOrNothing(t *testing.T) {
	pair := ask.Pair{A: "a", B: "b", Agreement: 0.5}
	c := &Conversation{session: ask.New([]ask.Pair{pair}, ask.Counts{}, 0.6), question: &Question{Pair: pair}}
	c.Answers = filepath.Join(t.TempDir(), "none", "answers.jsonl")
	p := Page(c, func() {})
	for body, want := range map[string]string{
		`{"a":"a","b":"b","verdict":"same"}`:  "name another file with --answers",
		`{"a":"a","b":"c","verdict":"same"}`:  errOtherPair.Error(),
		`{"a":"a","b":"b","verdict":"maybe"}`: "use same, different or skip",
	} {
		w := httptest.NewRecorder()
		p.API.ServeHTTP(w, httptest.NewRequest("POST", "/api/answer", strings.NewReader(body)))
		if w.Code != 409 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		expect.Same(t, 0, c.Finding().Judged(), "answers after %s", body)
		if c.question == nil {
			t.Fatalf("after %s nothing is asked", body)
		}
	}
	c.Answers = filepath.Join(t.TempDir(), "answers.jsonl")
	expect.OK(t, c.Answer(t.Context(), ask.Different, false))
	expect.Same(t, 1, len(expect.Value(readAnswers(c.Answers))(t)), "kept")
}
