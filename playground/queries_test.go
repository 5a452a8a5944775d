package playground

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/try"
)

// TestQueries: lines become queries, each is run, and the rows become a report.
func TestQueries(t *testing.T) {
	p := scene(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch control := r.Header.Get(adapters.ControlHeader); {
		case r.Header.Get("Authorization") != "ann:hunter2":
			w.WriteHeader(401)
			_, _ = io.WriteString(w, "who is "+r.Header.Get("Authorization"))
		case string(body) == `"bad"`:
			w.WriteHeader(400)
			_, _ = io.WriteString(w, "not with hunter2")
		case control == "off":
			_, _ = io.WriteString(w, "a\nb\nc")
		default:
			w.Header().Set(adapters.OutcomeHeader, "collapsed; raw=3")
			_, _ = io.WriteString(w, strings.Repeat("a\n", strings.Count(control, "0.5"))+"b")
		}
	})
	post := func(path, more string) (status int, text string) {
		w := ask(p, path, `{"engine":"e","index":"news","credentials":{"user":"ann","password":"hunter2"}`+more+`}`)
		return w.Code, w.Body.String()
	}
	for more, want := range map[string]string{
		`,"text":"ferry\n\nstorm\n {\"a\": 1}\nferry"`: `200 {"queries":[{"query":"ferry","count":2},{"query":"storm","count":1},{"query":"{\"a\":1}","count":1}],"elsewhere":0,"left":0}`,
		`,"text":"ferry\n{"`:                           `400 {"error":"line 2: it is not valid JSON (column 1: it ends too early)","hint":"` + try.Hint + `"}`,
		`,"text":""`:                                   `200 {"queries":[],"elsewhere":0,"left":0}`,
	} {
		status, text := post("queries", more)
		expect.Same(t, want, fmt.Sprint(status, " ", strings.TrimSpace(text)), "%s", more)
	}
	var row try.Row
	status, text := post("try", `,"query":"ferry","count":3,"threshold":0.5,"against":0.9,"number":1`)
	expect.OK(t, json.Unmarshal([]byte(text), &row))
	if status != 200 || row.Count != 3 || row.Hits != 3 || len(row.Pages) != 2 || row.Pages[0].Hits != 2 || row.Pages[1].Hits != 1 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := post("try", `,"query":"bad"`); status != 200 || !strings.Contains(text, `"error":"not with …"`) {
		t.Errorf("%d %s", status, text)
	}
	if w := ask(p, "try", good); w.Code != 401 || strings.Contains(w.Body.String(), "k3y") {
		t.Errorf("other credentials: %d %s", w.Code, w.Body)
	}
	for _, more := range []string{`,"against":1.5`, `,"against":0.001`, `,"threshold":-1`, `,"query":"{"`} {
		if status, text := post("try", more); status != 400 {
			t.Errorf("%s: %d %s", more, status, text)
		}
	}
	rows := strings.TrimSpace(text)
	status, text = post("report", `,"threshold":0.5,"against":0.9,"elsewhere":2,"rows":[`+rows+`]`)
	var r report
	expect.OK(t, json.Unmarshal([]byte(text), &r))
	if status != 200 || len(r.Rows) != 1 || !strings.Contains(r.HTML, "threshold 0.9") ||
		!strings.Contains(strings.Join(r.Summary, " "), "Left out: 2 lines of other indices.") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := post("report", `,"rows":[`+rows+`]`); status != 400 {
		t.Errorf("rows of two thresholds under one: %d %s", status, text)
	}
}
