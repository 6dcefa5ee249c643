package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed asks the system to fetch a part of a file from disk. It is only advice, so
// errors do not matter.
func willNeed(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
}
