package config

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestStopCondition(t *testing.T) {
	measured := map[string]float64{"kl/ref_k3": 1.5, "actor/entropy": 0.2, "actor/grad_norm": math.NaN()}
	for text, want := range map[string]bool{
		"kl/ref_k3 > 1":                            true,
		"kl/ref_k3 > 1.5":                          false,
		"kl/ref_k3 == 1.5":                         true,
		"kl/ref_k3 > 2 or actor/entropy < 0.3":     true,
		"kl/ref_k3 > 1 and not actor/entropy < .3": false,
		"actor/grad_norm < 5":                      false, // not a number
		"critic/rewards/mean < 1":                  false, // not measured
		"not critic/rewards/mean < 1":              false,
		"critic/rewards/mean != 1":                 false,
		"not actor/grad_norm < 1e9":                false,
		"kl/ref_k3 > 1 or critic/rewards/mean < 1": false,
		"kl/ref_k3 != 1":                           true,
		"nonfinite > 0":                            true,
		"nonfinite >= 2":                           false,
		"kl/ref_k3 > 2 or nonfinite = 1":           true,
	} {
		c, err := ParseStop(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := c.Holds(measured); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// A condition that can never hold is an error before anything is trained.
func TestStopIfErrors(t *testing.T) {
	for text, want := range map[string][]string{
		"kl/ref_k4 > 1":   {`no metric "kl/ref_k4"`, `did you mean "kl/ref_k3"?`},
		"pass@1 < 0.1":    {"no training step measures pass@1", "eval.online"},
		"sft/loss < 1":    {"no training step measures sft/loss"},
		"val/pass@1 < .1": {"never measured: eval.online.every_steps is 0"},
		"kl/ref_k3 > big": {"expected a number", "column 13"},
		"nonfinit > 1":    {`did you mean "nonfinite"?`},
		"zzz > 1":         {`no metric "zzz"`, "exp metrics"},
		"> 1":             {"expected the name of a metric"},
		"actor/entropy in [0, 9]": {`"in" is not for numbers`, "column 15", "one of",
			"write an interval as actor/entropy >= 0 and actor/entropy <= 9"},
		"kl/ref_k3 in": {"write an interval as kl/ref_k3 >= LOW and kl/ref_k3 <= HIGH"},
	} {
		_, err := Load(Input{File: "testdata/plain.yaml", Sets: []string{"run.stop_if=['" + text + "']"}})
		var list Errors
		if !errors.As(err, &list) || len(list) != 1 || list[0].Code != CodeConflict {
			t.Errorf("%q: %v, want one conflict", text, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(list[0].Message+" "+list[0].Help, part) {
				t.Errorf("%q: %s (%s), want %q", text, list[0].Message, list[0].Help, part)
			}
		}
	}
	sets := []string{"run.stop_if=[val/pass@1 < 0.1, kl/ref_k3 > 1]", "eval.online.every_steps=2"}
	if r := load(t, Input{File: "testdata/plain.yaml", Sets: sets}); len(r.Run.StopConditions()) != 2 {
		t.Errorf("conditions %v", r.Run.StopConditions())
	}
}
