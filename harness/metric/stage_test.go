package metric

import (
	"slices"
	"testing"
)

// The stages before training draw metrics of the catalogue that are theirs, and none of training's.
func TestStages(t *testing.T) {
	for _, s := range Stages() {
		if len(s.Curves) == 0 || s.Step == "" {
			t.Errorf("stage %s draws %q against %q", s.Name, s.Curves, s.Step)
		}
		for _, name := range s.Curves {
			m, known := Find(name)
			of, ok := StageOf(name)
			if !known || !ok || of.Name != s.Name || m.OfSteps() {
				t.Errorf("%s of stage %s: known %t, of %q, of training %t", name, s.Name, known, of.Name, m.OfSteps())
			}
		}
	}
	for _, name := range []string{"sft", "sfts/loss", "actor/sft", "timing_s/sft", ""} {
		if s, ok := StageOf(name); ok {
			t.Errorf("%q is of stage %s", name, s.Name)
		}
	}
	of := func(name string) bool { return Metric{Name: name}.OfSteps() }
	if got := []bool{of("actor/entropy"), of("prefer/lr"), of("pass@1"), of("timing_s/sft")}; !slices.Equal(got, []bool{true, false, false, true}) {
		t.Errorf("metrics of training: %v", got)
	}
}
