package proxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// TestTag holds documents to the cluster that they are stored with.
func TestTag(t *testing.T) {
	for _, c := range []struct {
		name, body string
		native     bool // without a look at near-duplicates
		want       []string
	}{
		{"alone", line("index 1", told(5, 0)), false, []string{"5"}},
		{"near one that is stored", line("index 1", told(1, 2)), false, []string{"a"}},
		{"the same text", line("index 1", told(1, 0)), false, []string{"a"}},
		{"near two that are stored", line("index 1", told(3, 1)), false, []string{"b"}},
		{"near one without a cluster under this rule", line("index 1", told(2, 1)), false, []string{"2"}},
		{"one behind the other", line("index 1", told(5, 0)) + line("create", told(5, 1)) + line("index 3", told(6, 1)) + line("index 4", told(5, 2)), false, []string{"5", "5", "6.1", "5"}},
		{"written again", line("index stored1", told(1, 0)), false, []string{"a"}},
		{"written anew", line("index stored1", told(5, 0)), false, []string{"5"}},
		{"near its own former text", line("index stored2", told(2, 1)), false, []string{"2.1"}},
		{"twice in one body", line("index 1", told(5, 0)) + line("index 1", told(5, 1)), false, []string{"5", "5.1"}},
		{"an update without a change", line("update stored1", told(1, 0)), false, []string{"a"}},
		{"an update to another text", line("update stored1", told(5, 0)), false, []string{"5"}},
		{"an update to what another one is near", line("update stored2", told(1, 1)), false, []string{"a"}},
		{"an update without a change, untagged", line("update stored1", told(1, 0)), true, []string{"a"}},
		{"an update to another text, untagged", line("update stored1", told(5, 0)), true, []string{"5"}},
		{"near one that is stored, untagged", line("index 1", told(1, 2)), true, []string{"1.2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			on := rule.TagDuplicates
			if c.native {
				on = rule.IndexDuplicates
			}
			b := newBank(t, "news-1", on, true)
			mark := b.rule.ClusterMark()
			b.docs["stored1"] = enrichedBy(b.rule, told(1, 0), mark+"aaaaaaaaaaaaa")
			b.docs["stored2"] = enrichedBy(b.rule, told(2, 0), "other mark")
			b.docs["stored3"], b.docs["stored4"] = enrichedBy(b.rule, told(3, 0), mark+"ccccccccccccc"), enrichedBy(b.rule, told(3, 0), mark+"bbbbbbbbbbbbb")
			f := b.front(t)
			names := map[string]string{mark + "aaaaaaaaaaaaa": "a", mark + "bbbbbbbbbbbbb": "b"}
			for n, name := range map[[2]int]string{{1, 0}: "1", {2, 0}: "2", {5, 0}: "5", {5, 1}: "5.1", {6, 1}: "6.1", {2, 1}: "2.1", {1, 2}: "1.2"} {
				s, _ := b.rule.Sketch([]string{told(n[0], n[1])})
				names[b.rule.ClusterID(s.Fingerprint)] = name
			}
			for range 2 { // in whatever order the engine answers
				expect.Must(t, 200, do(t, "POST", f.url+"/news-1/_bulk", c.body).status, "the status")
				var got []string
				for _, cluster := range clusters(b.lastSent(t)) {
					got = append(got, names[cluster])
				}
				expect.Same(t, c.want, got, "")
				for _, id := range []string{"1", "3", "4", "auto1"} {
					delete(b.docs, id)
				}
				b.docs["stored1"], b.docs["stored2"] = enrichedBy(b.rule, told(1, 0), mark+"aaaaaaaaaaaaa"), enrichedBy(b.rule, told(2, 0), "other mark")
			}
		})
	}
}

