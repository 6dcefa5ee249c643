// Package arch has the tests of how the sources are laid out: who imports whom, sizes, and rules of style. It compiles in a
// moment, because it imports nothing of ours.
package arch

import (
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// lawOfTheTree lists what this module's sources may do. A third-party module has one
// place, two where we wrap the platform and not a concept of ours; a new
// line is a decision, and says why.
func lawOfTheTree() law {
	return law{
		modules: map[string][]string{
			"github.com/mattn/go-sqlite3":      {"experiments/store"},
			"google.golang.org/protobuf":       {"experiments/trackers"},                                             // wire format of TensorBoard files
			"github.com/klauspost/compress":    {"eval/rows", "experiments/blob"},                                    // zstd of data, sources and packs
			"github.com/goccy/go-yaml":         {"harness/config", "harness/translate", "eval/suite", "cmd/exp/cli"}, // configurations; definitions of suites; -o yaml
			"mvdan.cc/sh/v3":                   {"harness/translate"},                                                // other trainers' scripts, read without executing them
			"github.com/parquet-go/parquet-go": {"eval/rows", "experiments/trackers"},                                // data sets of other programs; metrics for them
			"github.com/neurosnap/sentences":   {"eval/grade/instruct"},                                              // the Punkt model of English, for counts of sentences
			"github.com/urfave/cli/v2":         {"cmd/exp/cli"},
			"github.com/rivo/uniseg":           {"cmd/exp/term", "train/tokenizer"},        // columns of what a terminal shows; graphemes of SentencePiece's table
			"github.com/dlclark/regexp2":       {"train/tokenizer"},                        // split patterns of tokenizer files: look-ahead, \p{…}
			"golang.org/x/text":                {"train/tokenizer", "eval/grade/instruct"}, // normal forms of Unicode
			"golang.org/x/image":               {"train/picture"},                          // WebP and BMP, which the standard library does not read
			"github.com/aymanbagabas/go-udiff": {"harness/differ"},                         // unified diffs of sources
			"golang.org/x/term":                {"cmd/exp/term"},
			"gonum.org/v1/gonum/mathext":       {"eval/stat"}, // quantiles: package distuv compiles linear algebra as well
			"gonum.org/v1/plot":                {"reports/figure"},
			"codeberg.org/go-pdf/fpdf":         {"reports/figure"}, // PDF figures: gonum's own canvas has neither minus signs nor Greek
			"gorgonia.org/cu":                  {"kernels/cuda"},   // the driver of NVIDIA GPUs
			// System calls that package syscall does not have: statfs and flock, free
			// space, exchanging two folders, memory and CPU time.
			"golang.org/x/sys": {"sandbox", "experiments/store", "experiments/blob", "train/checkpoint", "harness/run"},
		},
		testOnly: []string{"github.com/google/go-cmp", "exp/kernels/kerneltest",
			"exp/train/checkpoint/checkpointtest", "exp/experiments/storetest", "exp/harness/prompt/prompttest"},
		testing: []string{"kernels/kerneltest", "train/checkpoint/checkpointtest", "experiments/storetest",
			"harness/prompt/prompttest"},
		files: 40,
		crowded: map[string]string{
			"cmd/exp":           "a file per command, and one for each long page",
			"experiments/store": "a file per table, and one per migration",
			"train":             "a file per phase of a step, and one per thing that learns",
			"harness/config":    "a file per block of keys, and one per step of loading",
			"train/chat":        "a template language: a file per construct and per family of methods",
			"train/checkpoint":  "a file per format, and twins for each platform",
			"train/rl":          "a file per algorithm and estimator",
		},
		backends: []string{"kernels/ref", "kernels/cpu", "kernels/cuda", "kernels/kerneltest"},
		openers:  []string{"harness/device"},
		hidden:   []string{"kernels", "train"},
	}
}

// inspection lists what breaks the rules in this module's sources.
type inspection struct {
	files                    int
	unlawful, lines, lengths []string
}

// module inspects this module's sources, once for all tests: parsing them takes a second, and their trees a
// hundred MiB.
func module(t *testing.T) inspection {
	t.Helper()
	m, err := inspectModule()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var inspectModule = sync.OnceValues(func() (inspection, error) {
	files, err := readTree(os.DirFS("../../.."))
	if err != nil {
		return inspection{}, err
	}
	m := inspection{files: len(files), unlawful: violations(files, lawOfTheTree())}
	files = slices.DeleteFunc(files, func(f *goFile) bool { return f.test })
	m.lines, m.lengths = longLines(files), longBodies(files, longFunctions())
	return m, nil
})

func TestArchitecture(t *testing.T) {
	m := module(t)
	if m.files < 100 {
		t.Fatalf("only %d Go files were found", m.files)
	}
	for _, v := range m.unlawful {
		t.Error(v)
	}
}

// The rules, each on a tree that is lawful but for one thing.
func TestArchitectureRules(t *testing.T) {
	lawful := map[string]string{
		"source.go":                "// Package exp is the root.\npackage exp",
		"kernels/ops.go":           "// Package kernels is low.\npackage kernels",
		"kernels/cpu/cpu.go":       "// Package cpu computes.\npackage cpu\nimport (\n\"C\"\n\"exp/kernels\"\n)",
		"kernels/suite/suite.go":   "// Package suite tests.\npackage suite\nimport \"testing\"",
		"kernels/cpu/cpu_test.go":  "package cpu\nimport (\n\"testing\"\n\"exp/kernels/suite\"\n\"example.com/cmp/opts\"\n)",
		"sandbox/box.go":           "// Package sandbox is low too.\npackage sandbox",
		"train/train.go":           "// Package train learns.\npackage train\nimport (\n\"exp/kernels\"\n\"exp/train/rl\"\n)",
		"train/train_test.go":      "package train\nimport \"exp/kernels/cpu\"",
		"train/rl/rl.go":           "// Package rl is pure.\npackage rl",
		"train/rollout/rollout.go": "// Package rollout is words.\npackage rollout",
		"eval/eval.go":             "// Package eval scores.\npackage eval\nimport (\n\"exp/sandbox\"\n\"exp/train/rollout\"\n)",
		"eval/stat/stat.go":        "// Package stat counts.\npackage stat",
		"experiments/store.go":     "// Package experiments keeps.\npackage experiments\nimport \"example.com/sql\"",
		"harness/run.go":           "// Package harness runs.\npackage harness\nimport (\n\"exp\"\n\"exp/eval\"\n\"exp/experiments\"\n\"exp/train\"\n)",
		"reports/table.go":         "// Package reports shows.\npackage reports\nimport (\n\"exp/eval/stat\"\n\"exp/experiments\"\n)",
		"harness/device/device.go": "// Package device opens.\npackage device\nimport \"exp/kernels/cpu\"",
		"cmd/x/main_test.go":       "package main\nimport (\n\"exp/kernels\"\n\"exp/train/rl\"\n)",
		"cmd/x/main.go":            "// Command x is the program.\npackage main\nimport (\n\"os\"\n\"exp/harness\"\n\"exp/harness/device\"\n)\nvar one = 1\nfunc main() { two := one; two++; os.Exit(two) }",
		"cmd/x/testdata/bad.go":    "not Go at all",
	}
	l := law{
		modules:  map[string][]string{"example.com/sql": {"experiments"}},
		testOnly: []string{"example.com/cmp", "exp/kernels/suite"},
		testing:  []string{"kernels/suite"},
		files:    2,
		backends: []string{"kernels/cpu"},
		openers:  []string{"harness/device"},
		hidden:   []string{"kernels", "train"},
		mutable:  map[string]string{"train.allowed": "for this test"},
	}
	for _, tt := range []struct {
		name, file, text string
		want             []string // none: lawful
	}{
		{"lawful", "train/more.go", "package train", nil},
		{"frame", "cmd/exp/cli/b.go", "// Package cli frames.\npackage cli\nimport \"exp/harness\"", []string{"cmd/exp/cli/b.go: imports exp/harness: the frame of the commands imports its screen, the store and what they are made of, and nothing else of ours"}},
		{"backwards", "kernels/b.go", "package kernels\nimport \"exp/train\"", []string{"kernels/b.go: imports exp/train: backwards: kernels, sandbox <- train <- eval <- harness <- reports <- cmd"}},
		{"backwards in a test", "eval/b_test.go", "package eval\nimport \"exp/harness\"", []string{"eval/b_test.go: imports exp/harness: backwards: kernels, sandbox <- train <- eval <- harness <- reports <- cmd"}},
		{"sideways", "sandbox/b.go", "package sandbox\nimport \"exp/kernels\"", []string{"sandbox/b.go: imports exp/kernels: sideways only inside a folder"}},
		{"experiments looks out", "experiments/b.go", "package experiments\nimport \"exp/kernels\"", []string{"experiments/b.go: imports exp/kernels: experiments imports nothing of ours but itself"}},
		{"train records", "train/b.go", "package train\nimport \"exp/experiments\"", []string{"train/b.go: imports exp/experiments: experiments is imported by harness, reports and cmd only"}},
		{"train runs programs", "train/b.go", "package train\nimport \"exp/sandbox\"", []string{"train/b.go: imports exp/sandbox: train knows no sandbox"}},
		{"rl is pure", "train/rl/b.go", "package rl\nimport \"exp/train/rollout\"", []string{"train/rl/b.go: imports exp/train/rollout: train/rollout and train/rl import nothing of ours"}},
		{"eval trains", "eval/b.go", "package eval\nimport \"exp/train\"", []string{"eval/b.go: imports exp/train: eval imports only train/rollout from train"}},
		{"the grader looks up", "eval/grade/latex/b.go", "// Package latex reads.\npackage latex\nimport \"exp/eval/grade/extract\"",
			[]string{"eval/grade/latex/b.go: imports exp/eval/grade/extract: " +
				"the grader's parts import lower ones only: pattern <- formula, wording <- latex <- extract <- grade"}},
		{"the grader looks out", "eval/grade/b.go", "// Package grade decides.\npackage grade\nimport \"exp/eval/stat\"",
			[]string{"eval/grade/b.go: imports exp/eval/stat: " +
				"the grader's parts import lower ones only: pattern <- formula, wording <- latex <- extract <- grade"}},
		{"a command grades", "cmd/x/b.go", "package main\nimport \"exp/eval/grade\"",
			[]string{"cmd/x/b.go: imports exp/eval/grade: commands grade through eval/answers, eval/task and harness"}},
		{"reports train", "reports/b.go", "package reports\nimport \"exp/train/rl\"", []string{"reports/b.go: imports exp/train/rl: reports read experiments, eval, eval/stat, harness/config and harness/metric, nothing that trains"}},
		{"catalogue", "harness/metric/b.go", "// Package metric describes.\npackage metric\nimport \"exp/harness\"", []string{"harness/metric/b.go: imports exp/harness: the catalogue of metrics imports eval alone"}},
		{"root", "b.go", "package exp\nimport \"exp/kernels\"", []string{"b.go: imports exp/kernels: the module's root imports nothing of ours"}},
		{"sources", "train/b.go", "package train\nimport \"exp\"", []string{"train/b.go: imports exp: only harness reads the embedded sources"}},
		{"new layer", "train/b.go", "package train\nimport \"exp/tools\"", []string{"train/b.go: imports exp/tools: no such layer"}},
		{"backend", "harness/b.go", "package harness\nimport \"exp/kernels/cpu\"", []string{"harness/b.go: imports exp/kernels/cpu: only harness/device and tests choose a backend"}},
		{"command and kernels", "cmd/x/b.go", "package main\nimport \"exp/kernels\"", []string{"cmd/x/b.go: imports exp/kernels: commands reach it through harness"}},
		{"command and training", "cmd/x/page/b.go", "// Package page shows.\npackage page\nimport \"exp/train/rl\"", []string{"cmd/x/page/b.go: imports exp/train/rl: commands reach it through harness"}},
		{"module in another place", "harness/b.go", "package harness\nimport \"example.com/sql/driver\"", []string{"harness/b.go: imports example.com/sql/driver: allowed in experiments only"}},
		{"module without a place", "harness/b_test.go", "package harness\nimport \"example.com/sqlite\"", []string{
			"harness/b_test.go: imports example.com/sqlite: a third-party module with no place in the table of law_test.go"}},
		{"stale place", "experiments/store.go", "// Package experiments keeps.\npackage experiments", []string{"table: experiments does not import example.com/sql any more"}},
		{"stale test module", "kernels/cpu/cpu_test.go", "package cpu\nimport \"exp/kernels/suite\"", []string{"table: no test imports example.com/cmp any more"}},
		{"go-cmp in the program", "eval/b.go", "package eval\nimport \"example.com/cmp\"", []string{"eval/b.go: imports example.com/cmp: only tests may"}},
		{"testing in the program", "eval/b.go", "package eval\nimport \"testing/fstest\"", []string{"eval/b.go: imports testing/fstest: only tests may"}},
		{"our tests in the program", "train/b.go", "package train\nimport \"exp/kernels/suite\"", []string{"train/b.go: imports exp/kernels/suite: only tests may"}},
		{"file name", "train/string_utils_test.go", "package train", []string{"train/string_utils_test.go: file string_utils: name it for the thing inside"}},
		{"package name", "eval/help/a.go", "// Package helpers does.\npackage helpers", []string{"eval/help/a.go: package helpers: name it for the thing inside"}},
		{"type name", "eval/b.go", "package eval\ntype runManager int", []string{"eval/b.go: type runManager: name it for the thing inside"}},
		{"no comment", "eval/deep/a.go", "package deep", []string{"eval/deep: no package comment"}},
		{"two comments", "eval/b.go", "// Package eval scores.\npackage eval", []string{"eval: 2 package comments: eval/b.go, eval/eval.go"}},
		{"another comment", "eval/deep/a.go", "// Copyright nobody.\npackage deep", []string{"eval/deep/a.go: the package comment does not begin with \"Package deep\""}},
		{"exit", "cmd/x/b.go", "package main\nimport system \"os\"\nfunc f() { system.Exit(1) }", []string{"cmd/x/b.go: f calls system.Exit: only main ends the process"}},
		{"fatal", "cmd/x/b.go", "package main\nimport \"log\"\nfunc f() { log.Fatalf(\"\") }", []string{"cmd/x/b.go: f calls log.Fatalf: only main ends the process"}},
		{"another Exit", "cmd/x/b.go", "package main\nimport \"os\"\ntype t struct{}\nfunc (t) Exit(int) {}\nfunc f(os t) { os.Exit(1) }", nil},
		{"init", "eval/b.go", "package eval\nfunc init() {}", []string{"eval/b.go: func init: no work at import"}},
		{"variable", "cmd/x/b.go", "package main\nvar m map[string][]int\nfunc f() { one = 2; one++; m[\"\"][1]-- }", []string{"cmd/x/b.go: changes the package variable m", "cmd/x/b.go: changes the package variable one"}},
		{"variable's part", "eval/b.go", "package eval\nvar p *struct{ n int }\nfunc f() { (*p).n += 1 }", []string{"eval/b.go: changes the package variable p"}},
		{"variable with a reason", "train/b.go", "package train\nvar allowed int\nfunc f() { allowed = 1 }", nil},
		{"variable of a function", "cmd/x/b.go", "package main\nfunc f(one int) { one = 2; var m [1]int; m[0] = 1 }", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for name, text := range lawful {
				tree[name] = &fstest.MapFile{Data: []byte(text)}
			}
			tree[tt.file] = &fstest.MapFile{Data: []byte(tt.text)}
			files, err := readTree(tree)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, violations(files, l)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}
