package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/neardup/sidecar/sketch"
)

// Run is what the clients of one engine share.
type Run struct {
	Ledger *Ledger
	Diary  *Diary
	Rule   Rule
	Near   func(a, b *sketch.Sketch) bool // whether two hits of a page may not stand beside each other
	texts  *texts

	mu       sync.Mutex
	under    map[*Seen]bool // operations under way
	seen     []Seen
	findings []Finding
}

// Kinds of operations, for [Run.UnderWay].
const (
	Bulk   = "bulk"
	Single = "write"
	Search = "search"
)

// Seen is one operation that is over.
type Seen struct {
	Kind, Way  string
	Begin, End time.Time
	Failed     bool
}

// NewRun returns what the clients of a run share, whose texts follow from the seed; ascii keeps them to that.
func NewRun(seed uint64, rule Rule, ascii bool, near func(a, b *sketch.Sketch) bool) *Run {
	return &Run{
		Ledger: NewLedger(), Diary: &Diary{}, Rule: rule, Near: near, texts: newTexts(seed, ascii),
		under: map[*Seen]bool{},
	}
}

// UnderWay returns how many operations of a kind are under way; of any where it is empty.
func (r *Run) UnderWay(kind string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.under {
		if kind == "" || s.Kind == kind {
			n++
		}
	}
	return n
}

// Over reports whether all operations that began before a moment have come to their end.
func (r *Run) Over(at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.under {
		if s.Begin.Before(at) {
			return false
		}
	}
	return true
}

// Between returns the operations of which a part lies between two moments, as far as they are over.
func (r *Run) Between(begin, end time.Time) (list []Seen) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.seen) - 1; i >= 0 && i > len(r.seen)-3000; i-- {
		if s := r.seen[i]; !s.End.Before(begin) && !s.Begin.After(end) {
			list = append(list, s)
		}
	}
	return list
}

// Direct has what the clients of a way met that leads past the sidecar stand for what any client met at that moment: it is entered
// in the diary as the engine's own, where no fault was in the way. So is that the engine took longer than long, for what ends in a
// time-out. It returns how often there was trouble.
func (r *Run) Direct(way string, long time.Duration) (n int) {
	_, unexplained := r.Diary.Troubles()
	for _, t := range unexplained {
		if t.Way == way {
			n++
			allows := []string{t.What}
			if t.What == TimeOut || t.What == "503" {
				allows = []string{TimeOut, "503"}
			}
			r.Diary.Did(Fault{Name: "the engine's own", Allows: allows, Begin: t.Begin.Add(-long), End: t.End.Add(long)})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s.Way == way && s.End.Sub(s.Begin) >= long {
			r.Diary.Did(Fault{Name: "the engine's own", Allows: []string{TimeOut}, Begin: s.Begin, End: s.End})
		}
	}
	return n
}

// Findings returns what was wrong with pages and documents that clients read.
func (r *Run) Findings() []Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.findings)
}

// note keeps what was found.
func (r *Run) note(findings ...Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, findings...)
}

// during runs one operation and notes it.
func (r *Run) during(kind, way string, do func() reply) {
	s := &Seen{Kind: kind, Way: way, Begin: time.Now()}
	r.mu.Lock()
	r.under[s] = true
	r.mu.Unlock()
	got := do()
	r.mu.Lock()
	s.End, s.Failed = time.Now(), got.trouble != ""
	delete(r.under, s)
	r.seen = append(r.seen, *s)
	r.mu.Unlock()
	if got.trouble != "" {
		r.Diary.Met(Trouble{Way: way, What: got.trouble, Text: kind + ": " + got.why, Begin: s.Begin, End: s.End})
		time.Sleep(20 * time.Millisecond)
	}
}

// Writer writes documents of one index, each its own.
type Writer struct {
	Run        *Run
	Name       string // of which its ids are made
	Index, Way string
	Server     Server
	// Fresh has it write whole documents under new ids alone, for an index in which repetitions are skipped.
	Fresh bool
	// More makes further members of a document, if there are any.
	More  func(r *rand.Rand) []string
	Pause time.Duration // at most, between two operations

	*rand.Rand
	live []string          // ids of which it knows what is stored
	now  map[string]string // of these the topic of what is stored, "" for nothing
	next int
}

// Work writes until ctx is done, and lets what is under way then come to its end.
func (w *Writer) Work(ctx context.Context, seed uint64) {
	w.Rand, w.now = rand.New(rand.NewPCG(seed, uint64(len(w.Name))<<32|uint64(w.Name[len(w.Name)-1]))), map[string]string{}
	for ctx.Err() == nil {
		if w.IntN(3) == 0 {
			w.several()
		} else {
			w.alone(w.choose([]Kind{Put, Put, Create, Part, Part, Part, Delete, Auto}[w.IntN(8)], nil, 0), w.as(), true)
		}
		time.Sleep(time.Duration(w.Int64N(int64(w.Pause) + 1)))
	}
}

// most is how many documents a writer keeps.
const most = 120

// pick returns an id that is none of those already chosen.
func (w *Writer) pick(but []*Write) string {
	for range 5 {
		if len(w.live) < most/4 || len(w.live) < most && w.IntN(3) == 0 {
			break
		}
		id := w.live[w.IntN(len(w.live))]
		if !slices.ContainsFunc(but, func(o *Write) bool { return o.ID == id }) {
			return id
		}
	}
	w.next++
	id := fmt.Sprint(w.Name, "-", w.next)
	w.live, w.now[id] = append(w.live, id), ""
	return id
}

