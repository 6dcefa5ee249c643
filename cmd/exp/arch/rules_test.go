package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// The rules of the source tree that a compiler does not check, as functions of
// parsed sources: law_test.go applies them to this module, and to small trees that
// break them. They read syntax only. What needs types (an interface that nobody
// implements, a variable that is changed through its address) is not covered.

// law lists what the rules allow by name.
type law struct {
	// modules are the third-party modules with the folders that import them.
	modules map[string][]string
	// testOnly are modules, and testing packages of ours, that only tests import.
	testOnly []string
	// testing are the folders that exist for tests: they may import testing.
	testing []string
	// backends are the folders that implement kernels.Backend, and openers those
	// that may import them outside of tests.
	backends, openers []string
	// hidden are the folders that commands reach through harness only.
	hidden []string
	// files is the most files without tests that a package may have; crowded packages may
	// have more, for the reason given.
	files   int
	crowded map[string]string
	// mutable are package variables that change, "dir.name", with the reason.
	mutable map[string]string
}

// goFile is one parsed source file.
type goFile struct {
	path, dir string
	text      []byte
	test      bool
	syntax    *ast.File
	imports   map[string]string // by the name that the file uses; "C" is left out
}

// readTree parses all Go files of a module, with the folders that the go tool
// ignores left out. Of tests it reads the imports only.
func readTree(fsys fs.FS) ([]*goFile, error) {
	var files []*goFile
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		name := path.Base(p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (name == "testdata" || name[0] == '.' || name[0] == '_'):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		f, err := readGo(fsys, p)
		files = append(files, f)
		return err
	})
	return files, err
}

func readGo(fsys fs.FS, p string) (*goFile, error) {
	text, err := fs.ReadFile(fsys, p)
	if err != nil {
		return nil, err
	}
	f := &goFile{path: p, dir: path.Dir(p), text: text, test: strings.HasSuffix(p, "_test.go"), imports: map[string]string{}}
	mode := parser.ParseComments
	if f.test {
		mode = parser.ImportsOnly
	}
	if f.syntax, err = parser.ParseFile(token.NewFileSet(), p, text, mode); err != nil {
		return nil, err
	}
	for _, spec := range f.syntax.Imports {
		of, err := strconv.Unquote(spec.Path.Value)
		if err != nil || of == "C" {
			continue
		}
		name := path.Base(of)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		f.imports[name+" "+of] = of
	}
	return f, nil
}

// violations applies every rule. Each line is "place: problem".
func violations(files []*goFile, l law) []string {
	var found []string
	for _, f := range files {
		found = append(found, f.importRules(l)...)
		found = append(found, f.nameRules()...)
		if !f.test {
			found = append(found, f.exitRules()...)
		}
	}
	packages := map[string][]*goFile{}
	for _, f := range files {
		if !f.test {
			packages[f.dir] = append(packages[f.dir], f)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(packages)) {
		found = append(found, documented(dir, packages[dir])...)
		found = append(found, l.crowd(dir, len(packages[dir]))...)
		found = append(found, constant(packages[dir], l)...)
	}
	return append(found, unused(files, l)...)
}

// importRules checks what a file imports.
func (f *goFile) importRules(l law) (found []string) {
	complain := func(to, why string) { found = append(found, fmt.Sprintf("%s: imports %s: %s", f.path, to, why)) }
	for _, to := range slices.Sorted(maps.Values(f.imports)) {
		dir, own := ours(to)
		first, _, _ := strings.Cut(to, "/")
		switch {
		case own:
			if why := forbidden(f.dir, dir); why != "" {
				complain(to, why)
			}
			if !f.test && within(f.dir, "harness/metric") && dir != "eval" { // reports read it, and nothing that trains
				complain(to, "the catalogue of metrics imports eval alone")
			}
			if !f.test && withinAny(dir, l.backends) && !within(f.dir, "kernels") && !withinAny(f.dir, l.openers) {
				complain(to, "only "+strings.Join(l.openers, ", ")+" and tests choose a backend")
			}
			if !f.test && within(f.dir, "cmd") && withinAny(dir, l.hidden) {
				complain(to, "commands reach it through harness")
			}
		case strings.Contains(first, "."):
			if why := l.foreign(f.dir, to); why != "" {
				complain(to, why)
			}
		}
		if !f.test && !withinAny(f.dir, l.testing) && (within(to, "testing") || withinAny(to, l.testOnly)) {
			complain(to, "only tests may")
		}
	}
	return found
}

// foreign says why a folder may not import a third-party package, "" if it may.
func (l law) foreign(dir, importPath string) string {
	for module, places := range l.modules {
		if !within(importPath, module) {
			continue
		}
		if slices.Contains(places, dir) {
			return ""
		}
		return "allowed in " + strings.Join(places, ", ") + " only"
	}
	if withinAny(importPath, l.testOnly) {
		return ""
	}
	return "a third-party module with no place in the table of law_test.go"
}

// nameRules checks that a file, its package and its types are named for what they
// are.
func (f *goFile) nameRules() (found []string) {
	complain := func(what, name string) {
		found = append(found, fmt.Sprintf("%s: %s %s: name it for the thing inside", f.path, what, name))
	}
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(f.path), ".go"), "_test")
	if slices.ContainsFunc(strings.Split(base, "_"), vague) {
		complain("file", base)
	}
	if vague(f.syntax.Name.Name) {
		complain("package", f.syntax.Name.Name)
	}
	for _, d := range f.syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			if name := s.(*ast.TypeSpec).Name.Name; slices.ContainsFunc(camelWords(name), vague) {
				complain("type", name)
			}
		}
	}
	return found
}

