package adaptertest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// added is what enriching may put into a body.
var added = regexp.MustCompile(`,?"neardup_sketch":("[A-Za-z0-9+/=]*"|null)`)

// mentionsUs reports whether data may name a field or a control of ours, in whatever way it is written.
func mentionsUs(data string) bool {
	return strings.Contains(data, "neardup") || strings.ContainsAny(data, `\%`)
}

// FuzzWrites enriches any body in every form of write: without a rule each byte stays, with one nothing but our field is added,
// and the pieces in which it comes make no difference.
func FuzzWrites(f *testing.F, s Subject) {
	f.Helper()
	forms := map[string]adapters.Class{}
	for _, w := range s.Writes {
		class := s.Dialect.Classify(&w.Request)
		class.Target = "shop-1"
		forms[w.Method+" "+w.Path+"?"+w.RawQuery] = class
		f.Add(w.Body)
	}
	for _, c := range slices.Concat(wholes, partials) {
		for _, partial := range []bool{false, true} {
			if r := s.Write("shop-1", partial, c.document); r != nil {
				f.Add(r.Body)
			}
			f.Add([]byte(c.document))
		}
	}
	rules := Rules(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		for name, class := range forms {
			through := func(rule *rule.Rule, slow bool) string {
				var out bytes.Buffer
				src := io.Reader(bytes.NewReader(body))
				if slow {
					src = iotest.OneByteReader(src)
				}
				if _, err := s.Dialect.EnrichWrite(class, &out, src, Always(rule), 1<<30); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			if got := through(nil, false); got != string(body) {
				t.Fatalf("%s without a rule: %q became %q", name, body, got)
			}
			got := through(rules[1], false)
			if slow := through(rules[1], true); got != slow {
				t.Fatalf("%s: in other pieces %q became %q, not %q", name, body, slow, got)
			}
			if !mentionsUs(string(body)) && added.ReplaceAllString(got, "") != string(body) {
				t.Fatalf("%s: %q became %q", name, body, got)
			}
		}
	})
}

// FuzzReplies cleans any reply in every form: what holds nothing of ours stays as it is, nothing grows, and the pieces in which
// it comes make no difference.
func FuzzReplies(f *testing.F, s Subject) {
	f.Helper()
	forms := map[string]adapters.Class{}
	add := func(r Read) {
		forms[r.Method+" "+r.Path+"?"+r.RawQuery] = s.Dialect.Classify(&r.Request)
		f.Add([]byte(r.Reply))
	}
	for _, r := range s.Reads {
		add(r)
	}
	for _, member := range ours {
		for _, r := range s.Show(`{"a":1,`+member+`}`, `{`+member+`}`) {
			add(r)
		}
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		for name, class := range forms {
			var out, slow bytes.Buffer
			expect.OK(t, s.Dialect.CleanReply(class, &out, bytes.NewReader(reply)))
			expect.OK(t, s.Dialect.CleanReply(class, &slow, iotest.OneByteReader(bytes.NewReader(reply))))
			switch {
			case !bytes.Equal(out.Bytes(), slow.Bytes()):
				t.Fatalf("%s: in other pieces %q became %q, not %q", name, reply, slow.Bytes(), out.Bytes())
			case out.Len() > len(reply), !mentionsUs(string(reply)) && !bytes.Equal(out.Bytes(), reply):
				t.Fatalf("%s: %q became %q", name, reply, out.Bytes())
			}
		}
	})
}

// FuzzSearches parses any search and answers it by the fake engine: a request without a control of ours is its own plain
// form, and an exchange ends, in an answer or in one of the port's errors.
func FuzzSearches(f *testing.F, s Subject) {
	f.Helper()
	c := newCorpus(f, s, rand.New(rand.NewPCG(5, 1)), 40)
	plan := c.plan(rand.New(rand.NewPCG(6, 1)))
	var forms []*adapters.Request
	for _, target := range s.Targets {
		q := Search{Target: target, From: 3, Size: 3}
		for _, r := range []*adapters.Request{s.Search(q), s.Search(q, q)} {
			if r == nil {
				continue
			}
			forms = append(forms, r)
			f.Add(string(r.Body), r.RawQuery)
			for _, name := range []string{"neardup", "neardup_window", "neardup_wndow"} {
				for _, with := range (&trial{s, c, plan, r}).controlled(name, "1") {
					f.Add(string(with.Body), with.RawQuery)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, body, query string) {
		for _, form := range forms {
			r := *form
			r.Body, r.RawQuery = []byte(body), query
			x := &trial{s, c, plan, &r}
			parsed := x.parse(&r)
			if string(r.Body) != body || r.RawQuery != query {
				t.Fatalf("%s: the request was changed to %q, %q", r.Path, r.Body, r.RawQuery)
			}
			if !mentionsUs(body + query) {
				if diff := cmp.Diff(&r, parsed.Plain, cmpopts.EquateEmpty()); diff != "" || parsed.Refusal != nil {
					t.Fatalf("%s?%s %s: the plain search differs: %s %+v", r.Path, query, body, diff, parsed.Refusal)
				}
			}
			if parsed.Refusal != nil && s.Reason(parsed.Refusal) == "" {
				t.Fatalf("%s?%s %s: refused with %+v", r.Path, query, body, parsed.Refusal)
			}
			if parsed.Left() || parsed.Refusal != nil {
				continue
			}
			if _, err := Run(parsed, x.ask); err != nil && !ofThePort(err) {
				t.Fatalf("%s?%s %s: %v", r.Path, query, body, err)
			}
		}
	})
}

// ofThePort reports whether an error is one that an exchange may end in.
func ofThePort(err error) bool {
	_, alone := errors.AsType[adapters.Alone](err)
	is := func(one error) bool { return errors.Is(err, one) }
	return alone || is(adapters.ErrNotUnderstood) || is(adapters.ErrWidened) || is(adapters.ErrRefused)
}
