//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package hub

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file for this process, as Python's filelock does.
func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return errLocked
	case errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK):
		return errNoLocks
	}
	return err
}
