package blob

import "golang.org/x/sys/unix"

// Free returns the free space below the root in bytes. The root must exist.
func (d *Dir) Free() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.root, &s); err != nil {
		return 0, &Error{Op: "measure space for", Path: d.root, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
