package forecast

import (
	"os"
	"path/filepath"
	"unsafe"

	"exp/eval/task"
	"exp/harness/config"
	"exp/harness/dataset"
	"exp/harness/stage"
	"exp/train/model"
	"exp/train/rollout"
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
// sequences of at most longest tokens and steps that sample so many completions. While it computes that is 22 MiB of
// code and tables, 8 of libraries and the database, and Go's heap: 16 MiB, its room between collections, and twice
// its generated problems and the completions of a step, and of the one before, which is recorded meanwhile, with
// their log-probs and verdicts, and what a teacher says of them; completions that a filter drops are recorded, too.
// What else a run that learns keeps grows the heap by 5 MiB, and what runs the programs of completions, and records
// what they wrote, takes 32. At its start, before it has arrays, it reads all of its own file and stores the sources
// in it, which takes more. Linux may map 25 MiB more of a program that was just linked, pages that it takes back when
// it needs them. A published tokenizer adds about three times its file size, usually half of it garbage.
func programBytes(c *config.Run, longest, completions int, arrays int64) int64 {
	const (
		large     = 56 << 20 // with a large model, whose heap has no room
		computing = 30 << 20
		starting  = 84 << 20
		learning  = 5 << 20
		programs  = 32 << 20
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
	more += int64(c.GeneratedProblems("train")) * problemBytes(c, longest)
	kept := int64(0)
	if c.Train.Steps > 0 || c.LearnsFirst() {
		kept = learning
	}
	if c.Task.Has("code") || c.Task.Has("functions") {
		kept += programs
	}
	return max(computing+kept, starting-arrays) + more
}

// problemBytes returns what a generated training problem takes of Go's heap, half of it garbage: on average of some
// that the run's task makes, or, of several tasks, at most.
func problemBytes(c *config.Run, longest int) int64 {
	const some = 16
	t, err := task.New(dataset.TaskConfig(c))
	if err == nil && c.Task.Kind != config.MixedTask {
		if list, err := t.Generate(task.Train, some, 0); err == nil && len(list) > 0 {
			return 2 * heldBytes(list) / int64(len(list))
		}
	}
	return int64(128 + 6*longest + c.Task.ProblemBytes()) // texts, tokens and their headers
}

// heldBytes returns the memory of problems. An array's room in the heap is some larger than the array.
func heldBytes(list []rollout.Problem) (sum int64) {
	const header = 8
	for i := range list {
		p := &list[i]
		for _, n := range []int{len(p.ID), len(p.Prompt), len(p.Answer), len(p.Target), len(p.Cluster), len(p.Data)} {
			sum += int64(n + header)
		}
		sum += int64(unsafe.Sizeof(*p))
	}
	return sum
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
