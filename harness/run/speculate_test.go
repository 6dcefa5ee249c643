package run

import (
	"maps"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
)

// A run that speculates records how many tokens it guessed, and is the same run.
func TestSpeculation(t *testing.T) {
	var want map[string]ident.Digest
	for _, on := range []string{"true", "false"} {
		l := newLab(t)
		l.options.Until = config.Train
		res, _ := l.execute(l.plan(0, "sft={steps: 0}", "model.arch.max_positions=160", "rollout={n: 4, temperature: 0.2, "+
			"max_new_tokens: 100, max_sequences: 2, speculate: "+on+"}"))
		curves, err := l.db.Metrics(t.Context(), res.Run.ID, "perf/sampler_speculated", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if some := len(curves) == 1 && curves[0].Values[0] > 0; some != (on == "true") {
			t.Errorf("speculate %s: %+v", on, curves)
		}
		got := l.outputs(res.Run.ID)
		if want == nil {
			want = got
		}
		if !maps.Equal(got, want) {
			t.Errorf("speculate %s changes the run: %v, want %v", on, got, want)
		}
	}
}
