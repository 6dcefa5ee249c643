package heap

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// collections returns how often garbage was collected because the program asked for it.
func collections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

func TestRelease(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory()
	before := collections()
	Release()
	if n := collections() - before; n != 0 {
		t.Errorf("Release collected %d times with %d bytes unused", n, Unused())
	}
	garbage := make([]byte, 2*worthwhile)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	if n := Unused(); n < 2*worthwhile-4096 || n > 4*worthwhile {
		t.Errorf("%d bytes are unused, not about %d", n, 2*worthwhile)
	}
	resides := resident(t)
	Release()
	if n := collections() - before; n == 0 {
		t.Error("Release did not collect")
	}
	before = collections()
	garbage = make([]byte, 2*worthwhile)
	garbage = nil
	debug.SetGCPercent(100) // the pages become free
	runtime.GC()
	if n := Unused(); n < worthwhile {
		t.Errorf("%d bytes are unused after a collection, whose pages are free", n)
	}
	debug.SetGCPercent(-1)
	Release()
	if after := resident(t); resides-after < 6 || Unused() >= worthwhile {
		t.Errorf("%d of %d MiB are resident after Release, %d bytes unused", after, resides, Unused())
	}
}
