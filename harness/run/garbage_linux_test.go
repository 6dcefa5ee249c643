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
	spaceCollections(0) // forgets the rooms of other tests
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

	// A later run with a room of the same size takes it over and collects only when there is much to free. With a
	// room of another size, or after a run without one, it collects first.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	collections := func(bytes int64) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		restore := spaceCollections(bytes)
		runtime.ReadMemStats(&after)
		restore()
		return after.NumForcedGC - before.NumForcedGC
	}
	if n := collections(room); n != 0 {
		t.Errorf("%d collections for a room that is there", n)
	}
	runtime.KeepAlive(bytes.Repeat([]byte{1}, room))
	if n := collections(room); n != 1 {
		t.Errorf("%d collections for %d bytes of garbage", n, room)
	}
	if n := collections(2 * room); n != 1 {
		t.Errorf("%d collections for a larger room", n)
	}
	if n := collections(0) + collections(room); n != 1 {
		t.Errorf("%d collections for a room after none", n)
	}
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
