package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
)

// cuts returns where to truncate a file: at every section's ends and inside of
// each. Sections of safetensors are length, header and tensors.
func cuts(name string, content []byte) []int {
	if !strings.HasSuffix(name, ".safetensors") {
		list := make([]int, len(content))
		for i := range list {
			list[i] = i
		}
		return list
	}
	data := 8 + int(binary.LittleEndian.Uint64(content))
	return []int{0, 1, 7, 8, 9, data / 2, data - 1, data, data + 1, (data + len(content)) / 2, len(content) - 1}
}

// A checkpoint with any file cut anywhere, changed in any byte, missing or grown is
// ErrCorrupt with the file's path, and Latest goes back to the one before.
func TestOpenDamaged(t *testing.T) {
	root := t.TempDir()
	mustWrite(t, root, 1)
	dir := mustWrite(t, root, 2)
	check := func(path, what string, at int) {
		t.Helper()
		_, err := Open(dir)
		var e *Error
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &e) || e.Path != path || e.Hint == "" {
			t.Fatalf("%s %s at %d: got %v, want ErrCorrupt about it with a hint", path, what, at, err)
		}
	}
	for _, name := range names(dir) {
		path := filepath.Join(dir, name)
		whole := readFile(t, path)
		for _, n := range cuts(name, whole) {
			writeFile(t, path, whole[:n])
			check(path, "cut", n)
		}
		for i := range whole {
			changed := slices.Clone(whole)
			changed[i] ^= 1 << (i % 8)
			writeFile(t, path, changed)
			check(path, "changed", i)
		}
		writeFile(t, path, append(slices.Clone(whole), '\n'))
		check(path, "grown", len(whole))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		check(path, "missing", 0)

		c, passed, err := Latest(root)
		if err != nil || c.Step != 1 || len(passed) != 1 || !errors.Is(passed[0], ErrCorrupt) {
			t.Fatalf("%s missing: Latest = %+v, %v, %v; want step 1 and one corrupt", path, c, passed, err)
		}
		writeFile(t, path, whole)
	}
	if c, passed, err := Latest(root); err != nil || c.Step != 2 || len(passed) > 0 {
		t.Errorf("repaired: Latest = %+v, %v, %v", c, passed, err)
	}
}

func TestLatest(t *testing.T) {
	root := filepath.Join(t.TempDir(), "ckpt")
	if _, passed, err := Latest(root); !errors.Is(err, ErrNone) || len(passed) > 0 {
		t.Errorf("no directory: %v, %v", passed, err)
	}
	for _, step := range []int{9, 100, 20} {
		mustWrite(t, root, step)
	}
	writeFile(t, filepath.Join(root, ".step-00000101.partial", "policy.safetensors"), []byte("half"))
	for _, other := range []string{"step-7/x", "step-00000300x/x", "notes/x", "step-00000400"} {
		writeFile(t, filepath.Join(root, other), nil)
	}
	if err := os.Mkdir(filepath.Join(root, stepDir(200)), 0o777); err != nil {
		t.Fatal(err)
	}
	c, passed, err := Latest(root)
	if err != nil || c.Step != 100 || c.Dir != filepath.Join(root, "step-00000100") {
		t.Fatalf("got %+v, %v; want step 100", c, err)
	}
	if len(passed) != 2 || !strings.Contains(passed[0].Error(), "interrupted") || !errors.Is(passed[1], ErrCorrupt) {
		t.Errorf("passed over %v; want the interrupted write and the empty directory", passed)
	}
	for _, step := range []int{9, 20, 100} {
		writeFile(t, filepath.Join(root, stepDir(step), "policy.safetensors"), nil)
	}
	if c, passed, err := Latest(root); !errors.Is(err, ErrNone) || c != nil || len(passed) != 5 {
		t.Errorf("all damaged: %v, %v, %v", c, passed, err)
	}
}

