package rl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoFusedProducts reads the sources: every product must be converted on the
// spot, as in float64(x*y), or be a factor or a dividend itself. Otherwise a
// compiler may fuse it with a sum that it meets later, and bits differ between
// processors. Products of constants are folded and need not be converted, but
// none is written here.
func TestNoFusedProducts(t *testing.T) {
	for _, file := range sources(t, "*.go", "../optim/schedule.go", "../optim/clip.go") {
		for _, pos := range looseProducts(t, file, nil) {
			t.Errorf("%s: product without a conversion", pos)
		}
	}
	got := looseProducts(t, "x.go", "package x\nfunc f(a, b, c float64) float64 {\n"+
		"a = a*b + c\na -= (a * b)\na *= b\nreturn float64(a*b/c) + a/b + float64((a * b) * c)\n}")
	if len(got) != 3 {
		t.Errorf("the check finds %d of 3 loose products: %v", len(got), got)
	}
}

func sources(t *testing.T, patterns ...string) []string {
	t.Helper()
	var files []string
	for _, p := range patterns {
		names, err := filepath.Glob(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if !strings.HasSuffix(n, "_test.go") {
				files = append(files, n)
			}
		}
	}
	return files
}

func looseProducts(t *testing.T, file string, src any) []token.Position {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	var loose []token.Position
	bound := make(map[ast.Node]bool) // products whose rounding is settled
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && isConversion(fn.Name) {
				bound[ast.Unparen(n.Args[0])] = true
			}
		case *ast.BinaryExpr:
			if n.Op == token.MUL || n.Op == token.QUO {
				if n.Op == token.MUL && !bound[n] {
					loose = append(loose, fset.Position(n.Pos()))
				}
				bound[ast.Unparen(n.X)], bound[ast.Unparen(n.Y)] = true, true
			}
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN {
				loose = append(loose, fset.Position(n.Pos()))
			}
		}
		return true
	})
	return loose
}

func isConversion(name string) bool {
	return name == "float64" || name == "float32" || name == "T" || name == "int"
}
