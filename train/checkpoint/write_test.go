package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"exp/kernels"
	"exp/train/model"
)

func TestWriteGolden(t *testing.T) {
	dir := mustWrite(t, t.TempDir(), 50)
	golden(t, "manifest", readFile(t, filepath.Join(dir, "manifest.json")))
	if got := slices.Sorted(maps.Keys(tree(t, dir))); !slices.Equal(got, []string{"manifest.json", "policy.adamw.safetensors", "policy.safetensors"}) {
		t.Errorf("files %q", got)
	}
}

func TestWriteLoadRoundTrip(t *testing.T) {
	be := refBackend()
	s := toyState(t, be, 12)
	dir, err := Write(be, filepath.Join(t.TempDir(), "runs", "ckpt"), s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var extra struct {
		Updates int
		Chain   string
	}
	if err := json.Unmarshal(c.Extra, &extra); err != nil || c.Step != 12 || extra.Updates != 7 || extra.Chain != "<&>" {
		t.Errorf("step %d, state %s, %v", c.Step, c.Extra, err)
	}
	groups := emptyGroups(t, be, s)
	if err := c.Load(be, groups); err != nil {
		t.Fatal(err)
	}
	for i, g := range groups {
		for j, b := range g.Buffers {
			if !bytes.Equal(bufferBytes(be, b.Data), bufferBytes(be, s.Groups[i].Buffers[j].Data)) {
				t.Errorf("%s of %s differs", b.Name, g.Name)
			}
		}
	}
}

// Without state and groups there is still a step.
func TestWriteEmpty(t *testing.T) {
	dir, err := Write(refBackend(), t.TempDir(), State{Step: 0})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := Open(dir); err != nil || c.Step != 0 || c.Extra != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

// Writing a step again replaces it, and removes what interrupted writes left.
func TestWriteReplaces(t *testing.T) {
	root := t.TempDir()
	dir := mustWrite(t, root, 5)
	damaged := filepath.Join(dir, "policy.safetensors")
	want := readFile(t, damaged)
	writeFile(t, damaged, []byte("damaged"))
	writeFile(t, filepath.Join(dir, "stray"), nil)
	writeFile(t, filepath.Join(root, ".step-00000004.partial", "policy.safetensors"), nil)
	writeFile(t, filepath.Join(root, ".mine.partial"), nil)
	mustWrite(t, root, 5)
	if got := readFile(t, damaged); !bytes.Equal(got, want) {
		t.Error("the damaged file was not replaced")
	}
	if got := names(root); !slices.Equal(got, []string{".mine.partial", "step-00000005"}) {
		t.Errorf("root holds %q", got)
	}
	if got := names(dir); len(got) != 3 {
		t.Errorf("the checkpoint holds %q", got)
	}
}

// faulty is the real disk, but its operation number fail returns err.
type faulty struct {
	mu          sync.Mutex
	calls, fail int
	err         error
}

func (f *faulty) next() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls-1 == f.fail {
		return f.err
	}
	return nil
}

func (f *faulty) disk() disk {
	d := system()
	return disk{
		mkdir: func(path string) error {
			if err := f.next(); err != nil {
				return err
			}
			return d.mkdir(path)
		},
		create: func(path string) (file, error) {
			if err := f.next(); err != nil {
				return nil, err
			}
			x, err := d.create(path)
			return faultyFile{x, f}, err
		},
		syncDir: func(path string) error {
			if err := f.next(); err != nil {
				return err
			}
			return d.syncDir(path)
		},
		rename: func(from, to string) error {
			if err := f.next(); err != nil {
				return err
			}
			return d.rename(from, to)
		},
		exchange: func(a, b string) error {
			if err := f.next(); err != nil {
				return err
			}
			return d.exchange(a, b)
		},
		link: d.link, // what cannot be linked is copied
	}
}

// faultyFile writes half of what a failing write is given, as a full disk does.
type faultyFile struct {
	file
	f *faulty
}

func (x faultyFile) Write(p []byte) (int, error) {
	if err := x.f.next(); err != nil {
		n, _ := x.file.Write(p[:len(p)/2])
		return n, err
	}
	return x.file.Write(p)
}

func (x faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if err := x.f.next(); err != nil {
		n, _ := x.file.WriteAt(p[:len(p)/2], at)
		return n, err
	}
	return x.file.WriteAt(p, at)
}

func (x faultyFile) Sync() error {
	if err := x.f.next(); err != nil {
		return err
	}
	return x.file.Sync()
}

func (x faultyFile) Close() error {
	return errors.Join(x.f.next(), x.file.Close())
}

// eachFault calls write with a disk whose n-th operation fails, for n = 0, 1, …
// until nothing fails, and checks that root is unchanged by every failure and
// changed by the success.
func eachFault(t *testing.T, root string, write func(d disk) error) {
	t.Helper()
	before := tree(t, root)
	for n := 0; ; n++ {
		f := &faulty{fail: n, err: &os.PathError{Op: "write", Path: "/full/disk", Err: syscall.ENOSPC}}
		err := write(f.disk())
		if f.calls <= n { // nothing failed
			if err != nil {
				t.Fatalf("without a fault: %v", err)
			}
			if n < 8 {
				t.Fatalf("only %d operations were tried", n)
			}
			if maps.Equal(tree(t, root), before) {
				t.Fatal("nothing was written")
			}
			return
		}
		var e *Error
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &e) || e.Path != "/full/disk" || !strings.Contains(e.Hint, "free some space") {
			t.Fatalf("operation %d failed: got %v, want ENOSPC with path and hint", n, err)
		}
		if after := tree(t, root); !maps.Equal(after, before) {
			t.Fatalf("operation %d failed: root holds %q, before %q", n, slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
		}
	}
}

// A disk that fills up at any moment leaves what was there, and nothing else.
func TestWriteOnAFullDisk(t *testing.T) {
	be := refBackend()
	for _, step := range []int{3, 4} { // replaces a checkpoint; a new one
		t.Run(fmt.Sprint("step ", step), func(t *testing.T) {
			root := t.TempDir()
			mustWrite(t, root, 3)
			state := toyState(t, be, step)
			state.Extra = json.RawMessage(`"another"`)
			eachFault(t, root, func(d disk) error {
				_, err := d.writeState(be, root, state)
				return err
			})
			if c, passed, err := Latest(root); err != nil || len(passed) > 0 || c.Step != step || string(c.Extra) != `"another"` {
				t.Errorf("Latest = %+v, %v, %v", c, passed, err)
			}
		})
	}
}

func TestMergeOnAFullDisk(t *testing.T) {
	be := refBackend()
	m := newModel(t, be, toyQwen2, policyHeads, false)
	for _, replace := range []bool{false, true} {
		t.Run(fmt.Sprint("replace ", replace), func(t *testing.T) {
			parent := t.TempDir()
			dir := filepath.Join(parent, "m")
			if replace {
				writeFile(t, filepath.Join(dir, "precious"), nil)
			}
			skip := func(_ kernels.Backend, _ *model.Model, _ string, _ dtypes) error { return nil }
			eachFault(t, parent, func(d disk) error {
				_, err := d.merge(be, m, dir, MergeOptions{Replace: replace}, skip)
				return err
			})
		})
	}
}

// A place that cannot be written to.
func TestWriteToAFile(t *testing.T) {
	root := writeFile(t, filepath.Join(t.TempDir(), "file"), []byte("x"))
	be := refBackend()
	_, err := Write(be, root, toyState(t, be, 1))
	var e *Error
	if !errors.Is(err, syscall.ENOTDIR) || !errors.As(err, &e) || e.Path != root {
		t.Errorf("got %v, want ENOTDIR about %s", err, root)
	}
	if _, _, err := Latest(root); !errors.As(err, &e) || errors.Is(err, ErrNone) {
		t.Errorf("Latest: %v, want an *Error that says why", err)
	}
}

func TestThreeRenames(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	writeFile(t, filepath.Join(a, "x"), []byte("was a"))
	writeFile(t, filepath.Join(b, "x"), []byte("was b"))
	want := map[string]string{"a": "", "a/x": "was b", "b": "", "b/x": "was a"}
	if err := threeRenames(a, b); err != nil || !maps.Equal(tree(t, dir), want) {
		t.Errorf("got %q, %v; want %q", tree(t, dir), err, want)
	}
	if err := threeRenames(filepath.Join(dir, "none"), b); err == nil || !maps.Equal(tree(t, dir), want) {
		t.Errorf("with nothing to exchange: %q, %v; want all as before and an error", tree(t, dir), err)
	}
}

func TestWritePanics(t *testing.T) {
	be := refBackend()
	b := toyState(t, be, 1).Groups[0].Buffers[0]
	tests := map[string]State{
		"state is not JSON":    {Extra: json.RawMessage("{")},
		"group outside":        {Groups: []Group{{Name: "../x"}}},
		"group of dots":        {Groups: []Group{{Name: ".."}}},
		"no group name":        {Groups: []Group{{}}},
		"two groups of a name": {Groups: []Group{{Name: "x"}, {Name: "x"}}},
		"a group and a file":   {Groups: []Group{{Name: "x"}}, Linked: []Linked{{Name: "x"}}},
		"wrong shape":          {Groups: []Group{{Name: "x", Buffers: []NamedBuffer{{Name: "w", Shape: []int{7}, Data: b.Data}}}}},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
				if got := names(root); len(got) > 0 {
					t.Errorf("%q was left", got)
				}
			}()
			Write(be, root, s)
		})
	}
}
