package elastic

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

var (
	timeTaken    = regexp.MustCompile(`("took" ?: ?)\d+`)
	approximated = regexp.MustCompile(`Approximate\(([^()]*)\)`)
)

// comparable returns a reply less what differs from one answer of an engine to the next: how long it took, and two things of OpenSearch. It adds
// terminated_early where nothing is counted and a shard is asked after another one's hits have shown that none of its own can be on the page. And it
// explains a range as Approximate(…) for some sizes of a page.
func comparable(reply string) string {
	reply = strings.ReplaceAll(timeTaken.ReplaceAllString(reply, "${1}0"), `"terminated_early":true,`, "")
	return approximated.ReplaceAllString(reply, "$1")
}

// totalIn returns a reply's total, -1 if it has none, and its relation.
func totalIn(t *testing.T, reply string) (total int, relation string) {
	t.Helper()
	var r struct {
		Hits struct{ Total json.RawMessage }
	}
	expect.OK(t, json.Unmarshal([]byte(reply), &r))
	var form struct {
		Value    int
		Relation string
	}
	if json.Unmarshal(r.Hits.Total, &form) == nil {
		return form.Value, form.Relation
	}
	total, err := strconv.Atoi(string(r.Hits.Total))
	if err != nil {
		return -1, ""
	}
	return total, ""
}

// split takes what we added out of a hit.
func split(t *testing.T, hit string) string {
	t.Helper()
	take := func(object []byte, outer, name string) (left []byte) {
		members, err := jsonedit.Members(object)
		expect.OK(t, err)
		within := jsonedit.Get(members, outer)
		if within == nil {
			return object
		}
		inside := expect.Value(jsonedit.Members(within))(t)
		if jsonedit.Get(inside, name) == nil {
			return object
		}
		if len(inside) == 1 {
			left, err = jsonedit.Cut(object, func(key string) bool { return key == outer })
		} else if within, err = jsonedit.Cut(within, func(key string) bool { return key == name }); err == nil {
			left, err = jsonedit.Set(object, outer, within)
		}
		expect.OK(t, err)
		return left
	}
	return string(take(take([]byte(hit), "inner_hits", "neardup"), "fields", "neardup_explain"))
}

func (p *page) folded() (n int) {
	for _, g := range p.list.Groups {
		n += len(g.Folded)
	}
	return n
}
