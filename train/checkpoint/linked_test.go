package checkpoint

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"exp/kernels"
)

// weightsOf are three tensors that are written one by one, all of one value.
func weightsOf(value float32) []Source {
	x := make([]float32, 1<<17)
	for i := range x {
		x[i] = value
	}
	var list []NamedBuffer
	for _, name := range []string{"a", "b", "c"} {
		list = append(list, NamedBuffer{Name: name, Shape: []int{len(x)}, Data: kernels.Host(x)})
	}
	return Sources(refBackend(), list)
}

// Checkpoints keep the linked file that was there when they were written, by a link or, where the disk has none, as a
// copy, and verify it.
func TestLinked(t *testing.T) {
	be := refBackend()
	for name, link := range map[string]func(from, to string) error{
		"links": os.Link, "copies": func(_, _ string) error { return syscall.EXDEV },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			d := system()
			d.link = link
			want := map[int][]byte{}
			for step := 1; step <= 3; step++ {
				l, err := WriteLinked(root, "best", weightsOf(float32(step)))
				if err != nil {
					t.Fatal(err)
				}
				want[step] = readFile(t, l.Path)
				state := toyState(t, be, step)
				state.Linked = []Linked{l}
				if _, err := d.writeState(be, root, state); err != nil {
					t.Fatal(err)
				}
			}
			other := filepath.Join(t.TempDir(), "new", "folder")
			for step := 1; step <= 3; step++ {
				c, err := Open(filepath.Join(root, stepDir(step)))
				if err != nil {
					t.Fatal(err)
				}
				l, ok := c.Linked("best")
				if !ok || !bytes.Equal(readFile(t, l.Path), want[step]) {
					t.Fatalf("step %d holds another file, %v", step, ok)
				}
				if _, ok := c.Linked("bes"); ok {
					t.Error("it has a group that nobody wrote")
				}
				if l, err = l.LinkInto(other); err != nil || !bytes.Equal(readFile(t, l.Path), want[step]) {
					t.Fatalf("step %d was not linked: %v", step, err)
				}
				if err := c.Load(be, emptyGroups(t, be, toyState(t, be, step))); err != nil {
					t.Error(err)
				}
			}
			half := filepath.Join(other, ".best.safetensors"+partial)
			if err := os.WriteFile(half, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			RemoveInterrupted(other)
			if list := tree(t, other); len(list) != 1 {
				t.Errorf("%d files in the folder, want 1", len(list))
			}
			path := filepath.Join(root, stepDir(2), "best.safetensors")
			b := bytes.Clone(want[2])
			b[len(b)-1] ^= 1
			if err := os.WriteFile(path, b, 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(filepath.Dir(path)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("a changed file: %v", err)
			}
		})
	}
}

// A file that changed after it was written does not enter a checkpoint as a copy.
func TestLinkedChanged(t *testing.T) {
	root := t.TempDir()
	l, err := WriteLinked(root, "best", weightsOf(1))
	if err != nil {
		t.Fatal(err)
	}
	b := readFile(t, l.Path)
	b[len(b)-1] ^= 1
	if err := os.WriteFile(l.Path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	d := system()
	d.link = func(_, _ string) error { return syscall.EPERM }
	state := State{Step: 1, Linked: []Linked{l}}
	if _, err := d.writeState(refBackend(), root, state); !errors.Is(err, ErrCorrupt) {
		t.Errorf("error %v", err)
	}
	if steps, err := Steps(root); err != nil || len(steps) != 0 {
		t.Errorf("checkpoints %v, %v", steps, err)
	}
}

// A disk that fills up at any moment leaves the older file, and nothing else.
func TestLinkedOnAFullDisk(t *testing.T) {
	root := t.TempDir()
	if _, err := WriteLinked(root, "best", weightsOf(1)); err != nil {
		t.Fatal(err)
	}
	weights := weightsOf(2)
	eachFault(t, root, func(d disk) error {
		_, err := d.writeLinked(root, "best", weights)
		return err
	})
	before := tree(t, root)
	l, err := WriteLinked(root, "best", weights)
	if err != nil || !maps.Equal(tree(t, root), before) {
		t.Errorf("written again it differs, %v", err)
	}
	state := toyState(t, refBackend(), 1)
	state.Linked = []Linked{l}
	eachFault(t, root, func(d disk) error {
		d.link = func(_, _ string) error { return syscall.EXDEV }
		_, err := d.writeState(refBackend(), root, state)
		return err
	})
}
