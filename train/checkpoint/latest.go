package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// LatestUpTo returns the newest intact checkpoint in root, of at most step most, that accept
// takes (returns nil). It skips newer ones that are damaged or not accepted, and
// interrupted writes; passed gives the reasons, newest first. It returns ErrNone if no
// checkpoint is left, or an *Error if root cannot be read.
func LatestUpTo(root string, most int, accept func(*Checkpoint) error) (c *Checkpoint, passed []error, err error) {
	for _, name := range names(root) {
		if isPartial(name) {
			passed = append(passed, &Error{Op: "read checkpoint", Path: filepath.Join(root, name),
				Err:  errors.New("writing or removing it was interrupted"),
				Hint: "nothing to do: it is removed when the run continues"})
		}
	}
	steps, err := Steps(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, passed, err
	}
	for _, step := range slices.Backward(steps) {
		if step > most {
			continue
		}
		c, err := Open(filepath.Join(root, stepDir(step)))
		if err == nil {
			err = accept(c)
		}
		if err == nil {
			return c, passed, nil
		}
		passed = append(passed, err)
	}
	return nil, passed, &Error{Op: "read checkpoint", Path: root, Err: ErrNone}
}

// Steps returns the steps of root's checkpoint directories, ascending, readable or not.
func Steps(root string) ([]int, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, fileError("read checkpoint", root, err)
	}
	var steps []int
	for _, e := range entries {
		if step, ok := stepOf(e.Name()); ok && e.IsDir() {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Prune removes all checkpoints in root except the newest keep that look whole, and returns
// the removed steps. Damaged newer ones stay for inspection. If spare is not nil, checkpoints
// that it returns true for stay too. Whole means a good manifest and files of the right size; Prune
// does not read the files. It panics if keep is below 1.
func Prune(root string, keep int, spare func(step int) bool) (removed []int, err error) {
	if keep < 1 {
		panic("checkpoint: prune must keep at least one")
	}
	steps, err := Steps(root)
	if err != nil {
		return nil, err
	}
	for _, step := range slices.Backward(steps) {
		dir := filepath.Join(root, stepDir(step))
		if keep > 0 {
			if whole(dir) {
				keep--
			}
			continue
		}
		if spare != nil && spare(step) {
			continue
		}
		if err := remove(root, step); err != nil {
			return removed, fileError("remove checkpoint", dir, err)
		}
		removed = append(removed, step)
	}
	slices.Sort(removed)
	return removed, nil
}

// whole reports whether a checkpoint has a good manifest and files of the stated sizes.
func whole(dir string) bool {
	m, err := readManifest(dir)
	if err != nil {
		return false
	}
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(dir, f.Name))
		if err != nil || info.Size() != f.Bytes {
			return false
		}
	}
	return true
}

// remove renames a checkpoint before deleting it, so that a half-deleted one is not
// mistaken for a damaged one.
func remove(root string, step int) error {
	tmp := filepath.Join(root, fmt.Sprintf(".%s%s", stepDir(step), partial))
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(root, stepDir(step)), tmp); err != nil {
		return err
	}
	return os.RemoveAll(tmp)
}
