package documents

import (
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

// A document has the same texts in a file as in an index, also where a dotted field is there in both of its forms.
func TestFileAndIndexHaveTheSameTexts(t *testing.T) {
	r := &rule.Rule{Fields: []string{"a.b", "t"}}
	for _, c := range []struct {
		line string
		want []string
	}{
		{`{"id":1,"a":{"b":"inner"},"a.b":"outer","t":"x"}`, []string{"inner", "x"}},
		{`{"id":1,"a.b":"outer","a":{"b":"inner"},"t":"x"}`, []string{"inner", "x"}},
		{`{"id":1,"a.b":["outer",null,"more"],"a":{"c":1}}`, []string{"outer", "more"}},
		{`{"id":1,"a":[{"b":"one"},{"b":["two"]}],"a.b":"outer"}`, []string{"one", "two"}},
		{`{"id":1,"a":{"b":null},"a.b":"outer"}`, nil},
	} {
		d := expect.Value(Read([]byte(c.line), "id", r))(t)
		expect.Same(t, c.want, d.Texts, "%s", c.line)
		expect.Same(t, c.want, r.Texts([]byte(c.line)), "%s", c.line)
	}
	_, err := Read([]byte(`{"id":1,"a":{"b":5},"a.b":"outer"}`), "id", r)
	if err == nil || r.Texts([]byte(`{"a":{"b":5},"a.b":"outer"}`)) != nil {
		t.Fatal("a number counts as a text")
	}
}
