package proxy_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

// TestWhoseChangesOthersForget sends requests that may change indices and counts the look-ups of another client after each: one that the
// engine refuses, or that is broken off, costs others nothing unless the engine has accepted a change of this client before.
func TestWhoseChangesOthersForget(t *testing.T) {
	const gone = 0
	for _, c := range []struct {
		name      string
		before    int // what the engine answered to the client's change before, 0 for none
		status    int // what it answers now
		looks     int // of another client, after each of the requests
		looksSelf int // of the client itself
	}{
		{"unknown credentials", 0, 401, 0, 1},
		{"no rights", 0, 403, 0, 1},
		{"no such index", 0, 404, 0, 1},
		{"engine in trouble", 0, 503, 0, 1},
		{"broken off", 0, gone, 0, 1},
		{"broken off, only refused before", 403, gone, 0, 1},
		{"success", 0, 200, 1, 1},
		{"broken off, granted before", 200, gone, 1, 1},
		{"outcome unknown, granted before", 200, 504, 1, 1},
		{"partly done, granted before", 200, 409, 1, 1},
		{"no rights, granted before", 200, 403, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer time.Sleep(time.Second) // what the engine is still at ends
				e := newEngine("news-1")
				f := near(t, e)
				var answers atomic.Int64
				e.answer = func(w http.ResponseWriter, a arrival) {
					switch status := int(answers.Load()); {
					case a.method == "DELETE" && status == gone:
						time.Sleep(time.Millisecond) // longer than the client waits
					case a.method == "DELETE":
						w.WriteHeader(status)
					}
					w.Write([]byte("{}"))
				}
				change := func(status int) {
					answers.Store(int64(status))
					r := httptest.NewRequest("DELETE", "/x", nil)
					r.Header.Set("Authorization", "changer")
					if status == gone {
						ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
						defer cancel()
						r = r.WithContext(ctx)
					}
					defer func() { _ = recover() }() // how the connection of a client that is gone is cut
					f.ServeHTTP(httptest.NewRecorder(), r)
				}
				looks := func(who string) int {
					before := len(e.lookups())
					if !f.writes(e, "Authorization: "+who) {
						t.Error("a document is not enriched")
					}
					return len(e.lookups()) - before
				}
				if c.before != 0 {
					change(c.before)
				}
				looks("other")
				looks("changer")
				for range 3 {
					change(c.status)
					expect.Must(t, [2]int{c.looks, c.looksSelf}, [2]int{looks("other"), looks("changer")}, "look-ups of another client, and of its own")
				}
			})
		})
	}
}

// TestManyRefusedChanges: a thousand requests without credentials, each under headers of its own, cost another client no look-up.
func TestManyRefusedChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine("news-1")
		e.refuse = func(a arrival) int {
			if a.header.Get("Authorization") != "known" {
				return http.StatusUnauthorized
			}
			return 0
		}
		e.answer = func(w http.ResponseWriter, a arrival) {
			if a.header.Get("Authorization") != "known" {
				w.WriteHeader(http.StatusUnauthorized)
			}
			w.Write([]byte("{}"))
		}
		f := near(t, e)
		f.writes(e, "Authorization: known")
		for i := range max(1000, effort.Rounds(10_000)) {
			who := "Authorization: guess " + string(rune('a'+i%26)) + string(rune(0x100+i/26))
			f.ask("DELETE", "/x", "", who)
			f.ask("POST", "/news-1/_bulk", "{\"index\":{}}\n{\"title\":\"a b c d e\"}\n", who) // leaves a failed look-up behind
		}
		before := len(e.lookups())
		if !f.writes(e, "Authorization: known") || len(e.lookups()) != before {
			t.Errorf("%d look-ups after changes that were refused", len(e.lookups())-before)
		}
	})
}
