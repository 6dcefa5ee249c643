//go:build unix

package storebench

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of all threads of this process so far.
func processTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
