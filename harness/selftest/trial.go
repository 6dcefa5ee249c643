package selftest

import (
	"context"
	"errors"
	"runtime"
	"slices"

	"exp/harness/device"
	"exp/kernels"
	"exp/train"
)

// MismatchError says that the sampler's log-probs differ from the trainer's.
type MismatchError = train.MismatchError

// Trial is one training run of the self-test.
type Trial struct {
	Level   string `json:"level"`             // of the CPU kernels, or a GPU: "cuda:0"
	Threads int    `json:"threads,omitempty"` // of the CPU
	Digest  string `json:"digest,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Trials are training runs that must all give the same bits.
type Trials struct {
	List     []Trial
	Numerics string // their numerics class
}

// Run trains in float32 and in bf16 with every level that this machine supports, on
// one, two and all threads, and on every GPU; quick uses the best level only. The error joins
// the errors of all trials.
func Run(ctx context.Context, quick bool) (single, half Trials, err error) {
	levels, threads := device.OfThisMachine().Levels, []int{1, 2, runtime.NumCPU()}
	if quick {
		levels, threads = levels[len(levels)-1:], []int{1, runtime.NumCPU()}
	}
	slices.Sort(threads)
	threads = slices.Compact(threads)
	single, err = trials(ctx, kernels.F32, levels, threads)
	err = errors.Join(err, single.onGPUs(ctx, kernels.F32))
	half, halfErr := trials(ctx, kernels.BF16, levels, threads[:min(2, len(threads))])
	return single, half, errors.Join(err, halfErr, half.onGPUs(ctx, kernels.BF16))
}

// trials trains with one operand type on every level and number of threads.
func trials(ctx context.Context, operand kernels.DType, levels []string, threads []int) (t Trials, err error) {
	for _, level := range levels {
		for _, n := range threads {
			be, open := device.OpenCPU(device.Options{Level: level, Threads: n, Operand: operand}, nil)
			if open != nil {
				return t, open
			}
			one := Trial{Level: level, Threads: n}
			t.Numerics = Numerics(be)
			digest, failed := Train(ctx, be)
			be.Close()
			if one.Digest = digest; failed != nil {
				one.Error = failed.Error()
				err = errors.Join(err, failed)
			}
			t.List = append(t.List, one)
		}
	}
	return t, err
}

// onGPUs adds trials with an operand type on every GPU that can compute. Without a driver it
// adds none.
func (t *Trials) onGPUs(ctx context.Context, operand kernels.DType) (err error) {
	found, none := device.FindGPUs()
	if none != nil {
		return nil
	}
	for i := range found.List {
		g := &found.List[i]
		if len(g.Classes) == 0 {
			continue
		}
		one := Trial{Level: g.ID()}
		digest, failed := trainOn(ctx, g, operand)
		if one.Digest = digest; failed != nil {
			one.Error = failed.Error()
			err = errors.Join(err, failed)
		}
		t.List = append(t.List, one)
	}
	return err
}

// trainOn is Train on a GPU. A failure of the GPU is an error.
func trainOn(ctx context.Context, g *device.GPU, operand kernels.DType) (digest string, err error) {
	be, err := device.Open(device.Options{Name: g.ID(), Operand: operand}, nil)
	if err != nil {
		return "", err
	}
	defer be.Close()
	defer func() {
		if p := recover(); p != nil {
			var ok bool
			if err, ok = p.(error); !ok {
				panic(p)
			}
		}
	}()
	return Train(ctx, be)
}
