package extract

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every pattern compiles. They are found in the sources, where all but quantityOf are constants.
func TestPatternsCompile(t *testing.T) {
	files := token.NewFileSet()
	all, err := parser.ParseDir(files, ".", func(f os.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sources []*ast.File
	for _, f := range all["extract"].Files {
		sources = append(sources, f)
	}
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Error: func(error) {}} // imports are not looked up
	_, _ = conf.Check("extract", files, sources, &info)
	found, built := 0, 0
	quantityOf.compiled()
	for _, f := range sources {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if name, named := ast.Unparen(fun(call)).(*ast.Ident); !ok || !named || name.Name != "lazy" {
				return true
			}
			found++
			v := info.Types[call.Args[0]].Value
			if v == nil {
				built++
			} else if _, err := regexp.Compile(constant.StringVal(v)); err != nil {
				t.Errorf("%s: %v", files.Position(call.Pos()), err)
			}
			return true
		})
	}
	if found < 100 || built != 1 {
		t.Errorf("%d patterns were found, and %d that are not constants", found, built)
	}
}

// fun returns the function that a call names; nil for no call.
func fun(call *ast.CallExpr) ast.Expr {
	if call == nil {
		return nil
	}
	return call.Fun
}
