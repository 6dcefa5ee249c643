package run

import (
	"runtime/debug"
	"strings"

	"exp/kernels/heap"
)

// rooms are rooms of spaceCollections that no run has now.
var rooms = make(chan *strings.Builder, 8)

// spaceCollections lets Go's heap grow by so much between garbage collections. The caller calls restore after the
// run.
//
// The room counts as in use but takes no memory. make would clear all of it, and so take it all,
// if one of its pages was used before and not given back, which is chance. A Builder clears nothing.
// A later run takes the room again: to make another means to give all free pages back first.
func spaceCollections(bytes int64) (restore func()) {
	if bytes == 0 {
		for keptRoom() != nil {
		}
		return func() {}
	}
	room := keptRoom()
	if room != nil && room.Cap() >= int(bytes) {
		heap.Release()
	} else {
		debug.FreeOSMemory() // else the room keeps free pages that are still in memory
		room = new(strings.Builder)
		room.Grow(int(bytes))
	}
	return func() {
		select {
		case rooms <- room:
		default:
			// the room is garbage
		}
	}
}

// keptRoom returns a room of an earlier run, or nil.
func keptRoom() *strings.Builder {
	select {
	case room := <-rooms:
		return room
	default:
		return nil
	}
}
