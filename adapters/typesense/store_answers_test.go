package typesense

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// answers is an engine without a network that answers from a list, "METHOD path" to a body in front of which a status may stand, and 404 to
// all else. It keeps the bodies that it was sent.
type answers struct {
	list map[string]string
	sent []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.sent = append(a.sent, string(body))
	}
	body := cmp.Or(a.list[r.Method+" "+r.URL.EscapedPath()], `404 {"message":"Not Found"}`)
	if first, rest, _ := strings.Cut(body, " "); len(first) == 3 {
		status, err := strconv.Atoi(first)
		if err != nil {
			return nil, err
		}
		w.WriteHeader(status)
		body = rest
	}
	_, _ = io.WriteString(w, body)
	return w.Result(), nil
}

func (a *answers) store() adapters.EngineStore {
	return Dialect{}.Open(a, []*url.URL{{Scheme: "http", Host: "engine"}}, nil)(nil, "")
}

// TestStoreOfSeveralNodes has the first node refuse connections: the second gets the whole request, at its own path. A node that took a
// request and hangs up is the last one asked.
func TestStoreOfSeveralNodes(t *testing.T) {
	a := &answers{list: map[string]string{"POST /at/here/collections/a%2Fb%2B/documents/import": `{"success":true,"document":{"id":"1"}}`}}
	down := &net.OpError{Op: "dial", Err: errors.New("refused")}
	asked := roundTrips(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Host {
		case "second":
			return a.RoundTrip(r)
		case "hung":
			_, _ = io.Copy(io.Discard, r.Body)
			return nil, io.ErrUnexpectedEOF
		}
		_, _ = io.Copy(io.Discard, r.Body)
		return nil, down
	})
	update := func(hosts ...string) error {
		var urls []*url.URL
		for _, host := range hosts {
			urls = append(urls, &url.URL{Scheme: "http", Host: host, Path: "/at/here/"})
		}
		store := Dialect{}.Open(asked, urls, nil)(nil, "").(*Store)
		return store.update(t.Context(), "a/b+", []byte("the lines"), func([]byte) error { return nil })
	}
	if err := update("first", "second"); err != nil || !slices.Equal(a.sent, []string{"the lines"}) {
		t.Errorf("%v, sent %q", err, a.sent)
	}
	if err := update("hung", "second"); !errors.Is(err, io.ErrUnexpectedEOF) || len(a.sent) != 1 {
		t.Errorf("%v, sent %q", err, a.sent)
	}
	if err := update("first"); !errors.Is(err, down) {
		t.Error(err)
	}
}

type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestScanOfAnExport reads all documents in order, or the first of them where there is a limit.
func TestScanOfAnExport(t *testing.T) {
	engine := answers{list: map[string]string{
		"GET /collections/news": `{"name":"news","num_documents":3}`, "GET /collections/news/documents/export": "{\"id\":\"a\"}\n{\"id\":\"b\"}\n{\"id\":\"c\"}\n",
	}}
	for limit, want := range []string{"abc", "a", "ab"} {
		got := ""
		err := engine.store().Scan(t.Context(), "news", nil, adapters.Selection{Limit: limit}, func(p adapters.Page) error {
			for _, d := range p.Documents {
				got += d.ID
			}
			return nil
		})
		expect.OK(t, err)
		expect.Same(t, want, got, "limit %d", limit)
	}
}

// TestLookUpByIDsAndBands takes each document once, and none whose id is merely like one that was asked for.
func TestLookUpByIDsAndBands(t *testing.T) {
	const found = `{"results":[{"found":3,"page":1,"request_params":{"collection_name":"news","per_page":250},"hits":[{"document":{"id":"a"}},{"document":{"id":"A"}},{"document":{"id":"a"}}]}]}`
	for _, c := range []struct {
		selection    adapters.Selection
		filter, want string
	}{
		{adapters.Selection{IDs: []string{"a", "b"}}, "id:[`a`,`b`]", "a"},
		{adapters.Selection{Bands: []int64{-7, 8}}, "neardup_bands:[-7,8]", "aA"},
	} {
		engine, got := answers{list: map[string]string{"POST /multi_search": found}}, ""
		err := engine.store().Scan(t.Context(), "news", nil, c.selection, func(p adapters.Page) error {
			for _, d := range p.Documents {
				got += d.ID
			}
			return nil
		})
		if asked := func(body string) bool { return strings.Contains(body, `"filter_by":"`+c.filter+`"`) }; err != nil || got != c.want || !slices.ContainsFunc(engine.sent, asked) {
			t.Errorf("%+v: %q %v, asked %q", c.selection, got, err, engine.sent)
		}
	}
}

// TestJournalEntryIsAppendedOnce: of two workers one alone appends an entry, and no other error is taken for that.
func TestJournalEntryIsAppendedOnce(t *testing.T) {
	for reply, want := range map[string][2]bool{"201 {}": {true, false}, "409 {}": {false, false}, "500 {}": {false, true}, "404 {}": {false, true}} {
		engine := answers{list: map[string]string{"POST /collections/" + JournalIndex + "/documents": reply, "POST /collections": "409 {}"}}
		appended, err := engine.store().Journal().Append(t.Context(), "job", adapters.Entry{Job: "job"})
		if appended != want[0] || (err != nil) != want[1] {
			t.Errorf("%s: %v %v", reply, appended, err)
		}
	}
}

// TestCollectionsThatAreNotThere are no error for who asks what is there, and one for who asks for their state.
func TestCollectionsThatAreNotThere(t *testing.T) {
	engine := answers{list: map[string]string{"GET /collections/news": `{"name":"news"}`, "GET /collections/broken": "500 {}"}}
	for name, want := range map[string]string{"news": "news", "gone": ""} {
		list, err := engine.store().Resolve(t.Context(), name)
		if err != nil || len(list) > 0 != (want != "") || want != "" && list[0].Name != want {
			t.Errorf("%s: %+v %v", name, list, err)
		}
	}
	if list, err := engine.store().Resolve(t.Context(), "broken"); err == nil {
		t.Errorf("%+v", list)
	}
	if got, err := engine.store().Condition(t.Context(), adapters.Index{Name: "gone"}, newRule(t, "gone", "body")); err == nil {
		t.Errorf("%+v", got)
	}
}

// TestHoldingsHaveTheirAliases, where the key may see them.
func TestHoldingsHaveTheirAliases(t *testing.T) {
	engine := answers{list: map[string]string{
		"GET /collections": `[{"name":"b"},{"name":"a"}]`, "GET /aliases": `{"aliases":[{"name":"y","collection_name":"a"},{"name":"x","collection_name":"a"}]}`,
	}}
	for _, want := range []string{"a[x y] b[]", "a[] b[]"} {
		list, err := engine.store().Holdings(t.Context())
		var got []string
		for _, h := range list {
			got = append(got, fmt.Sprint(h.Name, h.Aliases))
		}
		expect.OK(t, err)
		expect.Same(t, want, strings.Join(got, " "), "")
		delete(engine.list, "GET /aliases")
	}
}