// TestSkip holds bulks to what is sent of them and what is answered.
func TestSkip(t *testing.T) {
	partly := strings.Join(append(strings.Fields(told(1, 0))[:28], strings.Fields(told(7, 0))[:12]...), " ") // which shares a band with told(1, 0)
	for _, c := range []struct {
		name string
		ops  []string
		left []int // operations that are not sent, by number
		want string
	}{
		{"alone", []string{line("index 1", told(5, 0))}, nil, "index 1 done"},
		{"near one that is stored", []string{line("index 1", told(5, 0)), line("create", told(1, 1))}, []int{1}, "index 1 done, create stored1 noop"},
		{"too little of one that is stored", []string{line("index 1", partly)}, nil, "index 1 done"},
		{"all of it", []string{line("index 1", told(1, 0)), line("create", told(2, 1))}, []int{0, 1}, "index stored1 noop, create stored2 noop"},
		{"an id that is there", []string{line("index stored2", told(1, 1))}, nil, "index stored2 done"},
		{"itself", []string{line("index stored1", told(1, 0))}, nil, "index stored1 done"},
		{"an update", []string{line("update stored2", told(1, 0))}, nil, "update stored2 done"},
		{"what stands for it goes", []string{line("index 1", told(1, 1)), line("delete stored1", "")}, nil, "index 1 done, delete stored1 done"},
		{"what stands for it changes", []string{line("update stored1", told(5, 0)), line("index 1", told(1, 1))}, nil, "update stored1 done, index 1 done"},
		{"written twice", []string{line("index 1", told(1, 1)), line("index 1", told(5, 0))}, nil, "index 1 done, index 1 done"},
		{"of the same bulk", []string{line("index 1", told(5, 0)), line("index", told(5, 1)), line("delete x", ""), line("index 4", told(5, 2))}, []int{1, 3},
			"index 1 done, index 1 noop, delete x done, index 1 noop"},
		{"of the same bulk, by an id that the engine makes", []string{line("index", told(5, 0)), line("index 2", told(5, 1))}, []int{1}, "index auto1 done, index auto1 noop"},
		{"of the same bulk, deleted", []string{line("index 1", told(5, 0)), line("index 2", told(5, 1)), line("delete 1", "")}, nil, "index 1 done, index 2 done, delete 1 done"},
		{"of the same bulk, an update", []string{line("update 1", told(5, 0)), line("index 2", told(5, 1))}, nil, "update 1 done, index 2 done"},
		{"of the same bulk, refused", []string{line("index no", told(5, 0)), line("index 2", told(5, 1)), line("index 3", told(6, 0))}, nil, "index no 429, index 2 done, index 3 done"},
		{"of the same bulk, both refused", []string{line("index no", told(5, 0)), line("index no2", told(5, 1))}, nil, "index no 429, index no2 429"},
		{"with a routing", []string{`{"index":{"_id":"1","routing":"x"}}` + "\n" + `{"title":"` + told(1, 0) + `"}` + "\n"}, nil, "index 1 done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBank(t, "news-1", rule.SkipDuplicates, false)
			b.put("stored1", told(1, 0))
			b.put("stored2", told(2, 0))
			b.refused = map[string]bool{"no": true, "no2": true}
			f := b.front(t)
			a := do(t, "POST", f.url+"/news-1/_bulk", strings.Join(c.ops, ""))
			expect.Same(t, c.want, strings.Join(results(t, a.body), ", "), "%d %s", a.status, a.body)
			expect.Same(t, 200, a.status, "the status")
			if len(c.ops) > len(c.left) && !strings.Contains(a.body, `"took":3,`) || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
				t.Errorf("%v %s", a.header, a.body)
			}
			want, sent := "", strings.Join(b.sent, "")
			for i, op := range c.ops {
				if !slices.Contains(c.left, i) {
					want += op
				}
			}
			if refused := strings.Contains(c.name, "refused"); !refused && cut(sent) != want {
				t.Errorf("sent was\n%s", cut(sent))
			}
			if n := f.counted(t, "documents_total change=skipped"); !strings.Contains(c.name, "refused") && n != int64(len(c.left)) {
				t.Errorf("%d are counted as skipped", n)
			}
		})
	}
}

// cut returns a bulk less our fields.
func cut(body string) string {
	var b strings.Builder
	for l := range strings.Lines(body) {
		for _, field := range []string{rule.SketchField, rule.BandsField, rule.ClusterField} {
			if at := strings.Index(l, `,"`+field+`":`); at >= 0 {
				value := l[at+len(field)+4:]
				end := strings.IndexAny(value[1:], `"]`) + 2
				l = l[:at] + value[end:]
			}
		}
		b.WriteString(l)
	}
	return b.String()
}

