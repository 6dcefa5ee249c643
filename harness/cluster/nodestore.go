package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile is held by the attempt whose store it lies in.
const lockFile = "attempt.lock"

// nodeStore makes a directory for an attempt's store in parent, "" for the system's temporary one.
// First it removes those of attempts that were killed. release removes it.
func nodeStore(parent string) (dir string, release func(), err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if err := removeKilled(parent); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, "exp-*"); err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(dir, lockFile+".new"))
	if err == nil {
		release = func() {
			os.RemoveAll(dir)
			lock.Close()
		}
		// Renamed once it is held, so that nobody takes the store for a killed attempt's.
		if err = errors.Join(take(lock), os.Rename(lock.Name(), filepath.Join(dir, lockFile))); err == nil {
			return dir, release, nil
		}
	}
	os.RemoveAll(dir)
	return "", nil, fmt.Errorf("make a store: %w", err)
}

// take locks a file without waiting. The lock ends with the process.
func take(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// removeKilled removes this user's stores in parent that no attempt holds.
func removeKilled(parent string) error {
	found, err := filepath.Glob(filepath.Join(parent, "exp-*", lockFile))
	if err != nil {
		return err
	}
	for _, file := range found {
		dir := filepath.Dir(file)
		info, err := os.Lstat(dir)
		if err != nil {
			continue // another attempt removed it
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
			continue
		}
		lock, err := os.OpenFile(file, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if take(lock) == nil {
			os.RemoveAll(dir)
		}
		lock.Close()
	}
	return nil
}
