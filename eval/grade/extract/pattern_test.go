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

	"exp/eval/grade/pattern"
)

// expressions finds the patterns in the sources, where all but quantityOf are constants.
func expressions(t *testing.T) (list []string) {
	t.Helper()
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
	built := 0
	for _, f := range sources {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if name, named := ast.Unparen(fun(call)).(*ast.Ident); !ok || !named || name.Name != "lazy" {
				return true
			}
			if v := info.Types[call.Args[0]].Value; v == nil {
				built++
			} else {
				list = append(list, constant.StringVal(v))
			}
			return true
		})
	}
	if len(list) < 100 || built != 1 {
		t.Fatalf("%d patterns were found, and %d that are not constants", len(list), built)
	}
	return list
}

// fun returns the function that a call names; nil for no call.
func fun(call *ast.CallExpr) ast.Expr {
	if call == nil {
		return nil
	}
	return call.Fun
}

// Every pattern compiles, and matches the lines of the grader's cases that package regexp matches. EXP_TEST_ALL=1 takes
// all lines, otherwise each pattern has some of its own.
func TestPatterns(t *testing.T) {
	quantityOf.MatchString("")
	var lines []string
	for _, name := range []string{"adversarial.txt", "adversarialresponses.txt", "hardcases.txt", "responses.txt"} {
		text, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.Split(string(text), "\n")...)
	}
	every := 149
	if os.Getenv("EXP_TEST_ALL") != "" {
		every = 1
	}
	for i, expr := range expressions(t) {
		want, err := regexp.Compile(expr)
		if err != nil {
			t.Error(err)
			continue
		}
		p := pattern.New(expr)
		for k := i % every; k < len(lines); k += every {
			if got := p.MatchString(lines[k]); got != want.MatchString(lines[k]) {
				t.Errorf("%q in %q: %t", expr, lines[k], got)
			}
		}
	}
}
