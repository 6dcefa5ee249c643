package torchfile_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/train/checkpoint"
	"exp/train/checkpoint/fault"
	"exp/train/checkpoint/torchfile"
)

// golden is where files written by torch lie, if at all.
const golden = "../../../../shared/data/models/pytorch"

// openGolden opens a file written by torch, or skips the test without it.
func openGolden(t *testing.T, name string) (torchfile.Node, *os.File, error) {
	t.Helper()
	path := filepath.Join(golden, name)
	f, err := os.Open(path)
	if err != nil {
		t.Skipf("the golden files are not here: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	n, err := torchfile.Open(path, f, 0, info.Size())
	return n, f, err
}

// sameTensors compares the tensors of a dict with a safetensors file.
func sameTensors(t *testing.T, dict torchfile.Node, f *os.File, want string) {
	t.Helper()
	merged, err := checkpoint.OpenFile(filepath.Join(golden, want))
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	for _, s := range merged.Sources() {
		x, err := dict.Get(s.Name).Tensor()
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if x.DType != string(s.DType) || !slices.Equal(x.Shape, s.Shape) {
			t.Errorf("%s: got %s %v, want %s %v", s.Name, x.DType, x.Shape, s.DType, s.Shape)
			continue
		}
		var elements bytes.Buffer
		if err := s.Raw(&elements); err != nil {
			t.Fatal(err)
		}
		e := x.Extent(f)
		got, err := io.ReadAll(io.NewSectionReader(e, 0, e.Size()))
		if err != nil || !bytes.Equal(got, elements.Bytes()) {
			t.Errorf("%s: other elements (%v)", s.Name, err)
		}
	}
	if got := len(merged.List()); got != dict.Len() {
		t.Errorf("%d tensors, want %d", dict.Len(), got)
	}
}

func TestGoldenOdd(t *testing.T) {
	n, f, err := openGolden(t, "odd.pt")
	if err != nil {
		t.Fatal(err)
	}
	sameTensors(t, n, f, "odd.merged.safetensors")
}

func TestGoldenFolder(t *testing.T) {
	n, f, err := openGolden(t, "zip/pytorch_model.bin")
	if err != nil {
		t.Fatal(err)
	}
	sameTensors(t, n, f, "zip/merged.safetensors")
}

func TestGoldenNested(t *testing.T) {
	n, _, err := openGolden(t, "nested.pt")
	if err != nil {
		t.Fatal(err)
	}
	if x, err := n.Get("model").Get("w").Tensor(); err != nil || !slices.Equal(x.Shape, []int{6, 8}) {
		t.Errorf("model.w: %v %v", x, err)
	}
	if v, ok := n.Get("step").Int(); !ok || v != 1<<40 {
		t.Errorf("step %d", v)
	}
	if v, _ := n.Get("neg").Int(); v != -1 {
		t.Errorf("neg %d", v)
	}
	if v, _ := n.Get("name").Text(); v != "é" {
		t.Errorf("name %q", v)
	}
	if v, _ := n.Get("f").Float(); v != 0.5 {
		t.Errorf("f %g", v)
	}
	if k := n.Get("none").Kind(); k != torchfile.None {
		t.Errorf("none is %v", k)
	}
	if v, _ := n.Get("l").At(0).Bool(); !v || n.Get("l").Len() != 2 || n.Get("t").Len() != 2 {
		t.Error("l or t is something else")
	}
}

func TestGoldenGlobal(t *testing.T) {
	n, _, err := openGolden(t, "refuse_global.pt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Get("w").Tensor(); err != nil {
		t.Error(err)
	}
	if _, err := n.Get("when").Tensor(); err == nil || !strings.Contains(err.Error(), "datetime.datetime") {
		t.Errorf("when: %v", err)
	}
}

func TestGoldenLegacy(t *testing.T) {
	_, _, err := openGolden(t, "legacy.pt")
	var e *fault.Error
	if !errors.As(err, &e) || !strings.Contains(err.Error(), "before 1.6") || !strings.Contains(e.Hint, "1.6 or newer") {
		t.Errorf("got %v", err)
	}
}
