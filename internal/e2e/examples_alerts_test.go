package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/demo/corpus"
	"github.com/neardup/sidecar/internal/expect"
)

// watched are the saved searches of the programs that send alerts.
var watched = map[string]string{"ann": "ferry", "ben": "library", "eve": "choir"}

// alerts runs a program that sends alerts, again and again: each user gets one alert for each story that has the user's word.
func (x *examples) alerts(t *testing.T, direct api, command string, replaced ...string) {
	t.Helper()
	for _, index := range []string{"stories", "saved-stories", "sent-stories"} {
		direct.drop(t, index+x.suffix)
	}
	if !strings.Contains(command, "< examples/articles.jsonl") {
		t.Fatalf("%s reads no articles", command)
	}
	folder, sent := t.TempDir(), map[string][]string{}
	var all []corpus.Document
	send := func(lists ...[]corpus.Document) (alerts int) {
		var runs strings.Builder // of the program, all at once
		for i, list := range lists {
			file := filepath.Join(folder, fmt.Sprint(i))
			var lines []byte
			for _, d := range list {
				if !slices.Contains(all, d) {
					all = append(all, d)
				}
				lines = append(append(lines, must(json.Marshal(d))(t)...), '\n')
			}
			check(t, os.WriteFile(file, lines, 0o600))
			fmt.Fprintf(&runs, "%s > %s.out & p%d=$!\n", strings.TrimSpace(strings.Replace(command, "examples/articles.jsonl", file, 1)), file, i)
		}
		for i := range lists {
			fmt.Fprintf(&runs, "wait $p%d; cat %s\n", i, filepath.Join(folder, fmt.Sprint(i))+".out")
		}
		for line := range strings.Lines(x.run(t, runs.String(), replaced...)) {
			user, article, _ := strings.Cut(line, ": ")
			id, _, _ := strings.Cut(article, " ")
			sent[user] = append(sent[user], id)
			alerts++
		}
		o := oracleOf(t, api{}, all, seed, 0.64)
		for user, word := range watched {
			var matches []string
			for _, d := range all {
				if strings.Contains(strings.ToLower(d.Title+" "+d.Body), word) {
					matches = append(matches, d.ID)
				}
			}
			// No two alerts are of one story, and each article is of the story of an alert.
			if diff := cmp.Diff(o.collapsed(slices.Concat(sent[user], matches)), sent[user]); diff != "" || len(sent[user]) == 0 {
				t.Errorf("stories and alerts of %s: %s", user, diff)
			}
		}
		return alerts
	}
	same(t, 5, send(x.list), "alerts of the articles")
	same(t, 0, send(x.list), "alerts after a restart")

	price := func(id, pounds string) corpus.Document {
		return corpus.Document{ID: id, PublishedAt: x.list[0].PublishedAt, Title: "Ferry fares", Body: "A single crossing costs " + pounds + " pounds from May."}
	}
	long := x.list[0]
	long.Body = strings.Repeat("Nobody on the northern quay had expected the harbour board to publish its accounts this week. ", 2) + long.Body[:200]
	writers := make([][]corpus.Document, 3)
	for i := range writers {
		long.ID = fmt.Sprintf("together-%d", i)
		writers[i] = []corpus.Document{long}
	}
	same(t, 1, send(writers...), "alerts of an article that three programs write at once")
	fares := []corpus.Document{price("fares-1", "4.00"), price("fares-2", "4.50"), price("fares-3", "4.00")}
	same(t, 2, send(fares), "alerts of texts that differ in numbers")
}

// feed has the reader of news list the stories of the alerts and mark one as read: it is gone then, and none of its other versions comes in its place.
func (x *examples) feed(t *testing.T, direct api, base string) {
	t.Helper()
	direct.refresh(t, "stories"+x.suffix)
	list, mark, _ := strings.Cut(strings.TrimSpace(x.block(t, "feed_opensearch.py")), "\n")
	at := base + " --index stories" + x.suffix + " --state " + filepath.Join(t.TempDir(), "read.txt")
	before := strings.Split(strings.TrimSpace(x.run(t, list, "http://localhost:9201", at)), "\n")
	several := slices.IndexFunc(before, func(line string) bool { return strings.HasSuffix(line, " more)") })
	if several < 0 {
		t.Fatalf("no story has several versions:\n%s", strings.Join(before, "\n"))
	}
	id, _, _ := strings.Cut(before[several], " ")
	after := strings.Split(strings.TrimSpace(x.run(t, mark+"\n", "http://localhost:9201", at, "ferry-1", id)), "\n")
	expect.Same(t, slices.Delete(slices.Clone(before), several, several+1), after, "stories once %s was read", id)
}
