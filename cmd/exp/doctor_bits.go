package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"exp/cmd/exp/cli"
	"exp/harness/bench"
	"exp/harness/device"
	"exp/harness/selftest"
)

// checkDeterminism trains a toy in every way that this machine can.
func (a *app) checkDeterminism(ctx context.Context, d *diagnosis, quick bool) {
	single, half, err := selftest.Run(ctx, quick)
	var mismatch *selftest.MismatchError
	switch {
	case errors.As(err, &mismatch):
		d.fail("sampler", cli.ExitDivergence, distrust, "%v", mismatch)
		return
	case err != nil:
		d.failed("training", err)
		return
	}
	d.ok("sampler", "its log-probs are the trainer's, bit for bit")
	d.judge("", single)
	d.judge("bf16 ", half)
}

const distrust = "do not trust results of this machine: test its memory, and report this with exp doctor --json"

// judge compares the digests of trials with one another and with the one expected. The
// findings are called after prefix.
func (d *diagnosis) judge(prefix string, t selftest.Trials) {
	how := map[string][]string{} // by digest
	var order []string
	for _, one := range t.List {
		if how[one.Digest] == nil {
			order = append(order, one.Digest)
		}
		how[one.Digest] = append(how[one.Digest], fmt.Sprintf("%s on %d", one.Level, one.Threads))
	}
	if len(order) > 1 {
		var each []string
		for _, digest := range order {
			each = append(each, digest[:8]+" by "+strings.Join(how[digest], ", "))
		}
		d.add(finding{Name: prefix + "same bits", Health: failing, Code: cli.ExitDivergence, Help: distrust,
			Value: t.List,
			Text:  "the same training gave different bits: " + strings.Join(each, "; ")})
		return
	}
	d.add(finding{Name: prefix + "same bits", Health: healthy, Value: t.List,
		Text: fmt.Sprintf("%d trainings agree (kernels on threads: %s)", len(t.List), strings.Join(how[order[0]], ", "))})
	want, known := selftest.Want(t.Numerics)
	switch {
	case !known:
		d.warn(prefix+"digest", "results agree with those of machines of the same class", "%s; none is known for the class %s", order[0][:16], t.Numerics)
	case want != order[0]:
		d.fail(prefix+"digest", cli.ExitDivergence, distrust, "%s, but every machine of the class %s gives %s", order[0][:16], t.Numerics, want[:16])
	default:
		d.ok(prefix+"digest", "%s, as on every machine of the class %s", order[0][:16], t.Numerics)
	}
}

// measureTime is how long each speed is measured: enough for two digits.
const measureTime = 150 * time.Millisecond

// checkSpeed measures; it judges nothing.
func (a *app) checkSpeed(ctx context.Context, d *diagnosis, quick bool) {
	if quick {
		return
	}
	be, err := device.Open(device.Options{}, a.Getenv)
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