// TestSkipOne holds single documents to the answer to one that changes nothing.
func TestSkipOne(t *testing.T) {
	b := newBank(t, "news-1", rule.SkipDuplicates, false)
	b.put("stored1", told(1, 0))
	f := b.front(t)
	document := `{"title":"` + told(1, 1) + `"}`
	for _, c := range []struct{ method, path, want string }{
		{"PUT", "/news-1/_doc/1", ""}, {"POST", "/news-1/_doc", ""}, {"PUT", "/news-1/_create/1", ""},
		{"PUT", "/news-1/_doc/stored1", "sent"}, {"PUT", "/news-1/_doc/1?refresh=true", "sent"}, {"PUT", "/news-1/_doc/1?routing=x", "sent"}, {"PUT", "/news-1/_doc/1?filter_path=_id", "sent"},
		{"PUT", "/news-1/_doc/1?version=3&version_type=external", "sent"}, {"PUT", "/news-1/_doc/1?pipeline=p", "sent"},
	} {
		b.sent = nil
		b.docs = map[string]string{"stored1": enrichedBy(b.rule, told(1, 0), "")}
		a := do(t, c.method, f.url+c.path, document)
		expect.Same(t, c.want == "sent", len(b.sent) > 0, "%s %s is sent, answered %s", c.method, c.path, a.body)
		if noop := strings.Contains(a.body, `"_id":"stored1","_version":0,"result":"noop"`); c.want == "" && (!noop || a.status != 200 || a.header.Get("X-Elastic-Product") == "") {
			t.Errorf("%s %s: %d %s %v", c.method, c.path, a.status, a.body, a.header)
		}
	}
}

// TestDuplicatesFailOpen: whatever becomes of a look-up, the write goes on as if nothing were asked for.
func TestDuplicatesFailOpen(t *testing.T) {
	refused := errors.New("the engine answered 403: no")
	for _, c := range []struct {
		name, reason string
		fault        func(ctx context.Context, s adapters.Selection) error
	}{
		{"refused", "failed", func(context.Context, adapters.Selection) error { return refused }},
		{"busy", "failed", func(context.Context, adapters.Selection) error { return adapters.ErrBusy }},
		{"late", "late", func(ctx context.Context, _ adapters.Selection) error { <-ctx.Done(); return ctx.Err() }},
		{"a panic", "failed", func(context.Context, adapters.Selection) error { panic("a bug") }},
		{"refused bands", "failed", func(_ context.Context, s adapters.Selection) error {
			if s.Bands != nil {
				return refused
			}
			return nil
		}},
		{"refused ids", "failed", func(_ context.Context, s adapters.Selection) error {
			if s.IDs != nil {
				return refused
			}
			return nil
		}},
	} {
		for _, on := range []rule.OnDuplicate{rule.TagDuplicates, rule.SkipDuplicates} {
			synctest.Test(t, func(t *testing.T) {
				b := newBank(t, "news-1", on, on == rule.TagDuplicates)
				b.put("stored1", told(1, 0))
				b.fault = c.fault
				f := handler(t, []string{"http://engine"}, b.of(inMemory{b.engine}))
				body := line("index 1", told(1, 1)) + line("update 2", told(3, 0)) + line("create", told(1, 2))
				if on == rule.SkipDuplicates && c.name == "refused ids" {
					body = strings.ReplaceAll(body, told(1, 2), told(2, 2)) // or else the two stand for one another
				}
				began := time.Now()
				a := f.ask("POST", "/news-1/_bulk", body)
				if diff := cmp.Diff([]string{"index 1 done", "update 2 done", "create auto1 done"}, results(t, a.Body.String())); diff != "" || cut(b.lastSent(t)) != body {
					t.Errorf("%s: %s\n%s", c.name, diff, b.lastSent(t))
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("%s: it took %v", c.name, took)
				}
				if f.counted(t, "duplicates_total what="+c.reason) == 0 || f.counted(t, "documents_total change=enriched") != 3 {
					t.Errorf("%s: %v", c.name, exported(t, f.Metrics))
				}
				if c.name == "a panic" {
					return
				}
				scans := len(b.scans)
				f.ask("POST", "/news-1/_bulk", body)
				if len(b.scans) != scans || f.counted(t, "duplicates_total what=paused") == 0 {
					t.Errorf("%s: it asks again at once: %v", c.name, exported(t, f.Metrics))
				}
			})
		}
	}
}

