package e2e

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestAttackUsers has users with different rights ask the same through one sidecar at once, in any order, in front of an Elasticsearch
// with security whose address, with an administrator's name and password, is in NEARDUP_SECURED_URL. Nobody is shown a document that the
// engine does not show them directly, nobody gets an answer where the engine refuses one, and nobody goes on with another's cursor. A
// user whose documents are filtered sees the page folded as if there were no others.
func TestAttackUsers(t *testing.T) {
	at, err := url.Parse(os.Getenv("NEARDUP_SECURED_URL"))
	if err != nil || at.User == nil {
		t.Skip("no Elasticsearch with security: set NEARDUP_SECURED_URL=http://name:password@host:port")
	}
	password, _ := at.User.Password()
	admin := basic(at.User.Username(), password)
	at.User = nil
	e := &engines.Engine{Kind: engines.Elasticsearch, URL: at.String()}
	base := serve(t, e, setup{match: "satk-u-*"})
	put := func(method, path, body string, status int) {
		t.Helper()
		call(t, e, method, e.URL+path, body, "Authorization", admin).want(t, status)
	}
	var ids []string
	for _, index := range []string{"satk-u-one", "satk-u-two"} {
		call(t, e, "DELETE", e.URL+"/"+index, "", "Authorization", admin)
		call(t, e, "PUT", base+"/"+index,
			`{"mappings":{"properties":{"body":{"type":"text"},"who":{"type":"keyword"},"n":{"type":"integer"}}}}`,
			"Authorization", admin).want(t, 200)
		defer put("DELETE", "/"+index, "", 200)
		var lines strings.Builder
		for i := range 12 {
			ids = append(ids, fmt.Sprintf("%s-%d", index, i))
			fmt.Fprintf(&lines, "{\"index\":{\"_index\":%q,\"_id\":%q}}\n{\"title\":\"news\",\"body\":%q,\"who\":%q,\"n\":%d}\n",
				index, ids[len(ids)-1], []string{victimText, craftedText}[i/2%2], []string{"all", "some"}[i%2], i)
		}
		call(t, e, "POST", base+"/_bulk?refresh=true", lines.String(), "Authorization", admin).want(t, 200)
	}
	users := map[string]string{"nobody": basic("nobody", "nothing"), "admin": admin}
	for name, index := range map[string]string{
		"first":   `{"names":["satk-u-one"],"privileges":["read"]}`,
		"second":  `{"names":["satk-u-two"],"privileges":["read","view_index_metadata"]}`,
		"limited": `{"names":["satk-u-*"],"privileges":["read"],"query":{"term":{"who":"some"}}}`,
		"blind":   `{"names":["satk-u-*"],"privileges":["read"],"field_security":{"grant":["n","who"]}}`,
		"none":    `{"names":["other"],"privileges":["read"]}`,
	} {
		r := call(t, e, "PUT", e.URL+"/_security/role/satk-"+name, `{"indices":[`+index+`]}`, "Authorization", admin)
		if r.status == 403 { // by the licence
			t.Logf("no user %s: %.200s", name, r.body)
			continue
		}
		r.want(t, 200)
		put("PUT", "/_security/user/satk-"+name, `{"password":"satk-password","roles":["satk-`+name+`"]}`, 200)
		defer put("DELETE", "/_security/role/satk-"+name, "", 200)
		defer put("DELETE", "/_security/user/satk-"+name, "", 200)
		users[name] = basic("satk-"+name, "satk-password")
	}
	names := slices.Collect(maps.Keys(users))
	asks := [][2]string{
		{"/satk-u-one/_search", `{"size":5,"sort":["n"]}`}, {"/satk-u-two/_search", `{"size":5,"sort":["n"]}`}, {"/satk-u-*/_search",
			`{"size":10,"sort":["n"]}`},
		{"/_search", `{"size":30,"sort":["n"],"query":{"prefix":{"_index":"satk-u-"}}}`}, {"/satk-u-one/_search",
			`{"size":3,"sort":["n"],"search_after":[1]}`}, {"/satk-u-one/_search?neardup_explain=true", `{"size":5}`},
	}
	var group sync.WaitGroup
	for worker := range 3 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 5))
			for range 60 {
				name, ask := names[r.IntN(len(names))], asks[r.IntN(len(asks))]
				path, _, _ := strings.Cut(ask[0], "?")
				one := call(t, e, "POST", e.URL+path, ask[1], "Authorization", users[name])
				two := call(t, e, "POST", base+ask[0], ask[1], "Authorization", users[name])
				if one.status != two.status {
					t.Errorf("%s asks %s: status %d, directly %d: %.200s", name, ask[0], two.status, one.status, two.body)
					continue
				}
				all := call(t, e, "POST", e.URL+path, strings.Replace(ask[1], `"size":`, `"size":1`, 1), "Authorization", users[name])
				visible := ownHits(all.body)
				for _, id := range ids {
					if strings.Contains(string(two.body), `"`+id+`"`) && !slices.Contains(visible, id) {
						t.Errorf("%s asks %s and is told of %s, which the engine shows to others", name, ask[0], id)
					}
				}
			}
		})
	}
	group.Wait()
	scrolled(t, e, base, users)
}

// scrolled has each user go on with a scroll that the administrator began: the answer is the engine's own.
func scrolled(t *testing.T, e *engines.Engine, base string, users map[string]string) {
	t.Helper()
	for name, authorization := range users {
		if name == "admin" {
			continue
		}
		begun := call(t, e, "POST", base+"/satk-u-one/_search?scroll=1m", `{"size":2}`, "Authorization",
			users["admin"]).want(t, 200)
		_, rest, _ := strings.Cut(string(begun.body), `"_scroll_id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		body := `{"scroll":"1m","scroll_id":"` + id + `"}`
		two := call(t, e, "POST", base+"/_search/scroll", body, "Authorization", authorization)
		one := call(t, e, "POST", e.URL+"/_search/scroll", body, "Authorization", authorization)
		if one.status != two.status || two.status == 200 {
			t.Errorf("%s goes on with another's scroll: %d, directly %d: %.200s", name, two.status, one.status, two.body)
		}
	}
}

func basic(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}
