package arch

import (
	"fmt"
	"go/ast"
	"strings"
	"testing"
	"unicode/utf8"
)

// Sizes of the sources that are not tests: a line has at most maxColumns columns, with a
// tab as tabColumns of them, and a function at most maxFunction lines. Text in backquotes
// (SQL, patterns, programs) may be wider.
const (
	maxColumns  = 119
	tabColumns  = 4
	maxFunction = 70
)

// longFunctions are the functions that are longer, "dir.name", with the reason.
func longFunctions() map[string]string {
	return map[string]string{
		"eval/suite.Catalog":                "a table",
		"harness/config.foreignNames":       "a table",
		"kernels/kerneltest.bounds":         "a table",
		"kernels/kerneltest.checkEmpty":     "every operation once, on nothing",
		"kernels/kerneltest.normBenchmarks": "a table of benchmarks",
		"train/chat.directiveOf":            "one switch over the directives of strftime",
	}
}

func TestLineLength(t *testing.T) {
	for _, long := range module(t).lines {
		t.Error(long)
	}
}

func longLines(files []*goFile) (long []string) {
	for _, f := range files {
		raw := rawLines(f)
		for i, line := range strings.Split(string(f.text), "\n") {
			if n := columns(line); n > maxColumns && !raw[i] {
				long = append(long, fmt.Sprintf("%s:%d: %d columns; break the line at %d", f.path, i+1, n, maxColumns))
			}
		}
	}
	return long
}

// rawLines are the lines, from 0, that have text in backquotes.
func rawLines(f *goFile) map[int]bool {
	raw := map[int]bool{}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Value[0] == '`' {
			first := strings.Count(string(f.text[:lit.Pos()-f.syntax.FileStart]), "\n")
			for i := range 1 + strings.Count(lit.Value, "\n") {
				raw[first+i] = true
			}
		}
		return true
	})
	return raw
}

// columns is the width of a line of source.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
}

func TestFunctionLength(t *testing.T) {
	for _, long := range module(t).lengths {
		t.Error(long)
	}
}

// longBodies also names functions that may be long and are short.
func longBodies(files []*goFile, allowed map[string]string) (long []string) {
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := 1 + strings.Count(string(f.text[fn.Pos()-f.syntax.FileStart:fn.End()-f.syntax.FileStart]), "\n")
			name := f.dir + "." + fn.Name.Name
			if lines <= maxFunction {
				continue
			}
			if allowed[name] == "" {
				long = append(long, fmt.Sprintf("%s: %s has %d lines; at most %d, or a reason in longFunctions",
					f.path, fn.Name.Name, lines, maxFunction))
			}
			delete(allowed, name)
		}
	}
	for name := range allowed {
		long = append(long, fmt.Sprintf("longFunctions: %s is shorter now: remove it", name))
	}
	return long
}

func TestColumns(t *testing.T) {
	for line, want := range map[string]int{"": 0, "\tx": 5, "é – ü": 5, "a\tb": 6} {
		if got := columns(line); got != want {
			t.Errorf("%q: %d columns, want %d", line, got, want)
		}
	}
}
