package checkpoint

import (
	"os"
	"syscall"
)

// inodeOf returns an inode's last change time in nanoseconds and its number.
func inodeOf(info os.FileInfo) (changed int64, inode, device uint64, ok bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, 0, false
	}
	return s.Ctim.Nano(), s.Ino, uint64(s.Dev), true
}
