package adaptertest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// maxWindow caps the window in the contract's plan, maxAsks how often an exchange may ask.
const (
	maxWindow = 25
	maxAsks   = 64
)

// corpus is the ranked list behind each target, in one engine.
type corpus struct {
	rules adapters.Rules
	list  map[string][]Document
}

func (c *corpus) of(target []string) []Document { return c.list[strings.Join(target, ",")] }

// newCorpus makes a list of up to 60 documents for each target: versions of a few texts, some without a sketch, some with one of
// another scheme.
func newCorpus(t *testing.T, s Subject, random *rand.Rand) *corpus {
	t.Helper()
	c := &corpus{rules: Rules(t), list: map[string][]Document{}}
	scheme := sketch.DefaultScheme()
	scheme.Seed += "x"
	foreign, err := sketch.New(scheme)
	if err != nil {
		t.Fatal(err)
	}
	other := *c.rules[0]
	other.Sketcher = foreign
	lacking := random.Float64() * random.Float64()
	for _, target := range s.Targets {
		texts := make([]string, 1+random.IntN(20))
		for i := range texts {
			texts[i] = words(random, random.IntN(60))
		}
		list := make([]Document, random.IntN(60))
		for i := range list {
			index := target[random.IntN(len(target))]
			text := strings.Fields(texts[random.IntN(len(texts))])
			for range random.IntN(4) {
				if len(text) > 0 {
					text[random.IntN(len(text))] = words(random, 1)
				}
			}
			half := len(text) / 2
			source := fmt.Appendf(nil, `{"title":%q,"body":%q,"n":%d}`, strings.Join(text[:half], " "), strings.Join(text[half:], " "), i)
			rule := c.rules.For(index)
			switch {
			case random.Float64() < lacking || rule == nil:
				rule = nil
			case random.IntN(10) == 0:
				rule = &other
			}
			if rule != nil {
				if sketched, _ := rule.SketchOf(source); sketched != nil {
					if source, err = adapters.WithSketch(source, sketched.Text); err != nil {
						t.Fatal(err)
					}
				}
			}
			list[i] = Document{Index: index, ID: fmt.Sprint("id", i), Source: source}
		}
		c.list[strings.Join(target, ",")] = list
	}
	return c
}

func words(random *rand.Rand, n int) string {
	text := make([]string, n)
	for i := range text {
		text[i] = fmt.Sprintf("w%d", random.IntN(5000))
	}
	return strings.Join(text, " ")
}

// window returns the largest window of the rules behind a target, 0 if there are none.
func (c *corpus) window(target []string) (window int) {
	for _, index := range target {
		if rule := c.rules.For(index); rule != nil {
			window = max(window, rule.Window)
		}
	}
	return window
}

// plan is what a dialect is told; what the proxy would have learned is made up.
func (c *corpus) plan(random *rand.Rand) adapters.Plan {
	rate, lacking := random.Float64(), random.IntN(2) == 0
	return adapters.Plan{Rules: c.rules, MaxWindow: maxWindow, Scope: func(target string) adapters.Scope {
		window := c.window(strings.Split(target, ","))
		return adapters.Scope{Configured: window > 0, Window: window, Rate: rate, Lacking: lacking}
	}}
}

// collapsed returns the ranks of the collapsed list, by its definition.
func (c *corpus) collapsed(target []string, window int) []int {
	documents := c.of(target)
	hits := make([]rerank.Hit, len(documents))
	for i, d := range documents {
		hits[i].ID = d.Index + d.ID
		rule := c.rules.For(d.Index)
		if rule == nil {
			continue
		}
		computed, stored := rule.SketchOf(d.Source)
		if stored == nil && rule.Compute {
			stored = computed
		}
		if stored != nil {
			hits[i].Sketch, hits[i].Profile = &stored.Sketch, &rule.Profile
		}
	}
	var ranks []int
	for _, g := range rerank.Collapse(hits, window) {
		ranks = append(ranks, g.Leader)
	}
	for rank := window; rank < len(hits); rank++ {
		ranks = append(ranks, rank)
	}
	return ranks
}

// converse runs a search against the fake engine; spoil, if set, may change the reply to an ask.
func converse(s Subject, c *corpus, exchange adapters.Exchange, spoil func(ask int, reply *adapters.Reply)) (*adapters.Answer, error) {
	var reply *adapters.Reply
	for ask := range maxAsks {
		request, answer, err := exchange.Next(reply)
		if err != nil || answer != nil {
			return answer, err
		}
		reply = s.Engine(request, c.of)
		if spoil != nil {
			spoil(ask, reply)
		}
	}
	return nil, errors.New("the exchange does not end")
}

// begin takes a search apart.
func begin(s Subject, r *adapters.Request, plan adapters.Plan) adapters.ParsedSearch {
	return s.Dialect.Search(s.Dialect.Classify(r), r, plan)
}

