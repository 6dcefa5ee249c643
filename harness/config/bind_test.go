package config

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/train/rl"
)

func TestBindRefusesWhatDoesNotFit(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"text for a number":    {"rollout.n": "3"},
		"float for an integer": {"rollout.n": 3.0},
		"integer for a float":  {"rollout.temperature": int64(1)},
		"number for a switch":  {"compute.recompute": int64(1)},
		"float in an int list": {"eval.final.pass_k": []any{int64(1), 2.0}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("bind took %v", values)
				}
			}()
			bind(&Run{}, values)
		})
	}
}

func TestBindLeavesTheRestZero(t *testing.T) {
	var got Run
	bind(&got, map[string]any{"algo.clip.dual": nil, "algo.clip.low": 0.5, "algo.critic.warmup_steps": int64(3), "algo.gdpo.weights": []any{2.0, 1.0}, "algo.gamma": 0.5, "data.seed": int64(1) << 40})
	want := rl.Settings{"clip.dual": math.Inf(1), "clip.low": 0.5, "critic.warmup_steps": 3, "gdpo.weights": []float64{2, 1}, "gamma": 0.5}
	if diff := cmp.Diff(want, got.Algo.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if got.Data.Seed != 1<<40 || got.Rollout.N != 0 {
		t.Errorf("got %+v", got)
	}
}
