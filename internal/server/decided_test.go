package server

import (
	"strings"
	"testing"
)

// TestDecidedUnread: a sidecar whose engine does not show the decided pairs serves all the same, says so once, and counts.
func TestDecidedUnread(t *testing.T) {
	const text = `
engines:
  - {name: one, kind: opensearch, listen: "127.0.0.1:0", urls: ["http://127.0.0.1:1"], decided: {refresh: 1s}, indices: [{match: a, fields: [t]}]}
`
	r := started(t, text)
	if log := r.log.Take(); strings.Count(log, "the decided pairs can't be read, the last ones stay") != 1 || !strings.Contains(log, "engine one: ") {
		t.Errorf("the log says:\n%s", log)
	}
	before := r.backends["one"]
	r.become(t, strings.Replace(text, "refresh: 1s", "refresh: 0", 1))
	if r.backends["one"] == before || r.backends["one"].decided != nil {
		t.Error("it still reads them")
	}
}
