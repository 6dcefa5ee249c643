package run

import (
	"runtime"

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
func spaceCollections(c *config.Run) (restore func()) {
	if c.Model.Init == "pretrained" && parameters(c) >= largeModel {
		return func() {}
	}
	room := make([]byte, heapRoom) // counts as in use; takes memory only where Go reuses some
	return func() { runtime.KeepAlive(room) }
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
