package jobs

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// supersede makes a plan of the only job of a ledger, as another worker does.
func supersede(t *testing.T, l *Ledger) (made plan) {
	t.Helper()
	entries, err := l.Entries(t.Context(), "")
	if err != nil || len(entries) == 0 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if e.Slot == 0 {
			made.number = max(made.number, e.Number+1)
		}
	}
	made.ID, made.Begun, made.Parts = "another", time.Now(), []string{"1-"}
	data := expect.Value(json.Marshal(made))(t)
	if ours, err := l.Append(t.Context(), entries[0].Job, adapters.Entry{Slot: 0, Number: made.number, Data: data}); err != nil || !ours {
		t.Fatal(ours, err)
	}
	return made
}

// standsAt returns the newest record of a part.
func standsAt(l *Ledger, part int) (newest record) {
	entries, _ := l.Entries(context.Background(), "")
	for _, e := range entries {
		if e.Slot == part {
			newest = record{}
			_ = json.Unmarshal(e.Data, &newest)
		}
	}
	return newest
}

// TestSupersededRun has a job begun anew by another while a worker is in the middle of a part: it notices before it is through,
// and works on the new plan.
func TestSupersededRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, rule, l := newMemory(10, documents(100)), testRule(t), &Ledger{}
		job := m.job(rule)
		m.split, m.journal = m.ranges, l
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err := Reindex(t.Context(), job, Options{Pace: NewPace(1), Worker: "a"}, nil)
			if err != nil || got.Written != 100 || !got.Resumed || got.Parts != 1 || got.PartsDone < 1 {
				t.Errorf("%v %+v", err, got)
			}
		}()
		time.Sleep(20500 * time.Millisecond)
		made := supersede(t, l)
		time.Sleep(leaseFor)
		if r := standsAt(l, made.slot(0)); !strings.HasPrefix(r.Holder, "a/") || r.Done {
			t.Errorf("the part of the new plan stands at %+v", r)
		}
		<-done
		if wrong := m.wrong(rule); len(wrong) > 0 || len(m.twice()) > 0 || m.writes != 100 || !standsAt(l, made.slot(0)).Done {
			t.Errorf("wrong %v, twice %v, %d writes", wrong, m.twice(), m.writes)
		}
	})
}
