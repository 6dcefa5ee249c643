package sources

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"exp"
	"exp/harness/config"
)

var kinds = config.StagesOf()

// Every source file on disk that can be part of a run is embedded: a file that the
// patterns of source.go miss would be missing from every code digest.
func TestSourcesAreComplete(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, top := range []string{"kernels", "train", "eval", "experiments", "harness"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if !slices.Contains([]string{".go", ".c", ".h", ".s", ".py"}, filepath.Ext(path)) || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return nil
			}
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			disk, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			embedded, err := fs.ReadFile(exp.Sources, filepath.ToSlash(rel))
			if err != nil {
				t.Errorf("%s is not embedded", rel)
			} else if string(embedded) != string(disk) {
				t.Errorf("%s is embedded with other contents", rel)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// The digest of a kind covers what its work imports, and nothing that only shows
// results.
func TestCodeCovers(t *testing.T) {
	files := map[config.Stage][]string{}
	for _, k := range kinds {
		_, list, err := Code(k)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			files[k] = append(files[k], f.Path)
		}
	}
	for k, want := range map[config.Stage][]string{
		config.Prepare:   {"eval/task/countdown.go", "train/chat/parse.go", "train/tokenizer/bpe.go", "train/rollout/problem.go", "harness/stage/prepare.go", "go.sum"},
		config.SFT:       {"train/sft.go", "kernels/cpu/matmul.go", "kernels/cpu/level/matmul.h", "kernels/cpu/level/avx2/avx2_amd64.c", "kernels/backend.go", "train/model/forward.go", "train/optim/adamw.go"},
		config.EvalScore: {"sandbox/sandbox.go", "sandbox/zygote.py", "eval/grade/code/grader.go", "eval/layout/evalplus.py"},
		config.Train:     {"train/chat/parse.go", "sandbox/zygote.py", "train/rl/flowrl.go", "train/generate/engine.go", "eval/task/countdown.go", "kernels/ref/sample.go"},
		config.Merge:     {"train/checkpoint/merge.go", "train/tokenizer/charfiles.go"},
		config.EvalGen:   {"train/chat/parse.go", "train/generate/engine.go", "eval/generate.go"},
	} {
		for _, f := range want {
			if !slices.Contains(files[k], f) {
				t.Errorf("code(%s) lacks %s", k, f)
			}
		}
	}
	for k, list := range files {
		for _, f := range list {
			for _, not := range []string{"reports/", "cmd/", "experiments/", "harness/run/", "harness/config/", "kernels/kerneltest/", "_test.go"} {
				if strings.Contains(f, not) {
					t.Errorf("code(%s) covers %s", k, f)
				}
			}
		}
	}
	if slices.ContainsFunc(files[config.EvalScore], func(f string) bool { return strings.HasPrefix(f, "kernels/") }) {
		t.Error("scoring covers kernels")
	}
}

// All that the stages import of the engine and the graders belongs to some kind: otherwise a change there would
// leave results in the cache that it no longer gives.
func TestImportsAreCovered(t *testing.T) {
	covered := map[string]bool{}
	for _, k := range kinds {
		dirs, err := closure(exp.Sources, roots(k))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			covered[d] = true
		}
	}
	n := 0
	for _, dir := range stagePackages() {
		imports, err := importsOf(exp.Sources, dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range imports {
			if strings.HasPrefix(d, "harness/") && !slices.Contains(stagePackages(), d) && !covered[d] && d != "harness/config" && d != "harness/sources" {
				t.Errorf("no kind of stage covers %s", d)
			}
			for _, top := range []string{"kernels", "train", "eval", "sandbox"} {
				if d == top || strings.HasPrefix(d, top+"/") {
					n++
					if !covered[d] {
						t.Errorf("no kind of stage covers %s", d)
					}
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d imports were found", n)
	}
}

// A change of one file changes the digests of the kinds that import it.
func TestClosure(t *testing.T) {
	file := func(imports string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("package x\n" + imports)}
	}
	fsys := fstest.MapFS{
		"a/a.go":      file(`import "exp/b"`),
		"a/a_test.go": file(`import "exp/only/tests"`),
		"b/b.go":      file("import (\n\t\"fmt\"\n\tother \"exp/c/d\"\n)"),
		"c/d/d.go":    file(`import "exp/b"`), // a cycle would not compile, but must not hang
		"e/e.go":      file(""),
	}
	got, err := closure(fsys, []string{"a"})
	if want := []string{"a", "b", "c/d"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("closure = %v, %v; want %v", got, err, want)
	}
	if _, err := closure(fsys, []string{"gone"}); err == nil {
		t.Error("a package that is not there: no error")
	}
}
