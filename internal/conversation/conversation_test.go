package conversation

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
	"github.com/neardup/sidecar/jobs"
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

// store is an engine with a journal in memory.
type store struct {
	adapters.EngineStore
	journal jobs.Ledger
}

func (s *store) Journal() adapters.Journal { return &s.journal }

// TestTakeBackRestores: an answer that is taken back leaves what somebody had decided before.
func TestTakeBackRestores(t *testing.T) {
	for _, before := range []decided.Verdict{decided.Forgotten, decided.Same} {
		s := &store{}
		pair := ask.Pair{A: "a", B: "b", Agreement: 0.5}
		r := &rule.Rule{}
		c := &Conversation{session: ask.New([]ask.Pair{pair}, ask.Counts{}, 0.6), question: &Question{Pair: pair}, rule: r, remembered: map[[2]string]decided.Pair{}}
		c.Engine, c.Index.Name = &upstream.Engine{Config: &config.Engine{Name: "one"}, Store: s}, "news"
		c.Answers = filepath.Join(t.TempDir(), "answers.jsonl")
		log := decided.Open(s.Journal())
		if before != decided.Forgotten {
			expect.Value(log.Add(t.Context(), "anna", decided.Pair{Index: "news", A: "b", B: "a", Verdict: before, TextA: 1, TextB: 2}))(t)
		}
		expect.OK(t, c.Answer(t.Context(), ask.Different, true))
		expect.OK(t, log.Read(t.Context()))
		now, _ := log.Pair("news", "a", "b")
		expect.Must(t, decided.Different, now.Verdict, "decided")
		expect.Value(c.TakeBack(t.Context()))(t)
		expect.OK(t, log.Read(t.Context()))
		if now, there := log.Pair("news", "a", "b"); there != (before != decided.Forgotten) || there && (now.Verdict != before || now.By != "anna" || now.TextA != 1) {
			t.Errorf("after %q: %+v", before, now)
		}
	}
}