func testPages(t *testing.T, s Subject) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for round := 0; round < 40 && !t.Failed(); round++ {
		c := newCorpus(t, s, random)
		for range 3 {
			searches := make([]Search, 1+random.IntN(3)*random.IntN(2))
			for i := range searches {
				searches[i] = Search{Target: s.Targets[random.IntN(len(s.Targets))], From: random.IntN(30) * random.IntN(2), Size: 1 + random.IntN(20)}
			}
			if r := s.Search(searches...); r != nil {
				checkPages(t, s, c, r, c.plan(random), searches)
			}
		}
	}
}

// checkPages compares the answer to a request with the slices of the collapsed lists.
func checkPages(t *testing.T, s Subject, c *corpus, r *adapters.Request, plan adapters.Plan, searches []Search) {
	t.Helper()
	configured := func(q Search) bool { return c.window(q.Target) > 0 }
	parsed := begin(s, r, plan)
	if parsed.Exchange == nil {
		if parsed.Refusal != nil || slices.ContainsFunc(searches, configured) {
			t.Errorf("%+v: left alone: %s", searches, parsed.Reason)
		}
		return
	}
	answer, err := converse(s, c, parsed.Exchange, nil)
	if err != nil {
		t.Errorf("%+v: %v", searches, err)
		return
	}
	if bytes.Contains(answer.Body, []byte(adapters.SketchField)) {
		t.Errorf("%+v: our field is shown: %s", searches, answer.Body)
	}
	pages := s.Hits(answer.Body)
	if len(pages) != len(searches) || len(answer.Outcomes) != len(searches) {
		t.Errorf("%+v: got %d pages, %d outcomes", searches, len(pages), len(answer.Outcomes))
		return
	}
	for i, q := range searches {
		want, window := []string{}, min(c.window(q.Target), maxWindow)
		all := list(t, s, c, searches[i])
		ranks := c.collapsed(q.Target, window)
		for _, rank := range ranks[min(q.From, len(ranks)):min(q.From+q.Size, len(ranks))] {
			want = append(want, all[rank])
		}
		if diff := cmp.Diff(want, append([]string{}, pages[i]...)); diff != "" {
			t.Errorf("%+v: search %d of %d ranks, window %d (-want +got):\n%s", searches, i, len(all), window, diff)
		}
		if o := answer.Outcomes[i]; configured(q) && (o.Reason != "" || o.Raw != len(all) || o.Window != window) {
			t.Errorf("%+v: outcome %+v", q, o)
		}
	}
}

// list returns every hit of a search as the client would see it without us.
func list(t *testing.T, s Subject, c *corpus, q Search) []string {
	t.Helper()
	q.From, q.Size = 0, 100
	r := s.Search(q)
	var out bytes.Buffer
	if err := s.Dialect.CleanReply(s.Dialect.Classify(r), &out, bytes.NewReader(s.Engine(r, c.of).Body)); err != nil {
		t.Fatal(err)
	}
	return s.Hits(out.Bytes())[0]
}

// values calls visit with the extent of every value in the JSON.
func values(root, value []byte, visit func(from, to int)) {
	from := cap(root) - cap(value) // a value shares the memory of what it stands in
	visit(from, from+len(value))
	if members, err := adapters.Members(value); err == nil {
		for _, m := range members {
			values(root, m.Value, visit)
		}
	}
	elements, _ := adapters.Elements(value)
	for _, element := range elements {
		values(root, element, visit)
	}
}

// garbage returns what is no reply at all.
func garbage(reply []byte) [][]byte {
	list := [][]byte{{}, []byte("null"), []byte("<html>"), []byte("{}"), []byte("[]"), []byte("{}{}"), bytes.Repeat([]byte("["), 5000)}
	for end := 1; end < len(reply); end += 7 {
		list = append(list, reply[:end])
	}
	return list
}

// strange returns replies of which one value is of another kind than it should be.
func strange(reply []byte) [][]byte {
	var list [][]byte
	values(reply, reply, func(from, to int) {
		for _, v := range []string{"null", "-1", "1e999", "99999999999999999999", `"x"`, "{}", "[]", "[null,1,[{}]]", `{"":{"":[]}}`} {
			list = append(list, slices.Concat(reply[:from], []byte(v), reply[to:]))
		}
	})
	return list
}

// someSearch returns a request whose collapse takes the engine a few asks.
func someSearch(t *testing.T, s Subject, searches int) (*corpus, *adapters.Request, adapters.Plan) {
	t.Helper()
	random := rand.New(rand.NewPCG(31, uint64(searches)))
	c := newCorpus(t, s, random)
	i := slices.IndexFunc(s.Targets, func(target []string) bool { return c.window(target) > 0 })
	list := make([]Search, searches)
	for k := range list {
		list[k] = Search{Target: s.Targets[i], From: 2, Size: 3}
	}
	return c, s.Search(list...), c.plan(random)
}

