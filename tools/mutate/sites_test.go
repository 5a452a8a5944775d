package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
)

const whole = `package p

func f(a, b int, err error) (int, error) {
	if a < b+1 && err == nil {
		a = b
		return a, err
	}
	const c = 1 + 2
	return c, nil
}
`

const broken = `package p; import breaks "github.com/neardup/sidecar/internal/breaks"

func f(a, b int, err error) (int, error) {
	if ((breaks.On(2) && ((breaks.Compare[int](3, "<", a, breaks.Sum[int](4, "+", b, 1))) || (err == nil)) || !breaks.On(2) && ((breaks.Compare[int](3, "<", a, breaks.Sum[int](4, "+", b, 1))) && (err == nil)))) != breaks.On(1) {
		if !breaks.On(5) { a = b }
		return breaks.Int(6, a), breaks.Error(7, err)
	}
	const c = 1 + 2
	return breaks.Int(8, c), nil
}
`

// TestRender breaks a function at every place.
func TestRender(t *testing.T) {
	fset := token.NewFileSet()
	file := expect.Value(parser.ParseFile(fset, "p.go", whole, 0))(t)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	expect.Value((&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{file}, info))(t)
	f := finder{fset: fset, info: info}
	ast.Inspect(file, f.visit)
	sortSites(f.sites)
	for i, s := range f.sites {
		s.ID = i + 1
	}
	expect.Same(t, broken, imported(render(whole, 0, len(whole), f.sites)), "the broken file")
}
