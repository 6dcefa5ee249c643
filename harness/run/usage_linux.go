package run

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// cpuSeconds returns the CPU time of all threads of this process.
func cpuSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	seconds := func(t unix.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(u.Utime) + seconds(u.Stime)
}

// peakMemory returns the largest resident size of this process so far, in bytes. Without
// /proc it may be the parent's, which getrusage passes on at exec.
func peakMemory() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		var kB int64
		_, line, _ := strings.Cut(string(status), "VmHWM:")
		if n, _ := fmt.Sscanf(line, "%d kB", &kB); n == 1 {
			return kB << 10
		}
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10 // Linux counts KiB
}
