package adaptertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// odd are JSON values of which bytes, or their meaning, are easily lost.
var odd = []string{
	`"a b c"`, `"é\u00e9e\u0301 \ud83d\ude00 😀"`, `"\ud800x\udc00"`, "\"\u2028\u2029\ufeff\"",
	`"\u0000\u001f\/\\\""`, `"neardup_sketch"`, `""`, `"?!"`,
	`null`, `true`, `1e400`, `-0`, `1.50`, `9007199254740993`, `[]`, `{}`,
	`["a b",["c"],null]`, `["a",1]`, `[null]`, `{"neardup_sketch":"x"}`,
	`{"":{"":[{}]},"a":1,"a":2}`,
}

// oddNames are names that are none of ours, however alike, beside those of the rules' fields.
var oddNames = []string{
	`"title"`, `"body"`, `"title"`, `"body"`, `"n"`, `"\u0074itle"`, `"titl\u0065x"`, `""`, `"é\u00e9"`,
	`"neardup"`, `"neardup_sketch2"`, `"Neardup_sketch"`, `"a.b"`,
}

// value returns a value at random; names are those of objects that it may stand in.
func value(random *rand.Rand, names []string) string {
	v := odd[random.IntN(len(odd))]
	if random.IntN(3) == 0 {
		v = `"` + strings.Join(words(random, 1+random.IntN(12)), " ") + `"`
	}
	for depth := random.IntN(40) * max(0, random.IntN(8)-6); depth > 0; depth-- {
		v = fmt.Sprintf([]string{`[%s]`, `{"x":%s}`, `{"neardup_sketch":1,"x":[null,%s]}`}[random.IntN(3)], v)
	}
	if len(names) > 0 && random.IntN(4) == 0 {
		v = fmt.Sprintf(`{"x":{%q:{"neardup_sketch":%s}}}`, names[random.IntN(len(names))], v)
	}
	return v
}

// members returns the members of a document at random, each a name, a colon and a value. None is of ours, and some have one of
// the names.
func members(random *rand.Rand, names []string) []string {
	list := make([]string, random.IntN(6))
	for i := range list {
		name := oddNames[random.IntN(len(oddNames))]
		if len(names) > 0 && random.IntN(4) == 0 {
			name = fmt.Sprintf("%q", names[random.IntN(len(names))])
		}
		list[i] = name + space(random) + ":" + space(random) + value(random, names)
	}
	return list
}

// object returns an object of the members, with white space at random but no line end; with none between its members where one
// of these is ours, since what becomes of the space around a member that is cut out is nobody's business.
func object(random *rand.Rand, members []string) string {
	space := space
	if slices.ContainsFunc(members, func(m string) bool { return slices.Contains(ours, m) }) {
		space = func(*rand.Rand) string { return "" }
	}
	var b strings.Builder
	b.WriteString("{" + space(random))
	for i, m := range members {
		if i > 0 {
			b.WriteString(space(random) + "," + space(random))
		}
		b.WriteString(m)
	}
	return b.String() + space(random) + "}"
}

func space(random *rand.Rand) string { return []string{"", "", "", " ", "\t", "  "}[random.IntN(6)] }

// ours are ways to write a member that is our field.
var ours = []string{
	`"neardup_sketch":"AQgq1Zz+/w=="`, `"neardup_sketch":null`, `"neardup\u005fsketch":["x"]`,
	`"neardup_sketch":{"neardup_sketch":1}`,
}

// bare returns a document less our field.
func bare(document string) string {
	cut, err := jsonedit.Cut([]byte(document), rule.Our)
	if err != nil {
		return document
	}
	return string(cut)
}