func vague(word string) bool {
	return slices.Contains([]string{"util", "utils", "helper", "helpers", "common", "misc", "base", "manager", "handler", "processor", "worker"}, word)
}

// camelWords splits "RunManager" into "run" and "manager".
func camelWords(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// exitRules checks that only main ends the process, and that nothing works in init.
func (f *goFile) exitRules() (found []string) {
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, f.path+": func init: no work at import")
		}
		if f.syntax.Name.Name == "main" && fn.Recv == nil && fn.Name.Name == "main" {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && x.Obj == nil && (f.calls(x, "os") && sel.Sel.Name == "Exit" || f.calls(x, "log") && strings.HasPrefix(sel.Sel.Name, "Fatal")) {
				found = append(found, fmt.Sprintf("%s: %s calls %s.%s: only main ends the process", f.path, fn.Name.Name, x.Name, sel.Sel.Name))
			}
			return true
		})
	}
	return found
}

// calls reports whether x names the import of a package.
func (f *goFile) calls(x *ast.Ident, importPath string) bool {
	return f.imports[x.Name+" "+importPath] != ""
}

// documented checks that exactly one file of a package has its comment.
func documented(dir string, files []*goFile) (found []string) {
	var with []string
	for _, f := range files {
		if f.syntax.Doc == nil {
			continue
		}
		with = append(with, f.path)
		want := "Package " + f.syntax.Name.Name
		if f.syntax.Name.Name == "main" {
			want = "Command " + path.Base(dir)
		}
		if text := f.syntax.Doc.Text(); !strings.HasPrefix(text, want+" ") {
			found = append(found, fmt.Sprintf("%s: the package comment does not begin with %q", f.path, want))
		}
	}
	switch {
	case len(with) == 0:
		found = append(found, dir+": no package comment")
	case len(with) > 1:
		found = append(found, fmt.Sprintf("%s: %d package comments: %s", dir, len(with), strings.Join(with, ", ")))
	}
	return found
}

// constant checks that no function changes a package variable: by assignment to it
// or to a part of it, or by ++ and --.
func constant(files []*goFile, l law) (found []string) {
	vars := map[string]bool{}
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
				for _, s := range g.Specs {
					for _, name := range s.(*ast.ValueSpec).Names {
						vars[name.Name] = name.Name != "_"
					}
				}
			}
		}
	}
	for _, f := range files {
		global := func(e ast.Expr) string {
			x := root(e)
			if x == nil || !vars[x.Name] || x.Obj != nil && f.syntax.Scope.Lookup(x.Name) != x.Obj {
				return ""
			}
			return x.Name
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			var changed []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					changed = n.Lhs
				}
			case *ast.IncDecStmt:
				changed = []ast.Expr{n.X}
			}
			for _, e := range changed {
				if name := global(e); name != "" && l.mutable[f.dir+"."+name] == "" {
					found = append(found, fmt.Sprintf("%s: changes the package variable %s", f.path, name))
				}
			}
			return true
		})
	}
	slices.SortFunc(found, cmp.Compare)
	return slices.Compact(found)
}

// root returns the variable that e belongs to, or nil.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// unused lists what the law allows and nobody needs.
func unused(files []*goFile, l law) (found []string) {
	needed := func(dir, module string) bool {
		return slices.ContainsFunc(files, func(f *goFile) bool {
			return (dir == "" || f.dir == dir) && slices.ContainsFunc(slices.Collect(maps.Values(f.imports)), func(to string) bool { return within(to, module) })
		})
	}
	for _, module := range slices.Sorted(maps.Keys(l.modules)) {
		for _, dir := range l.modules[module] {
			if !needed(dir, module) {
				found = append(found, fmt.Sprintf("table: %s does not import %s any more", dir, module))
			}
		}
	}
	for _, p := range l.testOnly {
		if !needed("", p) {
			found = append(found, "table: no test imports "+p+" any more")
		}
	}
	return found
}
