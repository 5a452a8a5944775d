package e2e

import (
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// TestStaleSketchAfterAFailedLookUp has the sidecar's own look at an index fail once, for a reason of the moment, before a part of a
// sketched text is changed by its first write: the sketch of the former text must not stay.
func TestStaleSketchAfterAFailedLookUp(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		const index = "chaosstale-1"
		const document = `{"id":"x","title":"a title of words","body":"the ferry crosses the river at seven in the morning"}`
		method, put, update := "PUT", "/"+index+"/_doc/x", "/"+index+"/_update/x"
		body := `{"doc":{"body":"butter is sold where the bridge meets the square"}}`
		if e.Kind == engines.Typesense {
			method, put, update = "POST", "/collections/"+index+"/documents?action=upsert", "/collections/"+index+"/documents?action=update"
			body = `{"id":"x","body":"butter is sold where the bridge meets the square"}`
		}
		direct := api{e, e.URL}
		direct.create(t, index)
		for _, fault := range []inject.Fault{
			{At: inject.RequestWhole, Do: inject.Answer, Reply: inject.Made(503, `{"message":"not now"}`)},
			{At: inject.ReplyHeader, Do: inject.Reset},
			{At: inject.ReplyBodyMiddle, Do: inject.Cut},
		} {
			t.Run(fault.String(), func(t *testing.T) {
				relay := inject.Start(t, e.URL)
				s := setup{match: index, urls: []string{relay.URL()}}
				if r := call(t, e, method, serve(t, e, s)+put, document); r.status >= 300 || !adapters.HasSketch(direct.get(t, index, "x")) {
					t.Fatalf("status %d, stored is %s", r.status, direct.get(t, index, "x"))
				}
				base := serve(t, e, s) // another one, that knows of no index
				relay.Forget()
				relay.Script(inject.Where(inject.To("GET", index), inject.First(1, fault)))
				r := call(t, e, "POST", base+update, body)
				if r.status >= 300 || relay.Bites() != 1 {
					t.Fatalf("status %d with %d faults: %s", r.status, relay.Bites(), r.body)
				}
				if why := wrong(ruleOfTests(t), direct.get(t, index, "x")); why != "" {
					t.Errorf("%s: %s", why, direct.get(t, index, "x"))
				}
			})
		}
	})
}
