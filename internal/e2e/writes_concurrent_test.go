package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/rule"
)

// soaking reports whether the long forms of tests are wanted: make soak.
func soaking() bool { return os.Getenv("NEARDUP_SOAK") != "" }

// scribbler makes up writes of a few documents.
type scribbler struct {
	*rand.Rand
	documents int
}

func (s scribbler) of(options ...string) string { return options[s.IntN(len(options))] }

func (s scribbler) id() string { return fmt.Sprint("d", s.IntN(s.documents)) }

// text is a value for a sketched field.
func (s scribbler) text() string {
	words := []string{"river", "ferry", "pier", "town", "night", "bridge", "market", "butter"}
	var list []string
	for range 1 + s.IntN(12) {
		list = append(list, words[s.IntN(len(words))])
	}
	quoted, _ := json.Marshal(strings.Join(list, " ")) // a string always can be
	return s.of(string(quoted), string(quoted), string(quoted), string(quoted), `""`, "null", `["`+words[0]+` x",`+string(quoted)+`]`)
}

// part is the members of a document or of a part of one.
func (s scribbler) part() string {
	title, body, n := `"title":`+s.text(), `"body":`+s.text(), fmt.Sprintf(`"n":%d`, s.IntN(3))
	list := []string{title + "," + body, title + "," + body, title + "," + body + "," + n, body + "," + title, title, body + "," + n, n, ""}
	part := list[s.IntN(len(list))]
	if s.IntN(20) == 0 {
		part = strings.TrimSuffix(`"neardup_sketch":"forged",`+part, ",")
	}
	return "{" + part + "}"
}

// update is the body of an update.
func (s scribbler) update() string {
	switch s.IntN(8) {
	case 0, 1, 2:
		return `{"doc":` + s.part() + `}`
	case 3:
		return `{"doc":` + s.part() + `,"doc_as_upsert":` + s.of("true", "true", `"true"`, "false") + `}`
	case 4:
		return `{"upsert":` + s.part() + `,"doc":` + s.part() + `}`
	case 5:
		return `{"doc":` + s.part() + `,"detect_noop":false,"doc_as_upsert":true}`
	case 6:
		return `{"script":"ctx._source.n=7","upsert":` + s.part() + s.of("", `,"scripted_upsert":true`, `,"scripted_upsert":false`) + `}`
	}
	return `{"script":{"source":"ctx.op='` + s.of("none", "delete") + `'"},"upsert":` + s.part() + `}`
}

// step is a request to an index or its alias, in the form of api.send.
func (s scribbler) step(index string) string {
	index = s.of(index, index+"-alias")
	transfer := s.of("", "", "", " gzip", " chunked")
	switch s.IntN(9) {
	case 0, 1:
		return "PUT" + transfer + " /" + index + "/_doc/" + s.id() + " | " + s.part()
	case 2:
		return "PUT" + transfer + " /" + index + "/_create/" + s.id() + " | " + s.part()
	case 3, 4, 5:
		return "POST" + transfer + " /" + index + "/_update/" + s.id() + "?retry_on_conflict=" + s.of("0", "5") + " | " + s.update()
	case 6:
		return "DELETE /" + index + "/_doc/" + s.id() + " |"
	}
	var lines strings.Builder
	for range 1 + s.IntN(12) {
		op := s.of("index", "create", "update", "update", "update", "delete")
		fmt.Fprintf(&lines, "{%q:{\"_id\":%q}}¶", op, s.id())
		switch op {
		case "index", "create":
			lines.WriteString(s.part() + "¶")
		case "update":
			lines.WriteString(s.update() + "¶")
		}
	}
	return "POST" + transfer + " /" + index + "/_bulk | " + lines.String()
}

// scribble lets several clients write the same documents at once for a second, or until a hundred writes are done, and returns how many were.
func scribble(t *testing.T, through api, index string, seed uint64) int64 {
	var all sync.WaitGroup
	var done atomic.Int64
	began := time.Now()
	for client := range 6 {
		all.Go(func() {
			s := scribbler{rand.New(rand.NewPCG(seed, uint64(client))), 25}
			for time.Since(began) < time.Second || done.Load() < 100 && time.Since(began) < time.Minute {
				step := s.step(index)
				switch r := through.send(t, step, index); {
				case r.status < 300:
					done.Add(1)
				case r.status == http.StatusConflict || r.status == http.StatusNotFound:
				default:
					t.Errorf("%.300s: %d %.300s", step, r.status, r.body)
					return
				}
			}
		})
	}
	all.Wait()
	return done.Load()
}

// TestConcurrentWrites has several clients write the same few documents through the sidecar at once in every way, while reindex
// runs over them again and again. Whatever sketch stands there after each round is that of the text that stands there.
func TestConcurrentWrites(t *testing.T) {
	rounds := 2
	if soaking() {
		rounds = 100
	}
	start := effort.Seed(t)
	elasticEngines(t, func(t *testing.T, e *engines.Engine) {
		s := setup{match: "wcon-*"}
		const index = "wcon-1"
		through, direct := api{e, serve(t, e, s)}, api{e, e.URL}
		direct.drop(t, index)
		call(t, e, "PUT", e.URL+"/"+index, `{"aliases":{"`+index+`-alias":{}},"settings":{"number_of_shards":2}}`).want(t, 200)
		file := config(t, e, s)
		stop, stopped := make(chan struct{}), make(chan struct{})
		runs, patched := 0, 0
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
				}
				out, code := sidecar(t, "reindex", "--config", file)
				if code != 0 {
					t.Errorf("reindex ended with %d: %s", code, out)
					return
				}
				runs, patched = runs+1, patched+number(t, out, "written")
			}
		}()
		done, documents, sketched, r := int64(0), 0, 0, ruleOfTests(t)
		for round := range rounds {
			done += scribble(t, through, index, start+uint64(round)<<8)
			for id, h := range kept(t, direct, index) {
				if why := wrong(r, h.source); why != "" || strings.Contains(string(h.source), "forged") {
					t.Errorf("round %d, %s: %s: %s", round, id, why, h.source)
				}
				documents++
				if rule.HasSketch(h.source) {
					sketched++
				}
			}
		}
		close(stop)
		<-stopped
		t.Logf("%d writes done, %d runs of reindex wrote %d; of %d documents judged %d have a sketch", done, runs, patched, documents, sketched)
		if done < 100 || runs == 0 || sketched < documents/4 {
			t.Error("too little was done")
		}
	})
}
