package checkpoint

import (
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Linked is a complete file that checkpoints hold by hard links: as long as its content stays the same, each of them
// has it without writing it again.
type Linked struct {
	Name string // of the group in the checkpoint, as Group.Name
	Path string
	Info FileInfo
}

// WriteLinked writes tensors as the file NAME.safetensors of root, a directory that is made if need be, and replaces
// an older one once it is complete. Checkpoints that hold the older one keep it. If the machine stops, the file may be
// lost: only checkpoints are safe. An error is an *Error, and then root is unchanged.
func WriteLinked(root, name string, tensors []Source) (Linked, error) {
	return system().writeLinked(root, name, tensors)
}

func (d disk) writeLinked(root, name string, tensors []Source) (Linked, error) {
	const op = "write weights"
	l := Linked{Name: name, Path: filepath.Join(root, Group{Name: name}.file())}
	temporary := "." + filepath.Base(l.Path) + partial
	if err := errors.Join(os.MkdirAll(root, 0o777), absent(filepath.Join(root, temporary))); err != nil {
		return l, fileError(op, l.Path, err)
	}
	s := &staging{disk: d, op: op, tmp: root, final: root}
	defer os.Remove(filepath.Join(root, temporary))
	info, err := s.write(temporary, func(w io.Writer) error { return WriteSafetensors(w, tensors) })
	if err != nil {
		return l, err
	}
	if err := d.rename(filepath.Join(root, temporary), l.Path); err != nil {
		return l, fileError(op, l.Path, err)
	}
	l.Info = FileInfo{filepath.Base(l.Path), info.Bytes, info.SHA256}
	return l, nil
}

// absent removes a file if it exists.
func absent(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// link adds l to a directory that is being written.
func (s *staging) link(l Linked) (manifestFile, error) {
	f := manifestFile{Name: Group{Name: l.Name}.file(), Bytes: l.Info.Bytes,
		SHA256: hex.EncodeToString(l.Info.SHA256[:])}
	if err := s.disk.link(l.Path, filepath.Join(s.tmp, f.Name)); err == nil {
		return f, nil
	}
	return f, s.copyOf(l, f.Name) // another file system, or one without hard links
}

// copyOf writes a copy of l as a file of the directory.
func (s *staging) copyOf(l Linked, name string) error {
	in, err := openRegular(l.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := s.write(name, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
	if err == nil && (info.Bytes != l.Info.Bytes || info.SHA256 != l.Info.SHA256) {
		err = corrupt(l.Path, "", "was changed after it was written")
	}
	return err
}

// Linked returns a group's file that the checkpoint holds. Its bytes have been verified. It is missing only in
// checkpoints that were written without it.
func (c *Checkpoint) Linked(group string) (l Linked, ok bool) {
	for _, f := range c.files {
		if f.Name != (Group{Name: group}).file() {
			continue
		}
		sum, err := hex.DecodeString(f.SHA256)
		if err != nil || len(sum) != len(l.Info.SHA256) {
			panic("checkpoint: a manifest that was verified has a bad digest")
		}
		return Linked{group, filepath.Join(c.Dir, f.Name), FileInfo{f.Name, f.Bytes, [32]byte(sum)}}, true
	}
	return l, false
}

// LinkInto makes the file NAME.safetensors of root have the content of l, by a hard link where that is possible. It
// makes root if need be, and replaces an older file.
func (l Linked) LinkInto(root string) (Linked, error) {
	const op = "link weights"
	to := Linked{l.Name, filepath.Join(root, Group{Name: l.Name}.file()), l.Info}
	temporary := "." + filepath.Base(to.Path) + partial
	s := &staging{disk: system(), op: op, tmp: root, final: root}
	path := filepath.Join(root, temporary)
	defer os.Remove(path)
	err := errors.Join(os.MkdirAll(root, 0o777), absent(path))
	if err == nil && s.disk.link(l.Path, path) != nil {
		err = s.copyOf(l, temporary)
	}
	if err == nil {
		err = s.rename(path, to.Path)
	}
	if err != nil {
		return to, fileError(op, to.Path, err)
	}
	return to, nil
}