func testStrange(t *testing.T, s Subject) {
	for searches := 1; searches <= 2; searches++ {
		c, r, plan := someSearch(t, s, searches)
		if r == nil {
			continue
		}
		for at := range 3 {
			var sound []byte
			remember := func(ask int, reply *adapters.Reply) {
				if ask == at {
					sound = slices.Clip(reply.Body)
				}
			}
			if _, err := converse(s, c, begin(s, r, plan).Exchange, remember); err != nil {
				t.Fatal(err)
			}
			if sound == nil {
				break
			}
			spoilt := func(body []byte) (*adapters.Answer, error) {
				return converse(s, c, begin(s, r, plan).Exchange, func(ask int, reply *adapters.Reply) {
					if ask == at {
						reply.Body = body
					}
				})
			}
			for _, body := range garbage(sound) {
				if _, err := spoilt(body); !errors.Is(err, adapters.ErrNotUnderstood) {
					t.Errorf("ask %d answered by %q: %v", at, body, err)
				}
			}
			for _, body := range strange(sound) {
				answer, err := spoilt(body)
				switch {
				case err == nil:
					if _, err := adapters.Members(answer.Body); err != nil {
						t.Errorf("ask %d answered by %q: the answer is %q", at, body, answer.Body)
					}
				case errors.Is(err, adapters.ErrNotUnderstood), errors.Is(err, adapters.ErrWidened), errors.Is(err, adapters.ErrRefused):
				default:
					t.Errorf("ask %d answered by %q: %v", at, body, err)
				}
			}
		}
	}
}

func testRefusals(t *testing.T, s Subject) {
	for status, want := range map[int]error{
		400: adapters.ErrWidened, 401: adapters.ErrRefused, 403: adapters.ErrRefused, 429: adapters.ErrRefused,
		500: adapters.ErrRefused, 502: adapters.ErrRefused, 503: adapters.ErrRefused, 504: adapters.ErrRefused,
	} {
		c, r, plan := someSearch(t, s, 1)
		_, err := converse(s, c, begin(s, r, plan).Exchange, func(_ int, reply *adapters.Reply) { reply.Status = status })
		if !errors.Is(err, want) {
			t.Errorf("status %d: %v, want %v", status, err, want)
		}
	}
}

// controlled returns the request with a control at each place that can hold it.
func controlled(s Subject, r *adapters.Request, name, value string) map[string]*adapters.Request {
	query, header := *r, *r
	query.RawQuery = strings.Trim(name+"="+value+"&"+r.RawQuery, "&")
	header.Header = adapters.Header{}
	maps.Copy(header.Header, r.Header)
	item := strings.TrimPrefix(name, adapters.FieldPrefix)
	header.Header[adapters.ControlHeader] = []string{item + "=" + value}
	places := map[string]*adapters.Request{"query": &query, "header": &header}
	if body := s.WithControl(r, name, value); body != nil {
		places["body"] = body
	}
	return places
}

func testControls(t *testing.T, s Subject) {
	for searches := 1; searches <= 2; searches++ {
		c, r, plan := someSearch(t, s, searches)
		if r == nil {
			continue
		}
		for place, with := range controlled(s, r, "neardup_window", "1") {
			parsed := begin(s, with, plan)
			if diff := cmp.Diff(begin(s, r, plan).Plain, parsed.Plain, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: the plain search differs:\n%s", place, diff)
			}
			if reply := s.Engine(parsed.Plain, c.of); reply.Status >= 300 {
				t.Errorf("%s: the engine answers %d: %s", place, reply.Status, reply.Body)
			}
			answer, err := converse(s, c, parsed.Exchange, nil)
			if err != nil || answer.Outcomes[0].Window != 1 || answer.Outcomes[0].Folded != 0 {
				t.Errorf("%s: the window is not taken: %+v, %v", place, answer, err)
			}
		}
		for place, with := range controlled(s, r, "neardup", "off") {
			if parsed := begin(s, with, plan); parsed.Exchange != nil && searches == 1 || parsed.Refusal != nil {
				t.Errorf("%s: off is not taken: %+v", place, parsed)
			}
		}
		for name, value := range map[string]string{"neardup": "maybe", "neardup_threshold": "1.5", "neardup_window": "0", "neardup_wndow": "7"} {
			for place, with := range controlled(s, r, name, value) {
				refusal := begin(s, with, plan).Refusal
				if refusal == nil || refusal.Status != 400 || !strings.Contains(s.Reason(refusal), name) {
					t.Errorf("%s: %s=%s is not refused by name: %+v", place, name, value, refusal)
				}
			}
		}
	}
}

// testAtOnce means something under the race detector.
func testAtOnce(t *testing.T, s Subject) {
	c, r, plan := someSearch(t, s, 1)
	var all sync.WaitGroup
	answers := make([]string, 8)
	for i := range answers {
		all.Go(func() {
			for _, w := range s.Writes {
				enrich(t, s, &w.Request, bytes.NewReader(w.Body), c.rules)
			}
			answer, err := converse(s, c, begin(s, r, plan).Exchange, nil)
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = string(answer.Body)
		})
	}
	all.Wait()
	if len(slices.Compact(answers)) != 1 {
		t.Errorf("answers differ: %q", answers)
	}
}