// TestRepliesOfSkipped: a reply that can't be completed is never passed off as the answer; one that refuses all of a write is it.
func TestRepliesOfSkipped(t *testing.T) {
	body := line("index 1", told(5, 0)) + line("create", told(1, 1))
	for _, c := range []struct {
		name   string
		reply  func(w http.ResponseWriter, status int, body string)
		accept string
		status int
		want   string
	}{
		{"refused as a whole", func(w http.ResponseWriter, _ int, _ string) {
			w.WriteHeader(429)
			io.WriteString(w, `{"error":"busy"}`)
		}, "", 429, `{"error":"busy"}`},
		{"no JSON", func(w http.ResponseWriter, _ int, _ string) { io.WriteString(w, `<html>`) }, "", 502, "on_duplicate"},
		{"too few items", func(w http.ResponseWriter, _ int, _ string) { io.WriteString(w, `{"errors":false,"items":[]}`) }, "", 502, "on_duplicate"},
		{"in gzip", func(w http.ResponseWriter, _ int, body string) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, zipped(body))
		}, "gzip", 200, `"_id":"stored1"`},
		{"in gzip, broken", func(w http.ResponseWriter, _ int, body string) {
			w.Header().Set("Content-Encoding", "gzip")
			io.WriteString(w, body)
		}, "gzip", 502, "on_duplicate"},
		{"breaking off", func(w http.ResponseWriter, _ int, body string) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, body)
		}, "", 502, "on_duplicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBank(t, "news-1", rule.SkipDuplicates, false)
			b.put("stored1", told(1, 0))
			b.reply = c.reply
			a := do(t, "POST", b.front(t).url+"/news-1/_bulk", body, "Accept-Encoding: br, "+c.accept)
			if a.header.Get("Content-Encoding") == "gzip" {
				a.body = unzipped(t, a.body)
			}
			if a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	}
}

// TestDuplicatesOfStreams: a body that is not held whole is stored as it is, and counted.
func TestDuplicatesOfStreams(t *testing.T) {
	b := newBank(t, "news-1", rule.SkipDuplicates, true)
	b.put("stored1", told(1, 0))
	f := b.front(t)
	body := line("index 1", told(1, 1)) + fat("news-1", 1100)
	do(t, "POST", f.url+"/news-1/_bulk", body)
	if n := f.counted(t, "duplicates_total what=too_long"); n != 1101 || len(b.scans) > 0 || cut(b.lastSent(t)) != body {
		t.Errorf("%d are counted, %d look-ups, %d of %d bytes", n, len(b.scans), len(cut(b.lastSent(t))), len(body))
	}
}

// TestSkipWhatChanges: a document that goes, changes or comes between the two looks lets the write go on.
func TestSkipWhatChanges(t *testing.T) {
	for _, c := range []struct {
		name   string
		happen func(b *bank)
		want   string
	}{
		{"nothing", func(*bank) {}, "index stored1 noop"},
		{"it goes", func(b *bank) { delete(b.docs, "stored1") }, "index 1 done"},
		{"it changes", func(b *bank) { b.docs["stored1"] = enrichedBy(b.rule, told(5, 0), "") }, "index 1 done"},
		{"it changes a little", func(b *bank) { b.docs["stored1"] = enrichedBy(b.rule, told(1, 7), "") }, "index 1 done"},
		{"the new one comes", func(b *bank) { b.docs["1"] = enrichedBy(b.rule, told(5, 0), "") }, "index 1 done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBank(t, "news-1", rule.SkipDuplicates, false)
			b.put("stored1", told(1, 0))
			b.fault = func(_ context.Context, s adapters.Selection) error {
				if b.mu.Lock(); s.IDs != nil {
					c.happen(b)
				}
				b.mu.Unlock()
				return nil
			}
			a := do(t, "POST", b.front(t).url+"/news-1/_bulk", line("index 1", told(1, 1)))
			expect.Same(t, []string{c.want}, results(t, a.body), "")
		})
	}
}

