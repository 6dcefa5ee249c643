package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"exp/harness/bench"
	"exp/harness/selftest"
	"exp/kernels"
	"exp/kernels/cpu"
	"exp/train"
)

// trial is one training of the self-test.
type trial struct {
	Level   string `json:"level"`
	Threads int    `json:"threads"`
	Digest  string `json:"digest,omitempty"`
	Error   string `json:"error,omitempty"`
}

// trials trains with operands of a type, with every level, on each number of threads.
// The error is the first one, of whatever trial.
func trials(ctx context.Context, operand kernels.DType, levels []cpu.Level, threads []int) (list []trial, numerics string, err error) {
	for _, level := range levels {
		for _, n := range threads {
			be, open := cpu.Open(cpu.Options{Level: &level, Threads: n, Operand: operand})
			if open != nil {
				return list, numerics, open
			}
			t := trial{Level: level.String(), Threads: n}
			numerics = selftest.Numerics(be)
			digest, failed := selftest.Train(ctx, be)
			be.Close()
			if t.Digest = digest; failed != nil {
				t.Error = failed.Error()
				err = errors.Join(err, failed)
			}
			list = append(list, t)
		}
	}
	return list, numerics, err
}

// checkDeterminism trains a toy in every way that this machine can.
func (a *app) checkDeterminism(ctx context.Context, d *diagnosis, quick bool) {
	levels, threads := cpuLevels(), []int{1, 2, runtime.NumCPU()}
	if quick {
		levels, threads = levels[len(levels)-1:], []int{1, runtime.NumCPU()}
	}
	slices.Sort(threads)
	threads = slices.Compact(threads)
	list, class, err := trials(ctx, kernels.F32, levels, threads)
	half, halfClass, halfErr := trials(ctx, kernels.BF16, levels, threads[:min(2, len(threads))])
	var mismatch *train.MismatchError
	switch err := errors.Join(err, halfErr); {
	case errors.As(err, &mismatch):
		d.fail("sampler", exitDivergence, distrust, "%v", mismatch)
		return
	case err != nil:
		d.failed("training", err)
		return
	}
	d.ok("sampler", "its log-probs are the trainer's, bit for bit")
	d.judge("", list, class)
	d.judge("bf16 ", half, halfClass)
}

const distrust = "do not trust results of this machine: test its memory, and report this with exp doctor --json"

// judge compares the digests of trials with one another and with the one expected. The
// findings are called after prefix.
func (d *diagnosis) judge(prefix string, list []trial, numerics string) {
	how := map[string][]string{} // by digest
	var order []string
	for _, t := range list {
		if how[t.Digest] == nil {
			order = append(order, t.Digest)
		}
		how[t.Digest] = append(how[t.Digest], fmt.Sprintf("%s on %d", t.Level, t.Threads))
	}
	if len(order) > 1 {
		var each []string
		for _, digest := range order {
			each = append(each, digest[:8]+" by "+strings.Join(how[digest], ", "))
		}
		d.add(finding{Name: prefix + "same bits", Health: failing, Code: exitDivergence, Help: distrust, Value: list,
			Text: "the same training gave different bits: " + strings.Join(each, "; ")})
		return
	}
	d.add(finding{Name: prefix + "same bits", Health: healthy, Value: list,
		Text: fmt.Sprintf("%d trainings agree (kernels on threads: %s)", len(list), strings.Join(how[order[0]], ", "))})
	want, known := selftest.Want(numerics)
	switch {
	case !known:
		d.warn(prefix+"digest", "results agree with those of machines of the same class", "%s; none is known for the class %s", order[0][:16], numerics)
	case want != order[0]:
		d.fail(prefix+"digest", exitDivergence, distrust, "%s, but every machine of the class %s gives %s", order[0][:16], numerics, want[:16])
	default:
		d.ok(prefix+"digest", "%s, as on every machine of the class %s", order[0][:16], numerics)
	}
}

// measureTime is how long each speed is measured: enough for two digits.
const measureTime = 150 * time.Millisecond

// checkSpeed measures; it judges nothing.
func (a *app) checkSpeed(ctx context.Context, d *diagnosis, quick bool) {
	if quick {
		return
	}
	be, err := a.openCPU(cpu.Options{})
	if err != nil {
		d.failed("measured", err)
		return
	}
	defer be.Close()
	s, err := bench.Measure(ctx, be, measureTime)
	if err != nil {
		d.failed("measured", err)
		return
	}
	d.add(finding{Name: "measured", Health: healthy, Value: s, Text: fmt.Sprintf(
		"%.0f GFLOP/s in a matmul of 512, %.0f tokens/s sampled from 0.8 M parameters; %s, %d threads, as busy as the machine is now",
		s.MatMul, s.Sample, be.Level(), be.Threads())})
}
