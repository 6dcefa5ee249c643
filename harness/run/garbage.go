package run

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/model"
)

const (
	// heapRoom is the least growth of Go's heap between garbage collections. A small run's
	// heap is a few MiB, which would be collected 20 times a second.
	heapRoom = 32 << 20
	// largeModel is the parameters of a model whose steps are so slow that collections
	// hardly count, and whose memory counts.
	largeModel = 100e6
)

// spaceCollections lets Go's heap grow by heapRoom between garbage collections in a run of
// c, unless its model is large. The caller calls restore after the run.
//
// The room counts as in use but takes no memory. make would clear all of it, and so take heapRoom,
// if one of its pages was used before and not given back, which is chance. A Builder clears nothing.
func spaceCollections(c *config.Run) (restore func()) {
	if !spaced(c) {
		return func() {}
	}
	debug.FreeOSMemory() // else the room keeps free pages that are still in memory
	room := new(strings.Builder)
	room.Grow(heapRoom)
	return func() { runtime.KeepAlive(room) }
}

// programBytes returns the memory that the process needs on top of the device's: code and tables
// in use (36 MiB, or up to 70 of a program just linked, which Linux maps in larger pieces), Go's heap
// with its room between collections, and the database. A published tokenizer adds about three
// times its file size, usually half of it garbage.
func programBytes(c *config.Run) int64 {
	const codeAndHeap = 80 << 20
	n := int64(codeAndHeap)
	if spaced(c) {
		n += heapRoom
	}
	if c.Model.Init == "pretrained" {
		if file, err := os.Stat(filepath.Join(c.Model.Base, "tokenizer.json")); err == nil {
			n += 6 * file.Size()
		}
	}
	return n
}

// spaced reports whether the heap gets room: always, unless the model is large.
func spaced(c *config.Run) bool {
	return c.Model.Init != "pretrained" || parameters(c) < largeModel
}

// parameters counts the parameters of a folder's model; 0 if its configuration cannot be read.
func parameters(c *config.Run) int {
	arch, err := stage.ReadArchitecture(c)
	if err != nil {
		return 0
	}
	n, _ := model.Parameters(arch, model.Heads{LM: true})
	return n
}
