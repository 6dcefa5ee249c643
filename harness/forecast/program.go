package forecast

import (
	"os"
	"path/filepath"

	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/model"
)

const (
	// heapRoom is the least growth of Go's heap between garbage collections. A small run's
	// heap is a few MiB, which would be collected 20 times a second.
	heapRoom = 16 << 20
	// largeModel is the parameters of a model whose steps are so slow that collections
	// hardly count, and whose memory counts.
	largeModel = 100e6
)

// HeapRoom returns the bytes by which Go's heap may grow between garbage collections in a run, 0 if its model is
// large.
func HeapRoom(c *config.Run) int64 {
	if c.Model.Init != "pretrained" || parameters(c) < largeModel {
		return heapRoom
	}
	return 0
}

// programBytes returns the memory that the process needs on top of the device's, whose arrays take so much, for
// sequences of at most longest tokens and steps of so many completions. While it computes that is 22 MiB of code
// and tables, 8 of libraries and the database, and Go's heap: 16 MiB, its room between collections, and twice its
// generated problems and the completions of a step, and of the one before, which is recorded meanwhile, with their
// log-probs and verdicts, and what a teacher says of them. At its start, before it has arrays, it reads all of its
// own file and stores the sources in it, which takes more. Linux may map 25 MiB more of a program that was just
// linked, pages that it takes back when it needs them. A published tokenizer adds about three times its file size,
// usually half of it garbage.
func programBytes(c *config.Run, longest, completions int, arrays int64) int64 {
	const (
		large     = 56 << 20 // with a large model, whose heap has no room
		computing = 30 << 20
		starting  = 84 << 20
	)
	more := int64(min(2, max(1, c.Train.Steps))) * int64(completions) * (1200 + 24*int64(c.Rollout.MaxNewTokens))
	if c.Model.Init == "pretrained" {
		if file, err := os.Stat(filepath.Join(c.Model.Base, "tokenizer.json")); err == nil {
			more = 6 * file.Size()
		}
	}
	if k := int64(c.Algo.Distill.TopK); k > 0 { // a step's tokens and log-probs, and a mini-batch's
		updates := int64(max(1, c.Train.PromptsPerStep/max(1, c.Train.PromptsPerUpdate)))
		tokens := int64(completions) * int64(c.Rollout.MaxNewTokens)
		more += 8 * k * (tokens + tokens/updates)
	}
	room := HeapRoom(c)
	if room == 0 {
		return large + more
	}
	more += room
	each := 128 + 6*longest + c.Task.ProblemBytes() // texts, tokens and their headers
	more += int64(c.GeneratedProblems("train")) * int64(each)
	return max(computing, starting-arrays) + more
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
