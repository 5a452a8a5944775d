package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// newKey makes a key and returns its value. It is deleted when the test ends.
func newKey(t *testing.T, e *engines.Engine, actions, collections string) string {
	t.Helper()
	var key struct {
		ID    int
		Value string
	}
	body := fmt.Sprintf(`{"description":"of a test","actions":[%s],"collections":[%s]}`, actions, collections)
	decode(t, call(t, e, "POST", e.URL+"/keys", body).want(t, 201).body, &key)
	t.Cleanup(func() { api{e, e.URL}.clear(t, fmt.Sprintf("/keys/%d", key.ID)) })
	return key.Value
}

// scopedOf makes a key of parameters that the engine puts over those of every search.
func scopedOf(key, params string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(params))
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(mac.Sum(nil)) + key[:4] + params))
}

// TestTypesenseKeysApart has a key that is good for one collection ask for another that other keys have just used.
func TestTypesenseKeysApart(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	q := p.renew(t, factSchema, factDocuments...)
	e := p.direct.e
	limited := newKey(t, e, `"*"`, `"`+p.names[1]+`"`)
	for range 2 {
		for name, key := range map[string]string{"all": e.Key, "limited": limited, "bad": "bad"} {
			for _, c := range []struct {
				request, body string
				good          int
			}{
				{"GET /collections/NAME/documents/search?q=alpha&query_by=title", "", 200},
				{"POST /collections/NAME/documents?action=upsert", factDocuments[0], 201},
				{"POST /collections/NAME/documents/import?action=upsert", factDocuments[1], 200},
				{"GET /collections/NAME", "", 200},
			} {
				if r := p.ask(t, 1, c.request, c.body, "X-Typesense-Api-Key", key); (r.status == c.good) != (name != "bad") {
					t.Errorf("%s, its own collection, %s: %d %.300s", name, c.request, r.status, r.body)
				}
				if r := q.ask(t, 1, c.request, c.body, "X-Typesense-Api-Key", key); (r.status == c.good) != (name == "all") ||
					name != "all" && strings.Contains(string(r.body), "alpha") {
					t.Errorf("%s, another collection, %s: %d %.300s", name, c.request, r.status, r.body)
				}
			}
		}
	}
	q.sketched(t, "1", "2")
}

// TestTypesenseScopedKeys has keys that embed what a reading would set. Nothing that they hide is got round, by us or with our
// help.
func TestTypesenseScopedKeys(t *testing.T) {
	p := newDuo(t, factSchema, factDocuments...)
	e := p.direct.e
	parent := newKey(t, e, `"documents:search"`, `"ts.*"`)
	for _, embedded := range []string{
		`{"filter_by":"n:>1","exclude_fields":"title"}`, `{"exclude_fields":"neardup_sketch"}`, `{"exclude_fields":"neardup_sketch,body"}`,
		`{"include_fields":"id,n"}`, `{"include_fields":"neardup_sketch"}`, `{"page":2,"per_page":1}`, `{"limit_hits":2}`, `{"group_by":"k"}`,
		`{"preset":"nope"}`, `{"q":"owls","sort_by":"n:asc"}`, `{"expires_at":1}`, `{"limit_multi_searches":1}`, `{"collection":"nope"}`,
		`{"filter_by":"k:=a","expires_at":99999999999,"cache_ttl":1}`, `{"pinned_hits":"1:1"}`, `{}`,
	} {
		key := scopedOf(parent, embedded)
		for _, params := range []string{"&filter_by=n:%3C4&include_fields=title,body", "&exclude_fields=id&per_page=2",
			"&include_fields=neardup_sketch,id", "&group_by=", "&neardup=off"} {
			request := searched + "?q=alpha&query_by=title" + params
			ask := []string{"X-Typesense-Api-Key", key}
			one := p.ask(t, 0, strings.Replace(request, "&neardup", "&x", 1), "", ask...)
			// A key that names our field shows it.
			named := strings.Contains(params, "neardup_sketch") || embedded == `{"include_fields":"neardup_sketch"}`
			if two := p.ask(t, 1, request, "", ask...); !named {
				p.alike(t, embedded+" "+request, one, two)
			} else if hides := strings.Contains(embedded, `"exclude_fields":"neardup`) || strings.Contains(embedded,
				`"include_fields":"id`); hides && strings.Contains(string(two.body), adapters.SketchField) {
				t.Errorf("%s %s shows what the key hides: %s", embedded, request, two.body)
			}
			search := `{"searches":[{"collection":"NAME","q":"alpha","query_by":"title"}]}`
			if two := p.ask(t, 1, multi+"?x=1"+params, search, ask...); !named {
				p.alike(t, embedded+" multi "+params, p.ask(t, 0, multi+"?x=1"+strings.Replace(params, "&neardup", "&x", 1), search, ask...),
					two)
			}
		}
	}
}

// clear deletes something directly, also when the test's own context is done.
func (a api) clear(t *testing.T, path string) {
	t.Helper()
	r, err := http.NewRequest("DELETE", a.e.URL+path, nil)
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("X-Typesense-Api-Key", a.e.Key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	resp.Body.Close()
}
