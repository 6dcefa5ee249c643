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
	Level   string `json:"level"`
	Threads int    `json:"threads"`
	Digest  string `json:"digest,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Trials are training runs that must all give the same bits.
type Trials struct {
	List     []Trial
	Numerics string // their numerics class
}

// Run trains in float32 and in bf16 with every level that this machine supports, on
// one, two and all threads; quick uses the best level only. The error joins the errors
// of all trials.
func Run(ctx context.Context, quick bool) (single, half Trials, err error) {
	levels, threads := device.OfThisMachine().Levels, []int{1, 2, runtime.NumCPU()}
	if quick {
		levels, threads = levels[len(levels)-1:], []int{1, runtime.NumCPU()}
	}
	slices.Sort(threads)
	threads = slices.Compact(threads)
	single, err = trials(ctx, kernels.F32, levels, threads)
	half, halfErr := trials(ctx, kernels.BF16, levels, threads[:min(2, len(threads))])
	return single, half, errors.Join(err, halfErr)
}

// trials trains with one operand type on every level and number of threads.
func trials(ctx context.Context, operand kernels.DType, levels []string, threads []int) (t Trials, err error) {
	for _, level := range levels {
		for _, n := range threads {
			be, open := device.Open(device.Options{Level: level, Threads: n, Operand: operand}, nil)
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