// A checkpoint under another step's name is not believed.
func TestOpenRenamed(t *testing.T) {
	root := t.TempDir()
	if err := os.Rename(mustWrite(t, root, 3), filepath.Join(root, stepDir(4))); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(root, stepDir(4))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
	if _, err := Open(filepath.Join(root, stepDir(5))); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrCorrupt) {
		t.Errorf("absent: %v, want fs.ErrNotExist", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "best")
	if err := os.Rename(filepath.Join(root, stepDir(4)), elsewhere); err != nil {
		t.Fatal(err)
	}
	if c, err := Open(elsewhere); err != nil || c.Step != 3 {
		t.Errorf("under another name: %+v, %v", c, err)
	}
}

func TestPrune(t *testing.T) {
	root := t.TempDir()
	for _, step := range []int{10, 20, 30, 40, 50} {
		mustWrite(t, root, step)
	}
	writeFile(t, filepath.Join(root, stepDir(50), "policy.safetensors"), nil) // damaged: does not count
	writeFile(t, filepath.Join(root, stepDir(20), "manifest.json"), nil)      // damaged and old
	removed, err := Prune(root, 2, func(step int) bool { return step == 10 })
	if err != nil || !slices.Equal(removed, []int{20}) {
		t.Errorf("removed %v, %v; want 20, as 10 is spared", removed, err)
	}
	removed, err = Prune(root, 2, nil)
	if err != nil || !slices.Equal(removed, []int{10}) {
		t.Errorf("removed %v, %v; want 10", removed, err)
	}
	if got := names(root); !slices.Equal(got, []string{"step-00000030", "step-00000040", "step-00000050"}) {
		t.Errorf("left %q", got)
	}
	if removed, err := Prune(root, 2, nil); err != nil || len(removed) > 0 {
		t.Errorf("again: removed %v, %v", removed, err)
	}
	if _, err := Prune(filepath.Join(root, "none"), 1, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("keep 0: no panic")
		}
	}()
	Prune(root, 0, nil)
}

// The error lists everything that does not fit, and nothing is changed.
func TestLoadMismatch(t *testing.T) {
	be := refBackend()
	c, err := Open(mustWrite(t, t.TempDir(), 3))
	if err != nil {
		t.Fatal(err)
	}
	buffer := func(dtype kernels.DType, n int) kernels.Buffer {
		b, _ := be.Alloc(dtype, n)
		return b
	}
	good := emptyGroups(t, be, toyState(t, be, 3))
	tests := []struct {
		name   string
		groups []Group
		want   []string
	}{
		{"no such group", []Group{good[0], {Name: "critic"}}, []string{`the checkpoint has no group "critic"`}},
		{"other buffers", []Group{good[1], {Name: "policy", Buffers: []NamedBuffer{
			{Name: "w", Shape: []int{3, 2}, Data: buffer(kernels.F32, 6)}, {Name: "c", Data: buffer(kernels.F32, 3)}}}},
			[]string{"missing: c", "unexpected: b", "shape: w: the file has F32 [2,3], wanted F32 [3,2]"}},
		{"another type", []Group{{Name: "policy", Buffers: []NamedBuffer{
			{Name: "w", Shape: []int{2, 3}, Data: buffer(kernels.F64, 6)}, good[0].Buffers[1]}}, good[1]},
			[]string{"shape: w: the file has F32 [2,3], wanted F64 [2,3]"}},
		{"two groups at once", []Group{{Name: "policy"}, {Name: "policy.adamw"}}, []string{"unexpected: b", "unexpected: w", "unexpected: m", "unexpected: v"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := c.Load(be, tt.groups)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v does not say %q", err, want)
				}
			}
			for _, g := range tt.groups {
				for _, b := range g.Buffers {
					if raw := bufferBytes(be, b.Data); !bytes.Equal(raw, make([]byte, len(raw))) {
						t.Errorf("%s of %s was changed", b.Name, g.Name)
					}
				}
			}
		})
	}
	if err := c.Load(be, good[1:]); err != nil {
		t.Errorf("one group of two: %v", err)
	}
}

// Latest returns the newest checkpoint in root whose files are all as they were
// written. Newer ones that are not, and writes that were interrupted, are passed
// over; passed says why, newest first, each an *Error. The error is ErrNone if no
// checkpoint is left, or an *Error if root cannot be read.
func Latest(root string) (c *Checkpoint, passed []error, err error) {
	return LatestUpTo(root, math.MaxInt, func(*Checkpoint) error { return nil })
}
