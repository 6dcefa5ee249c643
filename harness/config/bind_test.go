package config

import "testing"

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
	bind(&got, map[string]any{"algo.clip.dual": nil, "algo.gamma": 0.5, "data.seed": int64(1) << 40})
	if got.Algo.Gamma != 0.5 || got.Algo.Clip.Dual != nil || got.Data.Seed != 1<<40 || got.Rollout.N != 0 {
		t.Errorf("got %+v", got)
	}
}
