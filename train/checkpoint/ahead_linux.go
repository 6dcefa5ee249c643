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

// writeOut asks the system to begin writing a part of a file to disk, so that syncing the
// file has less to wait for. It is only advice, so errors do not matter.
func writeOut(f *os.File, at, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE)
}
