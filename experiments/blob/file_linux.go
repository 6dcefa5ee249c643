package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// newFile opens an unnamed file in dir, so a killed process leaves nothing. If the file
// system does not support that, the file has a name.
func newFile(dir string) (file, error) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		return newNamed(dir) // Place needs it
	}
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		return newNamed(dir) // an old kernel ignores the flag and opens the folder
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	f := os.NewFile(uintptr(fd), dir)
	hold, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return &unnamed{File: f, hold: os.NewFile(uintptr(hold), dir)}, nil
}

// unnamed is a file without a name; Name returns its folder's. hold is a second
// descriptor that keeps the file alive between Close and Place.
type unnamed struct {
	*os.File
	hold *os.File
}

func (f *unnamed) Place(path string) error {
	// Via /proc: linking the descriptor itself needs a privilege.
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.hold.Fd()), unix.AT_FDCWD, path,
		unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &fs.PathError{Op: "link", Path: path, Err: err}
	}
	return f.hold.Close()
}

func (f *unnamed) Discard() {
	f.Close()
	f.hold.Close()
}
