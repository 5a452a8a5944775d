package chaos

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// texts makes up documents. Those of one topic are near-duplicates, those of two topics have nothing in common but a word by
// which all are found.
type texts struct {
	words  []string
	topics [][]string
	marks  atomic.Int64
}

// common are the words by which searches find documents of all topics.
var common = []string{"river", "ferry", "harbour", "market", "bridge", "island"}

const (
	topicWords = 40
	topicCount = 40
)

// newTexts returns texts over ASCII, or over more.
func newTexts(seed uint64, ascii bool) *texts {
	r := rand.New(rand.NewPCG(seed, 0))
	t := &texts{}
	const syllables = "ba ce di fo gu ha je ki lo mu na pe ri so tu va we xi yo zu"
	list := strings.Fields(syllables)
	for range 4000 {
		var word strings.Builder
		for range 3 + r.IntN(2) {
			word.WriteString(list[r.IntN(len(list))])
		}
		if !ascii && r.IntN(10) == 0 {
			word.WriteString([]string{"é", "ß", "日本", "ø", "𝄞"}[r.IntN(5)])
		}
		t.words = append(t.words, word.String())
	}
	for range topicCount {
		t.topics = append(t.topics, t.draw(r))
	}
	return t
}

func (t *texts) draw(r *rand.Rand) (words []string) {
	for range topicWords {
		words = append(words, t.words[r.IntN(len(t.words))])
	}
	return words
}

// about returns title and body of a text of a topic: a number, or anything else for one that no other text has.
func (t *texts) about(r *rand.Rand, topic string) (title, body string) {
	var n int
	words := []string(nil)
	if _, err := fmt.Sscanf(topic, "t%d", &n); err == nil {
		words = append(words, t.topics[n]...)
		for range r.IntN(3) {
			words[r.IntN(len(words))] = t.words[r.IntN(len(t.words))]
		}
	} else {
		words = t.draw(r)
	}
	return strings.Join(words[:4], " "), common[r.IntN(len(common))] + " " + strings.Join(words[4:], " ")
}

// topic returns the name of a topic, with the chance of fresh in 100 of one that nothing else is about.
func (t *texts) topic(r *rand.Rand, fresh int) string {
	if r.IntN(100) < fresh {
		return fmt.Sprint("f", t.marks.Add(1))
	}
	return fmt.Sprint("t", r.IntN(topicCount))
}

// document returns a whole document as JSON, in a form that no encoder would choose; without an id where that is empty.
func (t *texts) document(r *rand.Rand, id, topic string, filler int, more []string) []byte {
	title, body := t.about(r, topic)
	members := append([]string{
		fmt.Sprintf(`"mark":"m%d"`, t.marks.Add(1)), fmt.Sprintf(`"n":%d`, r.IntN(1000)),
		`"topic":"` + topic + `"`, `"title":` + t.quoted(r, title), `"body":` + t.quoted(r, body),
	}, more...)
	if id != "" {
		members = append(members, `"id":"`+id+`"`)
	}
	if filler > 0 {
		members = append(members, `"filler":"`+strings.Repeat("x", filler)+`"`)
	}
	r.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	gap := []string{"", "", " ", "  "}
	return []byte("{" + gap[r.IntN(4)] + strings.Join(members, ","+gap[r.IntN(4)]) + gap[r.IntN(4)] + "}")
}

// part returns members to set in a document of the topic: all of the text, some of it, or none; and some of more.
func (t *texts) part(r *rand.Rand, topic string, more []string) []byte {
	title, body := t.about(r, topic)
	members := fmt.Sprintf(`"part":"p%d","n":%d`, t.marks.Add(1), r.IntN(1000))
	switch r.IntN(4) {
	case 0, 1:
		members += `,"title":` + t.quoted(r, title) + `,"body":` + t.quoted(r, body)
	case 2:
		members += `,"body":` + t.quoted(r, body)
	}
	for _, member := range more {
		if r.IntN(3) == 0 {
			members += "," + member
		}
	}
	return []byte("{" + members + "}")
}

// quoted returns a text as a JSON string, now and then with an escape that it does not need.
func (t *texts) quoted(r *rand.Rand, text string) string {
	if r.IntN(4) == 0 {
		text = strings.Replace(text, "a", `\u0061`, 1)
	}
	return `"` + text + `"`
}
