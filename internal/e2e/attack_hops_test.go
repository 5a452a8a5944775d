package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// TestAttackHops names headers in Connection that are none of one connection: a proxy that took them away would make another request of it,
// one without its key, its length or its type. Status and answer are the engine's own, and a search is collapsed as it is without.
func TestAttackHops(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		index := "satk-hops"
		direct := api{e, e.URL}
		base := serve(t, e, setup{match: index})
		api{e, base}.create(t, index)
		for _, id := range []string{"a", "b"} {
			direct.loadLines(t, index, strings.Replace(lineFor(e, index, id), "some words", victimText, 1))
		}
		write, search, body := "POST /"+index+"/_doc/c", "POST /"+index+"/_search", `{"size":5}`
		key := ""
		if e.Kind == engines.Typesense {
			write, search, body = "POST /collections/"+index+"/documents?action=upsert",
				"GET /collections/"+index+"/documents/search?q=*&query_by=body", ""
			key = "X-Typesense-Api-Key: " + e.Key + "\r\n"
		}
		ask := func(base, request, connection, body string) reply {
			return onTheLine(t, base, fmt.Sprintf("%s HTTP/1.1\r\nHost: h\r\n%sContent-Type: application/json\r\nNeardup-Control: threshold=0.5\r\n"+
				"Accept: application/json\r\nAuthorization: Basic eDp5\r\nX-Opaque-Id: 7\r\nConnection: %s\r\nContent-Length: %d\r\n\r\n%s", request, key, connection, len(body), body))
		}
		document := fmt.Sprintf(`{"id":"c","title":"news","body":%q}`, craftedText)
		for _, connection := range []string{
			"close", "keep-alive, Authorization", "X-Typesense-Api-Key", "close, x-typesense-api-key", "Content-Length", "Content-Type", "Accept",
			"Neardup-Control", "Host", "X-Opaque-Id, Authorization, Content-Type", "Transfer-Encoding", "Neardup", "TE, Trailer",
			",,close", "\"Content-Type\"", "Connection",
		} {
			for _, r := range [][2]string{{write, document}, {search, body}} {
				one, two := ask(e.URL, r[0], connection, r[1]), ask(base, r[0], connection, r[1])
				if made := one.status == 201 && two.status == 200; one.status != two.status && !made {
					t.Errorf("Connection: %s, %s: status %d, directly %d: %.300s", connection, r[0], two.status, one.status, two.body)
				}
				if outcome := two.header.Get("Neardup"); r[0] == search && !strings.Contains(outcome, "folded=1") {
					t.Errorf("Connection: %s, the search is not collapsed: %s", connection, outcome)
				}
			}
			direct.refresh(t, index)
			values, found := oursStored(t, direct, index, "c")
			if !found || !strings.Contains(values, "neardup_sketch") {
				t.Errorf("Connection: %s: what is written has no sketch: %.300s", connection, values)
			}
		}
	})
}
