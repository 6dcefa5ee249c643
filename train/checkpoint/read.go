package checkpoint

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"exp/kernels"
	"exp/train/checkpoint/extent"
	"exp/train/model"
)

// Checkpoint is a training checkpoint whose files have been verified.
type Checkpoint struct {
	Dir   string
	Step  int             // training steps done
	Extra json.RawMessage // the caller's own state, compact

	files []manifestFile
}

// Open reads the manifest of a checkpoint and verifies size and SHA-256 of every
// file. It loads nothing.
func Open(dir string) (*Checkpoint, error) {
	m, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	if err := m.verify(dir); err != nil {
		return nil, err
	}
	var extra json.RawMessage
	if string(m.State) != "null" {
		extra = compact(m.State)
	}
	return &Checkpoint{Dir: dir, Step: m.Step, Extra: extra, files: m.Files}, nil
}

func readManifest(dir string) (manifest, error) {
	path := filepath.Join(dir, manifestName)
	raw, err := readSmall(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		if _, missing := os.Stat(dir); missing == nil {
			return manifest{}, corrupt(path, "", "missing, so the checkpoint is unfinished or damaged")
		}
	}
	if err != nil {
		return manifest{}, err
	}
	m, err := parseManifest(path, raw)
	if err != nil {
		return manifest{}, err
	}
	if step, ok := stepOf(filepath.Base(dir)); ok && step != m.Step {
		return manifest{}, corrupt(path, "", "belongs to step %d", m.Step)
	}
	return m, nil
}

// verify checks all files in dir against the manifest.
func (m manifest) verify(dir string) error {
	files := slices.Clone(m.Files)
	slices.SortStableFunc(files, func(a, b manifestFile) int { return -cmp.Compare(a.Bytes, b.Bytes) })
	return onAllCores(len(files), func(i int, buf []byte) error { return files[i].verify(dir, buf) })
}

// verify checks a file against its manifest entry.
func (f manifestFile) verify(dir string, buf []byte) error {
	path := filepath.Join(dir, f.Name)
	in, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return corrupt(path, "", "missing")
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return fileError("read", path, err)
	}
	if info.Size() != f.Bytes {
		return corrupt(path, "", "has %d bytes, but %d were written", info.Size(), f.Bytes)
	}
	sum, err := sumOf(io.LimitReader(in, f.Bytes), buf)
	if err != nil {
		return fileError("read", path, err)
	}
	if got := hex.EncodeToString(sum[:]); got != f.SHA256 {
		return corrupt(path, "", "sha256 is %s, but %s was written", got, f.SHA256)
	}
	return nil
}

// Load sets buffers to the checkpoint's contents, bit for bit. Groups not requested are
// left alone. It changes nothing unless every group is present and holds exactly the
// requested buffers; the error lists all misfits. Refresh models whose parameters were
// loaded.
func (c *Checkpoint) Load(be kernels.Backend, groups []Group) error {
	open := make([]*Tensors, len(groups))
	var errs []error
	for i, g := range groups {
		t, err := c.group(g)
		open[i] = t
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	for i, g := range groups {
		if err == nil {
			err = open[i].fill(be, g.Buffers)
		}
	}
	for _, t := range open {
		if t != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// Tensors opens the tensors of an arena: a buffer of a group with n elements, in which tensors lie as layout says. The
// caller closes them.
func (c *Checkpoint) Tensors(group, buffer string, layout []model.Tensor, n int) (*Tensors, error) {
	path := filepath.Join(c.Dir, Group{Name: group}.file())
	whole, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	arena, ok := whole.where[buffer]
	if got := arena.Len(); !ok || len(arena.Shape) != 1 || got != n {
		return whole.orClosed(corrupt(path, buffer, "has %d elements, but the model has %d", got, n))
	}
	t := &Tensors{path: path, files: whole.files, where: map[string]place{}}
	width := int64(arena.DType.bits() / 8)
	var list []extent.Tensor
	for _, x := range layout {
		list = append(list, extent.Tensor{Name: x.Name, DType: string(arena.DType), Shape: x.Shape,
			Data: arena.data.Slice(int64(x.Offset())*width, int64(x.Len())*width)})
	}
	return t.orClosed(t.compose(list))
}

// group opens the file of g and checks it.
func (c *Checkpoint) group(g Group) (*Tensors, error) {
	path := filepath.Join(c.Dir, g.file())
	if !slices.ContainsFunc(c.files, func(f manifestFile) bool { return f.Name == g.file() }) {
		return nil, &Error{Op: "read", Path: path, Err: fmt.Errorf("the checkpoint has no group %q: %w", g.Name,
			fs.ErrNotExist)}
	}
	t, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return t, t.matchExactly(g.Buffers)
}

// matchExactly checks that t holds exactly the buffers, in their own types.
func (t *Tensors) matchExactly(buffers []NamedBuffer) error {
	err := t.match(buffers, func(string) bool { return false })
	if err != nil {
		return err
	}
	e := &MismatchError{Path: t.path}
	for _, b := range buffers {
		if got, _ := t.Lookup(b.Name); got.DType != dtypeOf(b.dtype()) {
			e.Misshaped = append(e.Misshaped, Misshape{Name: b.Name, Got: got.kind(), Want: b.tensor().kind()})
		}
	}
	return e.orNil()
}
