package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// site is a place of the product and how it is broken there. Offsets are bytes of the file.
type site struct {
	ID         int
	Package    string // from the module's root, such as sketch/content
	File       string // from the module's root
	Line       int
	Break      string // what is done to it, for the report
	path       string
	start, end int
	parts      [][2]int // the pieces of the text that write gets
	write      func(id int, parts []string) string
}

// product returns the packages that are broken: everything of ours that the sidecar links, without the demo.
func product() ([]string, error) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}", "./cmd/sidecar").Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the sidecar: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(string(out)), func(path string) bool { return strings.Contains(path, "/demo") }), nil
}

// draw returns count places of the product, the same for the same seed and sources.
func draw(seed uint64, count int) ([]*site, error) {
	product, err := product()
	if err != nil {
		return nil, err
	}
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps}, product...)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	var all []*site
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		for _, file := range p.Syntax {
			f := finder{fset: p.Fset, info: p.TypesInfo}
			ast.Inspect(file, f.visit)
			for _, s := range f.sites {
				s.path = p.Fset.Position(file.Pos()).Filename
				if s.File, err = filepath.Rel(root, s.path); err != nil {
					return nil, err
				}
				s.Package = filepath.Dir(s.File)
			}
			all = append(all, f.sites...)
		}
	}
	slices.SortFunc(all, func(a, b *site) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.start - b.start
	})
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	fmt.Printf("%d places can be broken, %d are\n", len(all), min(count, len(all)))
	all = all[:min(count, len(all))]
	for i, s := range all {
		s.ID = i + 1
	}
	return all, nil
}

// finder collects the sites of a file.
type finder struct {
	fset  *token.FileSet
	info  *types.Info
	sites []*site
}

func (f *finder) add(n ast.Node, what string, write func(id int, parts []string) string, parts ...ast.Node) {
	at := f.fset.Position(n.Pos())
	s := &site{Line: at.Line, Break: what, start: at.Offset, end: f.fset.Position(n.End()).Offset, write: write}
	for _, p := range parts {
		s.parts = append(s.parts, [2]int{f.fset.Position(p.Pos()).Offset, f.fset.Position(p.End()).Offset})
	}
	f.sites = append(f.sites, s)
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if !f.constant(n.Cond) {
			f.add(n.Cond, "if turned round", flip, n.Cond)
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.GenDecl:
		return n.Tok != token.CONST
	}
	return true
}

func flip(id int, parts []string) string { return fmt.Sprintf("(%s) != breaks.On(%d)", parts[0], id) }

// constant reports whether the compiler knows the value of an expression: breaking it would not compile.
func (f *finder) constant(e ast.Expr) bool { return f.info.Types[e].Value != nil }

func (f *finder) binary(n *ast.BinaryExpr) {
	if f.constant(n) {
		return
	}
	x, isBasic := f.info.TypeOf(n.X).Underlying().(*types.Basic)
	y, isBasicToo := f.info.TypeOf(n.Y).Underlying().(*types.Basic)
	if !isBasic || !isBasicToo {
		return
	}
	op := n.Op.String()
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.add(n, "bound of "+op+" moved", func(id int, parts []string) string {
			return fmt.Sprintf("breaks.Compare%s(%d, %q, %s, %s)", typed(f.info.TypeOf(n.X)), id, op, parts[0], parts[1])
		}, n.X, n.Y)
	case token.ADD, token.SUB:
		if x.Info()&types.IsInteger != 0 && y.Info()&types.IsInteger != 0 {
			f.add(n, op+" exchanged", func(id int, parts []string) string {
				return fmt.Sprintf("breaks.Sum%s(%d, %q, %s, %s)", typed(f.info.TypeOf(n)), id, op, parts[0], parts[1])
			}, n.X, n.Y)
		}
	case token.LAND, token.LOR:
		other := map[string]string{"&&": "||", "||": "&&"}[op]
		f.add(n, op+" exchanged", func(id int, parts []string) string {
			a, b := parts[0], parts[1]
			return fmt.Sprintf("(breaks.On(%d) && ((%s) %s (%s)) || !breaks.On(%d) && ((%s) %s (%s)))", id, a, other, b, id, a, op, b)
		}, n.X, n.Y)
	}
}

// typed names the type of a function's arguments where that is short: 1<<n in place of a byte would else be an int.
func typed(t types.Type) string {
	if basic, ok := t.(*types.Basic); ok && basic.Info()&types.IsUntyped == 0 {
		return "[" + basic.Name() + "]"
	}
	return ""
}

func (f *finder) returned(n *ast.ReturnStmt) {
	for _, e := range n.Results {
		switch t := f.info.TypeOf(e); {
		case t == nil || f.info.Types[e].IsNil():
		case types.Identical(t, types.Universe.Lookup("error").Type()):
			f.add(e, "error dropped", func(id int, parts []string) string { return fmt.Sprintf("breaks.Error(%d, %s)", id, parts[0]) }, e)
		case types.Identical(t, types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool]):
			f.add(e, "answer turned round", flip, e)
		case types.Identical(t, types.Typ[types.Int]):
			f.add(e, "number one too large", func(id int, parts []string) string { return fmt.Sprintf("breaks.Int(%d, %s)", id, parts[0]) }, e)
		}
	}
}

// statements leaves out calls, assignments, counts and jumps in a list of statements.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		what := ""
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || types.ExprString(call.Fun) == "panic" {
				continue
			}
			what = "call left out"
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s) {
				continue
			}
			what = "assignment left out"
		case *ast.IncDecStmt:
			what = "count left out"
		case *ast.BranchStmt:
			if s.Tok != token.CONTINUE {
				continue // without a break or a goto some functions would lack a return
			}
			what = "continue left out"
		default:
			continue
		}
		f.add(s, what, func(id int, parts []string) string { return fmt.Sprintf("if !breaks.On(%d) { %s }", id, parts[0]) }, s)
	}
}

func blank(s *ast.AssignStmt) bool {
	for _, e := range s.Lhs {
		if id, ok := e.(*ast.Ident); !ok || id.Name != "_" {
			return false
		}
	}
	return true
}
