//go:build !linux

package hub

import "os"

// tryLock locks nothing here; processes that fetch the same file both do so.
func tryLock(*os.File) error { return errNoLocks }
