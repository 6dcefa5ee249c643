package run

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// spaceCollections lets Go's heap grow by so much between garbage collections. The caller calls restore after the
// run.
//
// The room counts as in use but takes no memory. make would clear all of it, and so take it all,
// if one of its pages was used before and not given back, which is chance. A Builder clears nothing.
func spaceCollections(bytes int64) (restore func()) {
	if bytes == 0 {
		return func() {}
	}
	debug.FreeOSMemory() // else the room keeps free pages that are still in memory
	room := new(strings.Builder)
	room.Grow(int(bytes))
	return func() { runtime.KeepAlive(room) }
}
