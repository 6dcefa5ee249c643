package hub

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// incomplete ends the name of a blob that is being fetched under a lock.
const incomplete = ".incomplete"

// tryLock returns errLocked or errNoLocks if it does not lock.
var (
	errLocked  = errors.New("another process has the lock")
	errNoLocks = errors.New("the file system has no locks")
)

// lock is the right to make a blob. Python's library takes the same one.
type lock struct {
	file *os.File
	// suffix ends the name of the unfinished blob: incomplete or, without locks, a name that no
	// other process uses.
	suffix string
}

// poll is the time between tries to take a lock that another process has.
const poll = 200 * time.Millisecond

// lock waits for the lock of a blob, and makes its folders.
func (c *Client) lock(ctx context.Context, r Repo, digest, path string) (*lock, error) {
	if err := os.MkdirAll(filepath.Dir(c.Cache.blob(r, digest)), 0o777); err != nil {
		return nil, err
	}
	name := filepath.Join(c.Cache.Dir, ".locks", r.Folder(), digest+".lock")
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for waits := 0; ; waits++ {
		switch err := tryLock(f); {
		case err == nil:
			return &lock{f, incomplete}, nil
		case errors.Is(err, errNoLocks):
			return &lock{f, temporarySuffix() + incomplete}, nil
		case !errors.Is(err, errLocked):
			return nil, errors.Join(err, f.Close())
		}
		if waits == 0 {
			c.note("another process is fetching %s; waiting for it", path)
		}
		if err := wait(ctx, poll); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// release releases the lock. Its file stays: another process may be waiting for it.
func (l *lock) release() { l.file.Close() }