// choose starts a write of the kind, or of one that suits.
func (w *Writer) choose(kind Kind, but []*Write, filler int) *Write {
	id, topic := "", w.Run.texts.topic(w.Rand, 30)
	if w.Fresh {
		w.next++
		id = fmt.Sprint(w.Name, "-", w.next)
		if kind != Create {
			kind = Put
		}
	} else if kind != Auto {
		id = w.pick(but)
	}
	entry := Write{Index: w.Index, ID: id, Kind: kind}
	switch {
	case kind == Delete:
	case kind == Part && w.now[id] != "":
		entry.Body = w.Run.texts.part(w.Rand, w.now[id], w.more())
	default:
		if kind == Part && w.IntN(10) > 0 {
			entry.Kind = Put // a part of nothing is refused, and that only now and then
		}
		inside := id
		if kind == Auto {
			inside = ""
		}
		entry.Body = w.Run.texts.document(w.Rand, inside, topic, filler, w.more())
	}
	return w.Run.Ledger.Start(entry)
}

func (w *Writer) more() []string {
	if w.More == nil {
		return nil
	}
	return w.More(w.Rand)
}

// finish enters the answer to a write, and gives the document up where that says nothing. It returns whether it did.
func (w *Writer) finish(entry *Write, r Result) (lost bool) {
	w.Run.Ledger.Finish(entry, r)
	if entry.Kind == Auto || w.Fresh {
		return r.Answer == Unknown
	}
	switch {
	case r.Answer == Unknown:
		if i := slices.Index(w.live, entry.ID); i >= 0 {
			w.live = slices.Delete(w.live, i, i+1)
		}
		delete(w.now, entry.ID)
		return true
	case r.Answer != Done:
	case entry.Kind == Delete:
		w.now[entry.ID] = ""
	case entry.Kind == Put || entry.Kind == Create:
		w.now[entry.ID] = topic(entry.Body)
	}
	return false
}

// as returns how a body is sent.
func (w *Writer) as() form { return []form{plain, plain, chunked}[w.IntN(3)] }

// alone sends one write by itself, and again where there was no answer, as clients do, but for one that would be doubled by that.
func (w *Writer) alone(entry *Write, as form, again bool) {
	var got Result
	w.Run.during(Single, w.Way, func() reply {
		var r reply
		got, r = w.Server.one(context.Background(), entry, as)
		return r
	})
	if w.finish(entry, got) && again && entry.Kind != Auto && w.IntN(2) == 0 {
		w.again(entry)
	}
}

// again sends the write of a document that was given up until there is an answer.
func (w *Writer) again(entry *Write) {
	for range 8 {
		time.Sleep(100 * time.Millisecond)
		entry = w.Run.Ledger.Start(Write{Index: entry.Index, ID: entry.ID, Kind: entry.Kind, Body: entry.Body})
		w.alone(entry, plain, false)
		if entry.Answer != Unknown {
			break
		}
	}
	if i := slices.Index(w.live, entry.ID); i >= 0 { // what got no answer may still come
		w.live = slices.Delete(w.live, i, i+1)
	}
}

func (w *Writer) several() {
	n, filler := 2+w.IntN(12), 0
	if w.IntN(40) == 0 { // longer than what is held: it streams
		n, filler = 40, 28<<10
	}
	kinds := []Kind{Put, Put, Create, Part, Part, Delete, Auto}
	if w.Server.Typesense {
		kinds = [][]Kind{{Put}, {Create}, {Part}, {Part}, {Auto}}[w.IntN(5)]
	}
	var list []*Write
	for range n {
		entry := w.choose(kinds[w.IntN(len(kinds))], list, filler)
		list = append(list, entry)
	}
	if w.Server.Typesense {
		list = w.alike(list)
	}
	var results []Result
	w.Run.during(Bulk, w.Way, func() reply {
		var r reply
		results, r = w.Server.bulk(context.Background(), w.Index, list, w.as())
		return r
	})
	var lost []*Write
	for i, entry := range list {
		if w.finish(entry, results[i]) && entry.Kind != Auto && w.IntN(4) == 0 {
			lost = append(lost, entry)
		}
	}
	for _, entry := range lost {
		w.again(entry)
	}
}

// alike sends those writes by themselves that are of another kind than the first, and returns the rest.
func (w *Writer) alike(list []*Write) (rest []*Write) {
	for _, entry := range list {
		if entry.Kind == list[0].Kind {
			rest = append(rest, entry)
			continue
		}
		w.alone(entry, plain, true)
	}
	return rest
}

// Searcher asks for pages and has each judged.
type Searcher struct {
	Run     *Run
	Way     string
	Server  Server
	Indices []string
	Pause   time.Duration
}

// Work searches until ctx is done.
func (s *Searcher) Work(ctx context.Context, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 77))
	for ctx.Err() == nil {
		index, size := s.Indices[r.IntN(len(s.Indices))], 5+r.IntN(20)
		var page *Page
		s.Run.during(Search, s.Way, func() reply {
			var got reply
			page, got = s.Server.search(context.Background(), index, common[r.IntN(len(common))], size*r.IntN(3), size)
			return got
		})
		if page != nil {
			s.Run.note(s.Run.Ledger.CheckPage(*page, s.Run.Rule, s.Run.Near)...)
		}
		time.Sleep(time.Duration(r.Int64N(int64(s.Pause) + 1)))
	}
}
