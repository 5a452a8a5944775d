package jsonedit

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/internal/effort"
	"github.com/neardup/sidecar/internal/expect"
)

func TestCleanPrunes(t *testing.T) {
	cuts := Cuts{
		Drop: func(path []string) bool { return Our(path[len(path)-1]) },
		Prune: func(path []string, element bool) bool {
			name := path[len(path)-1]
			return strings.HasPrefix(name, "p") && (!element || name == "pe")
		},
		Edit: func(path []string, quoted []byte) []byte { return bytes.ReplaceAll(quoted, []byte("secret"), nil) },
	}
	const ours = `"neardup_sketch":"x"`
	for _, c := range []struct{ name, src, want string }{
		{"gone with its key", `{"a":1,"p":{` + ours + `}}`, `{"a":1}`},
		{"between", `{"a":1, "p" : { ` + ours + ` } , "b":2}`, `{"a":1 , "b":2}`},
		{"the outermost stays", `{` + ours + `}`, `{}`},
		{"something is left", `{"p":{` + ours + `,"a":{}}}`, `{"p":{"a":{}}}`},
		{"within one another", `{"p":{"p2":{"p3":{` + ours + `},"p4":{` + ours + `}}},"a":1}`, `{"a":1}`},
		{"elements stay", `{"p":[{` + ours + `},{"a":1,` + ours + `}]}`, `{"p":[{},{"a":1}]}`},
		{"all elements go", `{"pe":[{` + ours + `},[{` + ours + `}]],"a":1}`, `{"a":1}`},
		{"printed", "{\n  \"a\" : {\n    \"neardup_sketch\" : \"x\"\n  },\n  \"p\" : {\n    \"neardup_sketch\" : \"x\"\n  },\n  \"b\" : 1\n}\n", "{\n  \"a\" : { },\n  \"b\" : 1\n}\n"},
		{"edited", `{"a":["a secret text","secret"],"secret":{` + ours + `}}`, `{"a":["a  text",""],"secret":{}}`},
		{"cut short in ours", `{"a":1,"p":{"neardup_sketch":"sec`, `{"a":1,"p":{`},
		{"not JSON in ours", `{"a":1,"p":{"neardup_sketch":}}`, `{"a":1,"p":{}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, c.want, string(Cleaned([]byte(c.src), cuts)), "%s", c.src)
		})
	}
}

// What may be pruned is held within bounds.
func TestCleanHoldsLittleOfWhatMayBePruned(t *testing.T) {
	cuts := Cuts{Drop: inSource.Drop, Prune: func([]string, bool) bool { return true }}
	for _, inner := range []string{`"x":1`, `"_source":{"neardup_sketch":"` + strings.Repeat("s", 4*maxHeld) + `"},"x":1`} {
		src := `{"a":{"b":{` + inner + `,"long":"` + strings.Repeat("y", 4*maxHeld) + `"}}}`
		held := 0
		in := iotest.HalfReader(strings.NewReader(src))
		var e *editor
		e = streaming(io.Discard, readerFunc(func(p []byte) (int, error) {
			held = max(held, cap(e.out))
			return in.Read(p)
		}), cuts)
		if err := e.values(); err != nil || held > 128<<10 {
			t.Errorf("%v, %d bytes held", err, held)
		}
	}
}

// A string that is too long to be edited is passed over, and what follows it is cut.
func TestCleanPassesLongStrings(t *testing.T) {
	cuts := Cuts{Drop: inSource.Drop, Edit: func(_ []string, quoted []byte) []byte { return bytes.ToUpper(quoted) }}
	long := strings.Repeat("y", 4*maxHeld)
	src := `{"a":"x","_source":{"b":"` + long + `","neardup_sketch":"` + long + `","c":["x"]}}`
	var out bytes.Buffer
	expect.OK(t, Clean(&out, iotest.HalfReader(strings.NewReader(src)), cuts))
	expect.Same(t, `{"a":"X","_source":{"b":"`+long+`","c":["X"]}}`, out.String(), "")
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// node is a JSON value whose members have an order.
type node struct {
	open    byte   // '{', '[' or 0
	text    string // of what is neither
	keys    []string
	members []node
}

// print writes a value in one line, or as engines print one over several.
func (n node) print(b *strings.Builder, pretty bool, depth int) {
	line := func(depth int) {
		if pretty {
			b.WriteString("\n" + strings.Repeat("  ", depth))
		}
	}
	switch {
	case n.open == 0:
		b.WriteString(n.text)
		return
	case len(n.members) == 0 && pretty:
		fmt.Fprintf(b, "%c %c", n.open, n.open+2)
		return
	}
	b.WriteByte(n.open)
	for i, member := range n.members {
		if i > 0 {
			b.WriteByte(',')
		}
		line(depth + 1)
		if n.open == '{' {
			fmt.Fprintf(b, "%q", n.keys[i])
			b.WriteString(map[bool]string{true: " : ", false: ":"}[pretty])
		}
		member.print(b, pretty, depth+1)
	}
	if len(n.members) > 0 {
		line(depth)
	}
	b.WriteByte(n.open + 2)
}

func randomNode(r *rand.Rand, depth int) node {
	kind := r.IntN(6)
	if depth == 0 {
		kind = 5
	}
	n := node{open: '{'}
	switch kind {
	case 3, 4:
		n.open = '['
	case 5:
		return node{text: []string{`"x, }"`, "1e3", "null", `"\"neardup_sketch\":\""`, `""`}[r.IntN(5)]}
	}
	for range r.IntN(4) {
		n.keys = append(n.keys, []string{"neardup_sketch", "a", "p", "pe", "neardup_sketch", "b"}[r.IntN(6)])
		n.members = append(n.members, randomNode(r, depth-1))
	}
	return n
}

// less is what Clean must make of a value; gone says that nothing is left and it is to be pruned.
func (n node) less(cuts Cuts, path []string, at []int, element bool) (left node, gone bool) {
	left = node{open: n.open, text: n.text}
	for i, member := range n.members {
		inner, place := path, at
		if n.open == '[' {
			if place = append(slices.Clone(at), i); cuts.DropElement != nil && cuts.DropElement(path, place) {
				continue
			}
		}
		if n.open == '{' {
			if inner = append(slices.Clone(path), n.keys[i]); cuts.Drop(inner) {
				continue
			}
		}
		kept, gone := member.less(cuts, inner, place, n.open == '[')
		if !gone {
			left.keys, left.members = append(left.keys, n.keys[i]), append(left.members, kept)
		}
	}
	gone = len(left.members) == 0 && len(n.members) > 0 && cuts.Prune != nil && cuts.Prune(path, element)
	return left, gone
}

// TestCleanAgreesWithTheDefinition cuts random values and compares bytes.
func TestCleanAgreesWithTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	prunes := []func([]string, bool) bool{
		nil,
		func([]string, bool) bool { return true },
		func(_ []string, element bool) bool { return !element },
		func(path []string, element bool) bool {
			return path[len(path)-1] == "p" && !element || slices.Contains(path, "pe")
		},
	}
	for i := range effort.Rounds(4000) {
		n := node{open: '{', keys: []string{"a", "p"}, members: []node{randomNode(r, 5), randomNode(r, 5)}}
		cuts := Cuts{Drop: func(path []string) bool { return Our(path[len(path)-1]) }, Prune: prunes[i%len(prunes)]}
		if i%3 == 0 {
			cuts.DropElement = func(path []string, at []int) bool { return (len(path)+at[0]+at[len(at)-1])%3 == 0 }
		}
		root := cuts
		if cuts.Prune != nil { // the outermost value stays
			root.Prune = func(path []string, element bool) bool { return len(path) > 0 && cuts.Prune(path, element) }
		}
		left, _ := n.less(root, nil, nil, false)
		for _, pretty := range []bool{false, true} {
			var src, want strings.Builder
			n.print(&src, pretty, 0)
			left.print(&want, pretty, 0)
			var got, slow bytes.Buffer
			expect.OK(t, Clean(&got, strings.NewReader(src.String()), cuts))
			expect.Must(t, want.String(), got.String(), "%s", src.String())
			expect.OK(t, Clean(&slow, iotest.OneByteReader(strings.NewReader(src.String())), cuts))
			expect.Must(t, want.String(), slow.String(), "read byte by byte: %s", src.String())
		}
	}
}

// TestTextOfOverlongCharacters: Elasticsearch and OpenSearch read such bytes as the characters, so a name of ours may be spelled so.
func TestTextOfOverlongCharacters(t *testing.T) {
	for spelled, want := range map[string]string{
		"\xc1\xaeeardup_sketch":     SketchField,
		"\xe0\x81\xaeeardup_sketch": SketchField,
		"\xe0\xa4\xa8\xe0\xa4\xae":  "नम",
		"é":                         "é",
		"a\xc1":                     "a\xc1",
	} {
		if got, ok := Text([]byte(`"` + spelled + `"`)); !ok || got != want {
			t.Errorf("%q reads %q, want %q", spelled, got, want)
		}
	}
	for _, name := range []string{SketchField, SketchField + ".", BandsField + "..", ClusterField + "."} {
		if !Our(name) {
			t.Errorf("%s is not ours", name)
		}
	}
}
