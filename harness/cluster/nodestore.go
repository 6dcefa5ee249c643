package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockFile is held by the attempt whose store it lies in, and names its machine. While the attempt makes
// it, its name ends in newLock.
const (
	lockFile = "attempt.lock"
	newLock  = ".new"
)

// nodeStore makes a directory for an attempt's store in parent, "" for the system's temporary one.
// First it removes the stores of attempts that were killed on this machine. release removes dir.
func nodeStore(parent string) (dir string, release func(), err error) {
	if parent == "" {
		parent = os.TempDir()
	}
	host, err := os.Hostname()
	if err != nil {
		return "", nil, err
	}
	if err := removeKilled(parent, host); err != nil {
		return "", nil, err
	}
	if dir, err = os.MkdirTemp(parent, "exp-*"); err != nil {
		return "", nil, err
	}
	lock, err := os.Create(filepath.Join(dir, lockFile+newLock))
	if err == nil {
		release = func() {
			os.RemoveAll(dir)
			lock.Close()
		}
		if err = take(lock); err == nil {
			_, err = lock.WriteString(host) // once it is held: nobody takes the store for a killed attempt's
		}
		if err = errors.Join(err, os.Rename(lock.Name(), filepath.Join(dir, lockFile))); err == nil {
			return dir, release, nil
		}
		lock.Close()
	}
	os.RemoveAll(dir)
	return "", nil, fmt.Errorf("make a store: %w", err)
}

// take locks a file without waiting. The lock ends with the process.
func take(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// removeKilled removes this user's stores in parent that an attempt on this host made and none holds.
// Another machine's locks may be invisible here, even on a disk that both see.
func removeKilled(parent, host string) error {
	found, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, entry := range found {
		if !strings.HasPrefix(entry.Name(), "exp-") || !entry.IsDir() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			continue // another attempt removed it
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
			continue
		}
		dir := filepath.Join(parent, entry.Name())
		if abandoned(filepath.Join(dir, lockFile), host) || abandoned(filepath.Join(dir, lockFile+newLock), host) {
			os.RemoveAll(dir)
		}
	}
	return nil
}

// abandoned reports whether an attempt on this host made the lock, and no attempt holds it.
func abandoned(file, host string) bool {
	lock, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer lock.Close()
	maker, err := io.ReadAll(lock)
	return err == nil && string(maker) == host && take(lock) == nil
}