// TestDuplicatesOfAMomentAgo: what was written through the sidecar is known before searches find it, to the same client alone, and stands for
// another only while it is there.
func TestDuplicatesOfAMomentAgo(t *testing.T) {
	b := newBank(t, "news-1", rule.SkipDuplicates, true)
	b.unseen = true
	f := b.front(t)
	send := func(lines string, want string, headers ...string) {
		t.Helper()
		a := do(t, "POST", f.url+"/news-1/_bulk", lines, headers...)
		expect.Same(t, []string{want}, results(t, a.body), "")
	}
	send(line("index 1", told(1, 0)), "index 1 done")
	send(line("index 2", told(1, 1)), "index 1 noop")
	send(line("index 3", told(1, 1)), "index 3 done", "Authorization: Basic other")
	first := clusters(b.sent[0])
	if others := clusters(b.lastSent(t)); len(first) != 1 || cmp.Equal(first, others) {
		t.Errorf("another client's document got cluster %q", others)
	}
	send(line("update 9", told(1, 1)), "update 9 done")
	expect.Same(t, first, clusters(b.lastSent(t)), "an update")
	send(line("index", told(2, 0)), "index auto1 done") // whose id is not known to us
	send(line("index 4", told(2, 1)), "index 4 done")
	delete(b.docs, "1")
	send(line("index 5", told(1, 2)), "index 5 done")
	b.refused = map[string]bool{"6": true}
	send(line("index 6", told(3, 0)), "index 6 429")
	send(line("index 7", told(3, 1)), "index 7 done")
}

// TestDuplicatesObeyDecisions: a document is stored that was decided to be another one than what it repeats, and gets a cluster of its own.
func TestDuplicatesObeyDecisions(t *testing.T) {
	for _, different := range []bool{false, true} {
		text := func(b *bank, title string) uint64 {
			s, _ := b.rule.Sketch([]string{title})
			return s.Fingerprint
		}
		decidedAs := func(b *bank) func(*proxy.Engine) {
			set := decided.NewSet([]decided.Pair{{
				Index: "news-1", A: "1", B: "stored1", Verdict: decided.Different, TextA: text(b, told(1, 1)), TextB: text(b, told(1, 0)),
			}})
			return func(e *proxy.Engine) {
				b.of(nil)(e)
				if different {
					e.Decided = func() *decided.Set { return set }
				}
			}
		}
		skipping := newBank(t, "news-1", rule.SkipDuplicates, false)
		skipping.put("stored1", told(1, 0))
		f := serve(t, skipping.engine, decidedAs(skipping))
		a := do(t, "POST", f.url+"/news-1/_bulk", line("index 1", told(1, 1)))
		want := map[bool]string{false: "index stored1 noop", true: "index 1 done"}[different]
		expect.Same(t, want, strings.Join(results(t, a.body), ", "), "skip, decided %v", different)

		tagging := newBank(t, "news-1", rule.TagDuplicates, true)
		tagging.docs["stored1"] = enrichedBy(tagging.rule, told(1, 0), tagging.rule.ClusterID(7))
		f = serve(t, tagging.engine, decidedAs(tagging))
		do(t, "POST", f.url+"/news-1/_bulk", line("index 1", told(1, 1)))
		cluster := map[bool]uint64{false: 7, true: text(tagging, told(1, 1))}[different]
		expect.Same(t, []string{tagging.rule.ClusterID(cluster)}, clusters(tagging.lastSent(t)), "tag, decided %v", different)

		delete(tagging.docs, "1")
		tagging.docs["stored2"] = enrichedBy(tagging.rule, told(1, 2), tagging.rule.ClusterID(7))
		do(t, "POST", f.url+"/news-1/_bulk", line("index 1", told(1, 1)))
		expect.Same(t, []string{tagging.rule.ClusterID(cluster)}, clusters(tagging.lastSent(t)), "tag beside a third document, decided %v", different)
	}
}

// TestTagOfEqualTexts: two documents of one text that were decided to be different are in two clusters.
func TestTagOfEqualTexts(t *testing.T) {
	b := newBank(t, "news-1", rule.TagDuplicates, true)
	s, _ := b.rule.Sketch([]string{told(1, 0)})
	stored := b.rule.ClusterID(s.Fingerprint)
	b.docs["stored1"] = enrichedBy(b.rule, told(1, 0), stored)
	set := decided.NewSet([]decided.Pair{{Index: "news-1", A: "1", B: "stored1", Verdict: decided.Different, TextA: s.Fingerprint, TextB: s.Fingerprint}})
	f := serve(t, b.engine, func(e *proxy.Engine) {
		b.of(nil)(e)
		e.Decided = func() *decided.Set { return set }
	})
	do(t, "POST", f.url+"/news-1/_bulk", line("index 1", told(1, 0)))
	if got := clusters(b.lastSent(t)); len(got) != 1 || got[0] == stored {
		t.Errorf("clusters %v, that of the stored one is %s", got, stored)
	}
}
