package run

import (
	"maps"
	"testing"

	"exp/experiments/ident"
	"exp/harness/config"
)

// A run whose sampler has too small a cache records that completions start again, and is the same run.
func TestSamplerRestarts(t *testing.T) {
	var want map[string]ident.Digest
	for _, tt := range []struct {
		cache string
		some  bool
	}{{"0", false}, {"1", true}} {
		l := newLab(t)
		l.options.Until = config.Train
		res, _ := l.execute(l.plan(0, "sft={steps: 0}", "model.arch.max_positions=160", "rollout={n: 16, page_tokens: 16, "+
			"max_new_tokens: 100, cache_tokens: "+tt.cache+"}"))
		curves, err := l.db.Metrics(t.Context(), res.Run.ID, "perf/sampler_restarts", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if some := len(curves) == 1 && curves[0].Values[0] > 0; some != tt.some {
			t.Errorf("cache_tokens %s: %+v", tt.cache, curves)
		}
		got := l.outputs(res.Run.ID)
		if want == nil {
			want = got
		}
		if !maps.Equal(got, want) {
			t.Errorf("cache_tokens %s changes the run: %v, want %v", tt.cache, got, want)
		}
	}
}
