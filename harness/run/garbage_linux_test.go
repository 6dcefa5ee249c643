package run

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
)

// The room takes no memory, though the heap has used the first of its pages and not given it back.
func TestRoomTakesNoMemory(t *testing.T) {
	const room = 16 << 20
	for _, n := range []int{2 * room, 1 << 20} {
		debug.FreeOSMemory()
		runtime.KeepAlive(bytes.Repeat([]byte{1}, n))
		runtime.GC()
	}

	before := resident(t)
	restore := spaceCollections(room)
	if grown := resident(t) - before; grown > room/4 {
		t.Errorf("room of %d MiB took %d MiB", room>>20, grown>>20)
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
