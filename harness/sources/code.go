// Package sources says which of the embedded sources can change what a kind of stage makes.
package sources

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"exp"
	"exp/experiments/ident"
	"exp/harness/config"
)

// roots are the packages of ours that a kind's work begins with.
func roots(kind config.Stage) []string {
	engine := []string{"kernels/cpu", "train/model", "train/checkpoint"}
	prompts := []string{"train/tokenizer", "train/chat"}
	switch kind {
	case config.Prepare, config.Select: // the first measures prompts, which may be too long
		return append(prompts, "eval/task", "train/picture")
	case config.Init, config.Merge:
		return append(engine, "train/tokenizer")
	case config.SFT, config.RewardModel, config.Prefer:
		return slices.Concat(engine, prompts, []string{"train"})
	case config.PassRate, config.Train:
		return slices.Concat(engine, prompts, []string{"train", "train/generate", "train/form", "train/reward",
			"train/toolcall", "harness/agent", "eval/task", "eval/interpreter"})
	case config.EvalGen:
		return slices.Concat(engine, prompts, []string{"train/generate", "train/form", "train/toolcall",
			"harness/agent", "eval", "eval/task", "eval/suite", "eval/interpreter"})
	case config.EvalScore:
		return []string{"train/tokenizer", "eval", "eval/task", "eval/suite"}
	}
	panic("sources: unknown kind " + string(kind))
}

// stagePackages are those in which stages do their work, too. What they import counts by kind.
func stagePackages() []string {
	return []string{"harness/stage", "harness/ask", "harness/prompt", "harness/dataset", "harness/answer"}
}

// Code returns the digest of the sources that can change the results of a kind of stage, and the
// files it covers: the stage's root packages, all our packages that they import, the stages' own,
// and go.sum for third-party modules, without tests. It reads the sources embedded in this binary.
func Code(kind config.Stage) (ident.Digest, []ident.File, error) {
	return Of(roots(kind))
}

// Of returns the digest of go.sum, the stages' packages, the packages in dirs and all our packages that these import,
// and the files it covers. It finds them once per process; all callers share the list.
func Of(dirs []string) (ident.Digest, []ident.File, error) {
	key := strings.Join(dirs, " ")
	if known, ok := codes.Load(key); ok {
		c := known.(code)
		return c.digest, c.files, nil
	}
	d, files, err := digestOf(dirs)
	if err == nil {
		codes.Store(key, code{d, slices.Clip(files)})
	}
	return d, files, err
}

// code is what Of returns.
type code struct {
	digest ident.Digest
	files  []ident.File
}

// codes holds what Of found, by dirs.
var codes sync.Map

// digestOf is Of for the first time.
func digestOf(dirs []string) (ident.Digest, []ident.File, error) {
	dirs, err := closure(exp.Sources, dirs)
	if err != nil {
		return ident.Digest{}, nil, err
	}
	keep := map[string]bool{}
	for _, d := range stagePackages() {
		keep[d] = true
	}
	for _, d := range dirs {
		keep[d] = true
	}
	all, err := sourceFiles()
	if err != nil {
		return ident.Digest{}, nil, err
	}
	var files []ident.File
	for _, f := range all {
		if f.Path == "go.sum" || keep[path.Dir(f.Path)] {
			files = append(files, f)
		}
	}
	d, err := ident.Code(runtime.Version(), files)
	return d, files, err
}

// sourceFiles hashes the embedded sources except tests, once per process.
var sourceFiles = sync.OnceValues(func() ([]ident.File, error) {
	return ident.SumFiles(exp.Sources, isSource)
})

func isSource(path string) bool { return !strings.HasSuffix(path, "_test.go") }

// Paths lists all embedded sources except tests. A run's record keeps them, so that the
// program can be rebuilt.
func Paths() ([]string, error) {
	var paths []string
	err := fs.WalkDir(exp.Sources, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && isSource(p) {
			paths = append(paths, p)
		}
		return err
	})
	return paths, err
}

// closure returns, sorted, dirs and the directories of our packages that they import, directly or
// not. It reads import declarations and ignores build constraints: sources for another system count
// too.
func closure(fsys fs.FS, dirs []string) ([]string, error) {
	seen := map[string]bool{}
	for queue := slices.Clone(dirs); len(queue) > 0; {
		dir := queue[0]
		queue = queue[1:]
		if seen[dir] {
			continue
		}
		seen[dir] = true
		imports, err := importsOf(fsys, dir)
		if err != nil {
			return nil, err
		}
		queue = append(queue, imports...)
	}
	out := make([]string, 0, len(seen))
	for d := range seen {
		out = append(out, d)
	}
	slices.Sort(out)
	return out, nil
}

// embeddedImports holds what importsOf found in the embedded sources, by directory.
var embeddedImports sync.Map

// importsOf returns the directories of our packages that the sources in dir import. It reads
// embedded ones once per process.
func importsOf(fsys fs.FS, dir string) ([]string, error) {
	if fsys != exp.Sources {
		return readImports(fsys, dir)
	}
	if known, ok := embeddedImports.Load(dir); ok {
		return known.([]string), nil
	}
	list, err := readImports(fsys, dir)
	if err == nil {
		embeddedImports.Store(dir, list)
	}
	return list, err
}

// readImports is importsOf for the first time.
func readImports(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("sources of %s: %w", dir, err)
	}
	var out []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return nil, fmt.Errorf("sources: %w", err)
		}
		for _, spec := range file.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return nil, fmt.Errorf("sources: %s: %w", name, err)
			}
			if rest, ours := strings.CutPrefix(p, "exp/"); ours {
				out = append(out, rest)
			}
		}
	}
	return out, nil
}
