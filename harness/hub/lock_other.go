//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package hub

import "os"

// tryLock locks nothing here; processes that fetch the same file both do so.
func tryLock(*os.File) error { return errNoLocks }
