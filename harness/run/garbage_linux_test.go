package run

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"exp/harness/config"
)

// The room takes no memory, though the heap has used the first of its pages and not given it back.
func TestRoomTakesNoMemory(t *testing.T) {
	for _, n := range []int{2 * heapRoom, 1 << 20} {
		debug.FreeOSMemory()
		runtime.KeepAlive(bytes.Repeat([]byte{1}, n))
		runtime.GC()
	}

	before := resident(t)
	restore := spaceCollections(new(config.Run))
	if grown := resident(t) - before; grown > heapRoom/4 {
		t.Errorf("room of %d MiB took %d MiB", heapRoom>>20, grown>>20)
	}
	restore()
}

// resident returns the process's resident memory in bytes.
func resident(t *testing.T) int {
	t.Helper()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc:", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
