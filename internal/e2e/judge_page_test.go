package e2e

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/neardup/sidecar/demo/corpus"
	configuration "github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/engines"
	"github.com/neardup/sidecar/internal/upstream"
)

// excerptsAndNeighbours returns pairs of texts that all share about a third of their wording. With an id that begins with e it is a text and an excerpt, with n
// two passages that overlap by half: only containment tells them apart.
func excerptsAndNeighbours() (list []corpus.Document) {
	random := rand.New(rand.NewPCG(2, 4))
	words := func(from, to, i int) string {
		var list []string
		for w := from; w < to; w++ {
			list = append(list, fmt.Sprintf("w%dx%d", i, w))
		}
		return strings.Join(list, " ")
	}
	for i := range 60 {
		share := 75 + random.IntN(30)
		a, b, kind := words(0, 300, i), words(0, share, i), "e"
		if i%2 == 1 {
			share = 62 + random.IntN(12)
			a, b, kind = words(0, 150, i), words(150-share, 300-share, i), "n"
		}
		list = append(list, corpus.Document{ID: fmt.Sprintf("%s%da", kind, i), Body: a, PublishedAt: "2024-03-01T12:00:00Z"},
			corpus.Document{ID: fmt.Sprintf("%s%db", kind, i), Body: b, PublishedAt: "2024-03-01T12:00:00Z"})
	}
	return list
}

// judgeAll judges pairs on the page until it may stop: by the ids of excerptsAndNeighbours.
const judgeAll = `(async () => {
	const main = document.querySelector('main')
	while (!document.querySelector('#progress.done') && !document.getElementById('pair').hidden) {
		document.querySelector(document.getElementById('id-a').textContent[0] === 'e' ? '[data-verdict=same]' : '[data-verdict=different]').click()
		while (main.getAttribute('aria-busy') === 'true') await new Promise(resolve => setTimeout(resolve, 5))
	}
	const text = id => document.getElementById(id).textContent
	return { counts: text('counts'), advice: text('advice'), progress: text('progress'), write: text('write'), problem: text('problem') }
})()`

// TestJudgePage judges pairs in a browser: by key and mouse, with an answer taken back and one remembered as decided, until it may stop. The preset that tells
// the pairs apart is advised, the threshold written, and the command ends from the page.
func TestJudgePage(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "judged-passages"
		api{e, e.URL}.create(t, index, excerptsAndNeighbours()...)
		file, answers := config(t, e, setup{match: index, fields: "body"}), filepath.Join(t.TempDir(), "answers.jsonl")
		cmd := command(t, t.Context(), "calibrate", "--config", file, "--index", index, "--ask", "--open", "--answers", answers)
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		out := bufio.NewReader(must(cmd.StdoutPipe())(t))
		check(t, cmd.Start())
		address, key, said := pageAddress(t, out)
		const pair = `[document.getElementById('id-a').textContent, document.getElementById('id-b').textContent]`
		seen := visitPage(t, address, key,
			act("axe"), act("tell", "script", pair), act("press", "key", "r"), act("press", "key", "d"), act("press", "key", "u"),
			act("tell", "script", pair), act("press", "key", "r"), act("press", "key", "s"), act("tell", "script", "document.getElementById('done').textContent"),
			act("press", "key", "k"), act("click", "on", "#undo"), act("reload"), act("tell", "script", "location.href"),
			act("tell", "script", judgeAll), act("axe"), act("click", "on", "#write"), act("tell", "script", "document.getElementById('done').textContent"),
			act("click", "on", "#end"), act("axe"), act("tell", "script", "document.getElementById('empty').textContent"))
		accessible(t, seen[0], seen[6], seen[8])
		first := seenAs[[]string](t, seen[1])
		same(t, first, seenAs[[]string](t, seen[2]), "the pair after its answer was taken back")
		same(t, "The last pair is decided: always together.", seenAs[string](t, seen[3]), "")
		if href := seenAs[string](t, seen[4]); strings.Contains(href, "key") {
			t.Errorf("the address still holds the key: %s", href)
		}
		end := seenAs[map[string]string](t, seen[5])
		if !strings.Contains(end["progress"], "You can stop") && !strings.Contains(end["progress"], "more answers help little") || !strings.Contains(end["advice"], "preset: chunks") || end["problem"] != "" {
			t.Errorf("%v", end)
		}
		if got := seenAs[string](t, seen[7]); !strings.HasPrefix(got, "Written to ") || !strings.HasSuffix(got, "A running serve reloads it.") {
			t.Errorf("after writing: %q, %v", got, end)
		}
		if got := seenAs[string](t, seen[9]); !strings.Contains(got, answers) || !strings.Contains(got, "Written to ") {
			t.Errorf("at the end: %q", got)
		}
		said += string(must(io.ReadAll(out))(t))
		check(t, cmd.Wait())
		written := regexp.MustCompile(`\n  threshold: (0\.\d+)\n  # preset: chunks\n`).FindStringSubmatch(said)
		if text := string(must(os.ReadFile(file))(t)); written == nil || !strings.Contains(text, "threshold: "+written[1]+"\n") {
			t.Errorf("%s\nwritten: %s", said, text)
		}
		from := must(configuration.Load(file, os.LookupEnv))(t)
		log := decided.Open(must(upstream.Open(&from.Engines[0]))(t).Store.Journal())
		check(t, log.Read(t.Context()))
		p, known := log.Pair(index, first[0], first[1])
		if !known || p.Verdict != decided.Same || p.TextA == 0 || p.TextB == 0 || p.By == "" {
			t.Errorf("decided is %+v, %v", p, known)
		}
	})
}

// pageAddress reads what a command with --open says until it names its page. It returns the page's address, the part behind that which holds the key, and all
// that was said.
func pageAddress(t *testing.T, out *bufio.Reader) (address, key, said string) {
	t.Helper()
	for {
		line, err := out.ReadString('\n')
		said += line
		if err != nil {
			t.Fatalf("no address in %s", said)
		}
		if found := pageLine.FindStringSubmatch(line); found != nil {
			return found[1], found[2], said
		}
	}
}

var pageLine = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/(#key=\w+)`)
