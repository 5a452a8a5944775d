package config

import (
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

// TestSetThreshold changes a threshold or adds one, and keeps every other byte: comments, order, line ends. Where it can't, it says what to write.
func TestSetThreshold(t *testing.T) {
	env := func(string) (string, bool) { return "0.5", true }
	const head = "# ours\nengines:\n- name: a\n  kind: elasticsearch\n  listen: 127.0.0.1:9201\n  urls: [http://localhost:9200] # here\n  indices:\n  - match: other\n    fields: [body]\n"
	for _, c := range []struct{ entry, want string }{
		{"  - match: news # all\n    fields: [title]\n", "  - match: news # all\n    threshold: 0.71\n    fields: [title]\n"},
		{"  - fields: [title]\r\n    match: news\r\n", "  - fields: [title]\r\n    match: news\r\n    threshold: 0.71\r\n"},
		{"  - {match: news, threshold: 0.640, fields: [title]} # é\n", "  - {match: news, threshold: 0.71, fields: [title]} # é\n"},
		{"  - match: news\n    fields: [é]\n    threshold:   .6   # was 0.6\n", "  - match: news\n    fields: [é]\n    threshold:   0.71   # was 0.6\n"},
		{"  - match: news\n    fields: [title]\n    cases: [{same: [a, b]}]\n", "  - match: news\n    threshold: 0.71\n    fields: [title]\n    cases: [{same: [a, b]}]\n"},
		{"  - {match: news, fields: [title]}\n", ""},
		{"  - match: news\n    fields: [title]\n    threshold: ${T}\n", "  - match: news\n    fields: [title]\n    threshold: 0.71\n"},
		{"  - match: news\n    fields: [title]\n    threshold: &t 0.6\n  - match: more\n    fields: [title]\n    threshold: *t\n", ""},
	} {
		got, err := SetThreshold([]byte(head+c.entry), env, "a", 1, "news", 0.71)
		if c.want == "" {
			if err == nil || !strings.Contains(err.Error(), "engines[0].indices[1].threshold: can't be set without changing more: write threshold: 0.71 there yourself") {
				t.Errorf("%s: %v\n%s", c.entry, err, got)
			}
			continue
		}
		expect.OK(t, err)
		expect.Same(t, head+c.want, string(got), "")
	}
	_, err := SetThreshold([]byte(head+"  - match: news\n    fields: [title]\n"), env, "a", 0, "news", 0.71)
	if err == nil || !strings.Contains(err.Error(), "the file has changed meanwhile: write threshold: 0.71 into the rule for news yourself") {
		t.Errorf("another rule stands there: %v", err)
	}
}
