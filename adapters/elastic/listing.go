package elastic

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// hits are those of a reading.
type hits struct {
	*reader
	listing             // of the reply that they came in, with no other hits
	keys     []document // what tells them apart: index is the one that rules are matched against
	oneShard bool       // all are of one shard
	// at is the hit that is looked at, and fields are those extracted from it, once read.
	at     int
	fields extracted
	read   bool
}

// Listing implements adapters.Reader.
func (r *reader) Listing(results []adapters.QueryResult) (*adapters.Listing, error) {
	q, reply := r.q, results[0].Raw()
	if declined := q.declined(reply, r.AsSent); declined != nil {
		return nil, declined
	}
	if r.AsSent {
		return r.ownListing(reply), nil
	}
	var err error
	if r.deep() {
		if reply, err = r.deepReply(results); err != nil {
			return nil, err
		}
	}
	if q.point != nil {
		if reply, err = q.outside(reply); err != nil {
			return nil, err
		}
	}
	read, err := readListing(reply, q.deciding)
	if errors.Is(err, adapters.ErrWidened) {
		return nil, &adapters.Declined{Reason: "a shard failed", Raw: reply}
	} else if err != nil {
		return nil, err
	}
	l := &adapters.Listing{Total: read.total, AtLeast: read.lowest, Framed: r.framed}
	if r.sources && q.asked.Ways.Weighed && len(read.hits) > 0 {
		for i := range read.hits {
			l.HitBytes += len(read.hits[i].raw)
		}
		l.HitBytes /= len(read.hits)
	}
	h := &hits{reader: r, listing: read, oneShard: r.numbered && shardsOf(reply) == 1}
	l.Hits = h
	h.cut()
	return l, h.tell()
}

// ownListing reads the client's own reply, of which nothing need be known.
func (r *reader) ownListing(reply []byte) *adapters.Listing {
	read, err := readListing(reply, nil)
	if err != nil {
		read = listing{total: -1}
	}
	h := &hits{reader: &reader{q: r.q}, listing: read}
	if h.tell() != nil {
		h.hits, h.keys = nil, nil
	}
	return &adapters.Listing{Hits: h, Total: read.total, AtLeast: read.lowest}
}

// declined returns the error that an element of a multi-search is, nil if it is none.
func (q *query) declined(element []byte, own bool) error {
	if q.header == nil {
		return nil
	}
	members, err := jsonedit.Members(element)
	if err != nil {
		return err
	}
	if jsonedit.Get(members, "error") == nil {
		return nil
	}
	status := string(jsonedit.Get(members, "status"))
	widened := status == "400" || status == "" || blames(element, q.deciding)
	return &adapters.Declined{Reason: "status " + status, Final: own || !widened, Raw: element}
}

// cut leaves those hits that were asked for.
func (h *hits) cut() {
	switch {
	case h.picked && len(h.hits) != len(h.Ranks): // the list moved
		h.hits = nil
	case h.picked:
		h.keepSort(h.Known.(*hits))
	case h.q.after != nil && !h.Before: // every reading begins at the cursor
		h.hits = h.hits[min(h.from, len(h.hits)):]
	}
	if h.Ranks == nil || h.picked {
		return
	}
	list := make([]hit, 0, len(h.Ranks))
	for _, rank := range h.Ranks {
		if rank-h.from < len(h.hits) {
			list = append(list, h.hits[rank-h.from])
		}
	}
	h.hits = list
}

// tell finds out what tells the hits apart.
func (h *hits) tell() (err error) {
	h.keys = make([]document, len(h.hits))
	var last, id []byte // the last hit's index, and room
	var name, rule string
	var room strings.Builder
	for i := range h.hits {
		one := &h.hits[i]
		if index := one.at(one.index); last == nil || !bytes.Equal(index, last) {
			var ok bool
			if name, ok = jsonedit.Text(index); !ok {
				return errors.New("a hit without _index")
			}
			last, rule = index, h.q.d.ruleName(name)
		}
		id = append(append(id[:0], name...), 0) // two indices can stand behind one name
		if id, err = h.appendID(id, one); err != nil {
			return err
		}
		if room.Cap()-room.Len() < len(id) { // what tells the hits before keeps theirs
			room.Reset()
			room.Grow(max(len(id), 1<<10))
		}
		start := room.Len()
		room.Write(id)
		h.keys[i] = document{rule, room.String()[start:]}
	}
	return nil
}

// Len implements adapters.Hits.
func (h *hits) Len() int { return len(h.hits) }

// Name implements adapters.Hits.
func (h *hits) Name(i int) []byte {
	d := h.document(i)
	name := jsonedit.AppendString(append(jsonedit.AppendString([]byte(`{"_index":`), d.index), `,"_id":`...), d.id)
	return append(name, '}')
}

// Seen implements adapters.Hits.
func (h *hits) Seen(i int) rule.Seen {
	h.at, h.read = i, false
	seen := rule.Seen{Index: h.keys[i].index, Key: h.keys[i].id, Shown: h}
	if h.judged {
		seen.Stored = sketchIn(h.hits[i].at(h.hits[i].sketch))
	}
	return seen
}

// Values implements adapters.Shown.
func (h *hits) Values(d rule.Deciding) []string {
	if !h.read {
		h.fields, _ = jsonedit.Members(h.hits[h.at].at(h.hits[h.at].fields)) // there are none where none has a value
		h.read = true
	}
	return h.fields.Values(d)
}

// Document implements adapters.Shown.
func (h *hits) Document(*rule.Rule) []byte {
	if !h.texts {
		return nil
	}
	return orEmpty(h.hits[h.at].at(h.hits[h.at].source))
}

// shardsOf returns how many shards answered a search.
func shardsOf(reply []byte) int {
	r := jsonedit.NewReader(reply)
	for r.Enter('{'); r.Next(); { // they stand in front of the hits
		if string(r.Key()) == "_shards" {
			shards, _ := jsonedit.Members(r.Value())
			n, _ := strconv.Atoi(string(jsonedit.Get(shards, "total"))) // 0 is none known
			return n
		}
	}
	return 0
}
