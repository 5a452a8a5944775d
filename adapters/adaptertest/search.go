package adaptertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/collapse"
	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// maxAsks is how often a search may ask.
const maxAsks = 100

// Run answers a search with an engine's replies.
func Run(parsed *adapters.Searches, engine func(*adapters.Request) *adapters.Reply) (*Answer, error) {
	asked := 0
	return Whole(collapse.Answer(context.Background(), parsed, func(_ context.Context, requests ...*adapters.Request) ([]*adapters.Reply, error) {
		if asked++; asked > maxAsks {
			return nil, errors.New("the search does not end")
		}
		return askAll(requests, engine)
	}))
}

// Answer is what the client gets, with its body whole, and what was done with each search.
type Answer struct {
	*adapters.Reply
	Outcomes []adapters.Outcome
}

// Whole returns an answer with its body whole.
func Whole(reply *adapters.Reply, outcomes []adapters.Outcome, err error) (*Answer, error) {
	if err != nil {
		return nil, err
	}
	reply.Body = reply.Pieces.Bytes()
	return &Answer{reply, outcomes}, nil
}

// askAll asks an engine for requests that go side by side.
func askAll(requests []*adapters.Request, engine func(*adapters.Request) *adapters.Reply) ([]*adapters.Reply, error) {
	if len(requests) > adapters.MaxAtOnce {
		return nil, fmt.Errorf("%d requests at once", len(requests))
	}
	var replies []*adapters.Reply
	for _, r := range requests {
		reply := engine(r)
		if reply.Status/100 != 2 {
			return []*adapters.Reply{reply}, nil
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// trial is a request with all that it takes to answer it.
type trial struct {
	Subject
	*corpus
	plan    adapters.Plan
	request *adapters.Request
}

// parse parses a request.
func (x *trial) parse(r *adapters.Request) *adapters.Searches {
	return x.Dialect.ParseSearch(x.Dialect.Classify(r), r, x.plan)
}

// targets are what the searches of a request are sent to.
func (x *trial) targets(r *adapters.Request) []string {
	return slices.Collect(x.Dialect.Targets(x.Dialect.Classify(r), r))
}

// ask asks the fake engine.
func (x *trial) ask(r *adapters.Request) *adapters.Reply { return x.Engine(r, x.of) }

// spoilt answers the request by an engine whose reply to one ask, or to all if it is negative, is changed by spoil.
func (x *trial) spoilt(ask int, spoil func(*adapters.Reply)) (*Answer, error) {
	asked := -1
	return Run(x.parse(x.request), func(r *adapters.Request) *adapters.Reply {
		reply := x.ask(r)
		if asked++; ask < 0 || asked == ask {
			spoil(reply)
		}
		return reply
	})
}

// newTrials returns requests whose collapse takes the engine two asks: one of a single search, one of two if there is such.
func newTrials(t *testing.T, s Subject) (trials []*trial) {
	t.Helper()
	random := rand.New(rand.NewPCG(31, 0))
	for _, n := range []int{1, 2} {
		for try, asks := 0, 0; asks != 2; try++ {
			c := newCorpus(t, s, random, 16)
			i := slices.IndexFunc(s.Targets, func(target []string) bool { return c.window(target) > 0 })
			r := s.Search(slices.Repeat([]Search{{Target: s.Targets[i], From: 3, Size: 3}}, n)...)
			if r == nil {
				break
			}
			x := &trial{s, c, c.plan(random), r}
			asks = 0
			if _, err := x.spoilt(-1, func(*adapters.Reply) { asks++ }); err != nil || try == 5000 {
				t.Fatalf("%d tries, %v", try, err)
			}
			if asks == 2 {
				trials = append(trials, x)
			}
		}
	}
	return trials
}

func testPages(t *testing.T, s Subject) {
	for c, random := range corpora(t, s, 80) {
		for range 3 {
			searches, aligned := make([]Search, 1+random.IntN(3)*random.IntN(2)), random.IntN(2)
			for i := range searches {
				q := Search{Target: s.Targets[random.IntN(len(s.Targets))], From: random.IntN(30) * random.IntN(2), Size: 1 + random.IntN(20)}
				q.From -= aligned * (q.From % q.Size)
				searches[i] = q
			}
			if r := s.Search(searches...); r != nil {
				(&trial{s, c, c.plan(random), r}).checkPages(t, searches)
			}
		}
	}
}

// checkPages compares the answer with the slices of the collapsed lists.
func (x *trial) checkPages(t *testing.T, searches []Search) {
	t.Helper()
	configured := func(q Search) bool { return x.window(q.Target) > 0 }
	parsed := x.parse(x.request)
	one := slices.ContainsFunc(searches, configured)
	if parsed.Refusal != nil || (!parsed.Left()) != one || (parsed.Reason == "") != one {
		t.Errorf("%+v: left alone for %q, refused with %+v", searches, parsed.Reason, parsed.Refusal)
	}
	if parsed.Left() {
		return
	}
	answer, err := Run(parsed, x.ask)
	if err != nil {
		t.Errorf("%+v: %v", searches, err)
		return
	}
	if bytes.Contains(answer.Body, []byte(rule.SketchField)) {
		t.Errorf("%+v: our field is shown: %s", searches, answer.Body)
	}
	pages := x.Hits(answer.Body)
	if len(pages) != len(searches) || len(answer.Outcomes) != len(searches) {
		t.Errorf("%+v: got %d pages, %d outcomes", searches, len(pages), len(answer.Outcomes))
		return
	}
	for i, q := range searches {
		want, window := []string{}, min(x.window(q.Target), maxWindow)
		all := x.raw(t, q)
		ranks := x.collapsed(q.Target, window)
		for _, rank := range ranks[min(q.From, len(ranks)):min(q.From+q.Size, len(ranks))] {
			want = append(want, all[rank])
		}
		if diff := cmp.Diff(want, pages[i], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%+v: search %d of %d ranks, window %d (-want +got):\n%s", searches, i, len(all), window, diff)
		}
		if o := answer.Outcomes[i]; configured(q) && (o.Reason != "" || o.Raw != len(all) || o.Window != window) {
			t.Errorf("%+v: outcome %+v", q, o)
		}
	}
}

// raw returns every hit of a search as the client would see it without us.
func (x *trial) raw(t *testing.T, q Search) []string {
	t.Helper()
	r := x.Search(Search{Target: q.Target, Size: 100})
	var out bytes.Buffer
	expect.OK(t, x.Dialect.CleanReply(x.Dialect.Classify(r), &out, bytes.NewReader(x.ask(r).Body)))
	return x.Hits(out.Bytes())[0]
}

// garbage returns what is no reply at all.
func garbage(reply []byte) [][]byte {
	list := [][]byte{{}, []byte("null"), []byte("<html>"), []byte("{}"), []byte("[]"), []byte("{}{}"), bytes.Repeat([]byte("["), 5000)}
	for end := 1; end < len(reply); end += 1 + len(reply)/effort.Rounds(50) {
		list = append(list, reply[:end])
	}
	return list
}

// strange returns replies of which one value, found below value, is of another kind than it should be. Of a longer list it is
// one of the first and the last.
func strange(reply, value []byte) (list [][]byte) {
	from := cap(reply) - cap(value) // a value shares the memory of what it stands in
	for _, v := range []string{"null", "-1", "99999999999999999999", `"x"`, "{}", "[null,1,[{}]]", `{"":{"":[]}}`} {
		list = append(list, slices.Concat(reply[:from], []byte(v), reply[from+len(value):]))
	}
	inside, _ := jsonedit.Elements(value)
	if n := len(inside); n > 2 {
		inside = slices.Delete(inside, 1, n-1)
	}
	members, _ := jsonedit.Members(value)
	for _, m := range members {
		inside = append(inside, m.Value)
	}
	for _, v := range inside {
		list = append(list, strange(reply, v)...)
	}
	return list
}

func testStrange(t *testing.T, trials []*trial) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, x := range trials {
		for ask := range 2 {
			var sound []byte
			if _, err := x.spoilt(ask, func(reply *adapters.Reply) { sound = slices.Clip(reply.Body) }); err != nil {
				t.Fatal(err)
			}
			for _, body := range garbage(sound) {
				if _, err := x.spoilt(ask, func(reply *adapters.Reply) { reply.Body = body }); !errors.Is(err, adapters.ErrNotUnderstood) {
					t.Errorf("ask %d answered by %q: %v", ask, body, err)
				}
			}
			list := strange(sound, sound)
			random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			if testing.Short() || effort.Race { // there are a thousand and more
				list = list[:min(len(list), effort.Rounds(300))]
			}
			for _, body := range list {
				answer, err := x.spoilt(ask, func(reply *adapters.Reply) { reply.Body = body })
				known := ofThePort(err)
				if err == nil {
					_, err = jsonedit.Members(answer.Body)
				}
				if err != nil && !known {
					t.Errorf("ask %d answered by %q: %v, %+v", ask, body, err, answer)
				}
			}
		}
	}
}

func testRefusals(t *testing.T, trials []*trial) {
	for _, x := range trials {
		for status, want := range map[int]error{
			400: adapters.ErrWidened, 401: adapters.ErrRefused, 403: adapters.ErrRefused, 429: adapters.ErrRefused,
			500: adapters.ErrRefused, 502: adapters.ErrRefused, 503: adapters.ErrRefused, 504: adapters.ErrRefused,
		} {
			for _, ask := range []int{0, 1} {
				if _, err := x.spoilt(ask, func(reply *adapters.Reply) { reply.Status = status }); !errors.Is(err, want) {
					t.Errorf("status %d to ask %d: %v, want %v", status, ask, err, want)
				}
			}
		}
	}
}

// controlled returns the request with a control at each place that can hold it.
func (x *trial) controlled(name, value string) map[string]*adapters.Request {
	query, header := *x.request, *x.request
	query.RawQuery = strings.Trim(name+"="+value+"&"+query.RawQuery, "&")
	header.Header = maps.Clone(header.Header)
	header.Header[adapters.ControlHeader] = []string{strings.TrimPrefix(name, rule.FieldPrefix) + "=" + value}
	places := map[string]*adapters.Request{"query": &query, "header": &header}
	if body := x.WithControl(x.request, name, value); body != nil {
		places["body"] = body
	}
	return places
}

// badControls have a value that a control does not take, or are none.
var badControls = []string{
	"neardup=maybe", "neardup_threshold=1.5", "neardup_window=0", "neardup_keep=0", "neardup_keep=101", "neardup_expand=all",
	"neardup_explain=2", "neardup_totals=all", "neardup_group=ids", "neardup_counts=all", "neardup_wndow=7",
}

func testControls(t *testing.T, trials []*trial) {
	for searches, x := range trials {
		for place, with := range x.controlled("neardup_window", "1") {
			parsed := x.parse(with)
			if diff := cmp.Diff(x.parse(x.request).Plain, parsed.Plain, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: the plain search differs:\n%s", place, diff)
			}
			if reply := x.ask(parsed.Plain); reply.Status >= 300 {
				t.Errorf("%s: the engine answers %d: %s", place, reply.Status, reply.Body)
			}
			answer, err := Run(parsed, x.ask)
			if err != nil || answer.Outcomes[0].Window != 1 || answer.Outcomes[0].Folded != 0 {
				t.Errorf("%s: the window is not taken: %+v, %v", place, answer, err)
			}
		}
		for place, with := range x.controlled("neardup", "off") {
			if parsed := x.parse(with); parsed.Refusal != nil || !parsed.Left() && (place != "body" || searches == 0) {
				t.Errorf("%s: off is not taken: %+v", place, parsed)
			}
		}
		x.checkDryRun(t)
		for _, bad := range badControls {
			name, value, _ := strings.Cut(bad, "=")
			for place, with := range x.controlled(name, value) {
				refusal := x.parse(with).Refusal
				if refusal == nil || refusal.Status != 400 || !strings.Contains(x.Reason(refusal), name) {
					t.Errorf("%s: %s=%s is not refused by name: %+v", place, name, value, refusal)
				}
				if targets, own := x.targets(with), x.targets(x.request); !slices.Equal(targets, own) || len(own) == 0 {
					t.Errorf("%s: %s=%s is sent to %q, without the control to %q", place, name, value, targets, own)
				}
			}
		}
	}
}

// checkDryRun compares the answers to a search that is to fold nothing with what the engine itself answers.
func (x *trial) checkDryRun(t *testing.T) {
	t.Helper()
	var own bytes.Buffer
	expect.OK(t, x.Dialect.CleanReply(x.Dialect.Classify(x.request), &own, bytes.NewReader(x.ask(x.request).Body)))
	for place, with := range x.controlled("neardup", "dry_run") {
		answer, err := Run(x.parse(with), x.ask)
		if err != nil {
			t.Errorf("%s: dry run: %v", place, err)
			continue
		}
		expect.Same(t, x.Hits(own.Bytes())[0], x.Hits(answer.Body)[0], "%s: a dry run folds (-engine +answer)", place)
		if o := answer.Outcomes[0]; !o.DryRun || o.Raw == 0 || bytes.Contains(answer.Body, []byte(rule.SketchField)) {
			t.Errorf("%s: the outcome of a dry run is %+v, its answer %s", place, o, answer.Body)
		}
	}
}
