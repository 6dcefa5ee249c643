package ident

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHashTagsAreDomains(t *testing.T) {
	a, _ := Hash("exp/run/1", "x")
	b, _ := Hash("exp/run/2", "x")
	if a == b {
		t.Error("one digest under two tags")
	}
	for _, tag := range []string{"", strings.Repeat("t", 256)} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("tag of %d bytes: no panic", len(tag))
				}
			}()
			_, _ = Hash(tag, nil)
		}()
	}
}

func TestRecordsOrderAndErrors(t *testing.T) {
	digest := func(records ...any) Digest {
		r := NewRecords()
		for _, v := range records {
			if err := r.Add(v); err != nil {
				t.Fatal(err)
			}
		}
		return r.Digest()
	}
	if digest("a", "b") == digest("b", "a") {
		t.Error("order does not matter")
	}
	if digest() == digest(nil) || digest([]any{"a", "b"}) == digest("a", "b") {
		t.Error("number of records does not matter")
	}
	r := NewRecords()
	r.Add("a")
	if err := r.Add(math.NaN()); err == nil {
		t.Error("took NaN")
	}
	r.Add("b")
	if r.Digest() != digest("a", "b") {
		t.Error("a refused record left a trace")
	}
}

func TestWeightsSeesEveryField(t *testing.T) {
	base := Tensor{Name: "w", DType: "F32", Shape: []int{2, 3}, Data: Sum([]byte("x"))}
	name, dtype, shape, data := base, base, base, base
	name.Name, dtype.DType, shape.Shape, data.Data = "v", "F64", []int{3, 2}, Sum([]byte("y"))
	seen := map[Digest]bool{}
	for _, tensors := range [][]Tensor{{}, {base}, {name}, {dtype}, {shape}, {data}, {base, name}} {
		d, err := Weights(tensors)
		if err != nil || seen[d] {
			t.Errorf("Weights(%v) = %s, %v: not a new digest", tensors, d, err)
		}
		seen[d] = true
	}
	if _, err := Weights([]Tensor{base, name, base}); err == nil || !strings.Contains(err.Error(), `"w"`) {
		t.Errorf("two tensors of one name: error %v", err)
	}
}

// ofTraining holds for the sources in train and its folders, and go.sum.
func ofTraining(path string) bool {
	return path == "go.sum" || strings.HasPrefix(path, "train/") && !strings.HasSuffix(path, "_test.go")
}

// codeOf returns the digest of what ofTraining holds for.
func codeOf(t *testing.T, tree fstest.MapFS, goVersion string) (Digest, []File) {
	t.Helper()
	files, err := SumFiles(tree, ofTraining)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Code(goVersion, files)
	if err != nil {
		t.Fatal(err)
	}
	return d, files
}

func TestCodeChangesWithItsFilesOnly(t *testing.T) {
	digest := func(edit func(fstest.MapFS)) Digest {
		tree := exampleTree()
		edit(tree)
		d, _ := codeOf(t, tree, "go1.26.0")
		return d
	}
	base := digest(func(fstest.MapFS) {})
	same := map[string]func(fstest.MapFS){
		"another package":     func(fs fstest.MapFS) { fs["reports/report.go"].Data = []byte("new") },
		"a test":              func(fs fstest.MapFS) { fs["train/train_test.go"].Data = []byte("new") },
		"a longer name":       func(fs fstest.MapFS) { fs["training/training.go"].Data = []byte("new") },
		"time and permission": func(fs fstest.MapFS) { fs["go.sum"].Mode = 0o755 },
	}
	for name, edit := range same {
		if digest(edit) != base {
			t.Errorf("%s changed the digest", name)
		}
	}
	other := map[string]func(fstest.MapFS){
		"content":  func(fs fstest.MapFS) { fs["train/rl/gae.go"].Data = []byte("new") },
		"new file": func(fs fstest.MapFS) { fs["train/rl/kl.go"] = &fstest.MapFile{} },
		"renamed": func(fs fstest.MapFS) {
			fs["train/rl/gae2.go"] = fs["train/rl/gae.go"]
			delete(fs, "train/rl/gae.go")
		},
	}
	for name, edit := range other {
		if digest(edit) == base {
			t.Errorf("%s left the digest", name)
		}
	}
	if d, _ := codeOf(t, exampleTree(), "go1.27.0"); d == base {
		t.Error("the Go version left the digest")
	}
}

func TestCodeListsItsFiles(t *testing.T) {
	_, files := codeOf(t, exampleTree(), "go1.26.0")
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	if got, want := strings.Join(paths, " "), "go.sum train/rl/gae.go train/train.go"; got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if files[0].SHA256 != Sum([]byte("sum")) {
		t.Errorf("go.sum has digest %s", files[0].SHA256)
	}
}

func TestKeysSeeEveryField(t *testing.T) {
	d := func(s string) Digest { return Sum([]byte(s)) }
	base := Stage{Kind: "train", Params: map[string]any{"a": 1}, Inputs: map[string]Digest{"w": d("w")}, Code: d("c"), Seed: "s", Numerics: "n"}
	edits := map[string]func(*Stage){
		"kind":     func(s *Stage) { s.Kind = "sft" },
		"params":   func(s *Stage) { s.Params = map[string]any{"a": 2} },
		"inputs":   func(s *Stage) { s.Inputs = map[string]Digest{"w": d("v")} },
		"code":     func(s *Stage) { s.Code = Digest{} },
		"seed":     func(s *Stage) { s.Seed = "" },
		"numerics": func(s *Stage) { s.Numerics = "" },
	}
	want, err := base.SID()
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range edits {
		s := base
		edit(&s)
		if got, err := s.SID(); err != nil || got == want {
			t.Errorf("%s does not enter the stage id (%v)", name, err)
		}
	}
	if RID(want, 1, "n") == RID(want, 2, "n") || RID(want, 1, "n") == RID(want, 1, "m") {
		t.Error("seed or numerics do not enter the run id")
	}
	if _, err := (Experiment{Config: map[string]any{"lr": math.NaN()}}).XID(); err == nil {
		t.Error("a config with NaN has an id")
	}
}

func TestSeedLabelsAreStreams(t *testing.T) {
	seen := map[uint64]string{}
	for _, label := range []string{"a", "b", "a/b", "rollout/sample=1", "rollout/sample=11"} {
		for root := range int64(3) {
			s := Seed(root, label)
			d := mustHash("exp/seed/1", map[string]any{"root": root, "label": label})
			if s != binary.BigEndian.Uint64(d[:8]) {
				t.Errorf("Seed(%d, %q) is not the hash of what it names", root, label)
			}
			if other, ok := seen[s]; ok {
				t.Errorf("%s and %s share a seed", label, other)
			}
			seen[s] = label
		}
	}
}
