package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/effort"
)

// sick answers searches over the stories, but none of the targets that can't takes a widened one.
func sick(t testing.TB, cant func(target string) bool) *engine {
	e := newEngine("news-a", "news-b", "news-1")
	plain := searching(t)
	e.answer = func(w http.ResponseWriter, a arrival) {
		target, _, _ := strings.Cut(strings.TrimPrefix(a.uri, "/"), "/")
		if widened(a) && cant(target) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"no such field"}`)
			return
		}
		plain(w, a)
	}
	return e
}

// TestBudgetOfEachTarget: a target that is always in trouble switches collapsing off for no other, at whatever age of the other, and
// all together send no more second requests than their share.
func TestBudgetOfEachTarget(t *testing.T) {
	searches := max(200, effort.Rounds(1000))
	e := sick(t, func(target string) bool { return target == "news-a" })
	f := near(t, e)
	asked, collapsed := map[string]int{}, map[string]int{}
	for i := range searches {
		target := "news-b"
		switch {
		case i%10 < 3:
			target = "news-a"
		case i == searches/2:
			target = "news-1" // never heard of before
		}
		rec := f.ask("POST", "/"+target+"/_search", `{"size":2}`)
		asked[target]++
		if strings.HasPrefix(rec.Header().Get("Neardup"), "collapsed") {
			collapsed[target]++
		}
	}
	if collapsed["news-a"] != 0 || collapsed["news-b"] < asked["news-b"]*95/100 || collapsed["news-1"] != asked["news-1"] {
		t.Errorf("of %v searches %v were collapsed", asked, collapsed)
	}
	if more := count(e.arrived(), "POST", "/news-a/") - asked["news-a"]; more < 5 || more > 5+asked["news-a"]/20 {
		t.Errorf("%d second requests for %d searches", more, asked["news-a"])
	}
}
