package heap

import (
	"runtime/debug"
	"runtime/metrics"
)

// worthwhile is the memory for which Release collects garbage: by so much the heap of a small run grows between
// collections anyway. Such a run would otherwise spend more time on collections between its stages than on some of
// the stages.
const worthwhile = 16 << 20

// Release gives the memory that Go's heap no longer uses back to the system, where that may be 16 MiB or more.
func Release() {
	if Unused() >= worthwhile {
		debug.FreeOSMemory()
	}
}

// Unused returns the most bytes that Go's heap could give back: its free pages, and everything allocated since the
// last collection, which may be garbage.
func Unused() int64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	free, objects, live := s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64()
	return int64(free) + max(0, int64(objects)-int64(live))
}
