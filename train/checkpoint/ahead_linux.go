package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// willNeed asks the system to bring a part of a file from the disk. It is advice: that
// it is not taken does not matter.
func willNeed(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
}
