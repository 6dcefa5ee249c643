package run

import (
	"math"
	"testing"

	"exp/experiments/blob"
	"exp/harness/stage"
	"exp/train"
	"exp/train/rollout"
)

// A completion that cannot be written ends the run, and those before it are kept.
func TestSamplesThatCannotBeWritten(t *testing.T) {
	dir := blob.At(t.TempDir())
	step := func(logProbs ...float32) stage.Step {
		var s stage.Step
		for k, lp := range logProbs {
			c := &rollout.Completion{Tokens: []int32{1}, LogProbs: []float32{lp}}
			s.Trajectories = append(s.Trajectories, train.Trajectory{Problem: &rollout.Problem{ID: "p"}, Sample: k, Completion: c})
		}
		return s
	}
	nan := float32(math.NaN())
	r := &stepRecord{rate: 1, pack: dir.NewPackWriter()}
	if err := r.samples(step(-1, -2)); err != nil {
		t.Fatal(err)
	}
	if err := r.samples(step(-1, nan, -2)); err != nil {
		t.Fatalf("%v, before it can be known", err)
	}
	if err := r.samples(step(-1)); err == nil {
		t.Fatal("no error for a log-prob that is NaN")
	}
	refs, _, err := r.pack.Close()
	if err != nil || len(refs) != 3 || len(r.pending) != 3 || len(r.scored) != 3 || r.pending[2].K != 0 {
		t.Errorf("%d records in the pack, %d samples, %d verdicts, %v; want 3 of each", len(refs), len(r.pending), len(r.scored), err)
	}
}
