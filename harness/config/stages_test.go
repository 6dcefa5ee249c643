package config

import (
	"slices"
	"testing"
)

// TestStageTable: a stage takes what an earlier one makes, and keys are read by stages of
// the table.
func TestStageTable(t *testing.T) {
	// Adapters and exact policies refer to the weights that start a run.
	made := []string{RoleBase, RoleReference}
	for i, f := range stageTable {
		for _, role := range f.Takes {
			if !slices.Contains(made, role) {
				t.Errorf("%s takes %s, which no stage before it makes", f.Stage, role)
			}
		}
		made = append(made, f.Makes...)
		if f.Part == 0 || len(f.Makes) == 0 {
			t.Errorf("%s: %+v", f.Stage, f)
		}
		if i > 0 && (!f.Stage.After(stageTable[i-1].Stage) || stageTable[i-1].Stage.After(f.Stage)) {
			t.Errorf("%s does not come after %s", f.Stage, stageTable[i-1].Stage)
		}
	}
	for _, k := range Keys() {
		for _, s := range k.Stages {
			if s.Facts().Stage != s {
				t.Errorf("%s is read by a stage %q", k.Path, s)
			}
		}
	}
	if f := Stage("import").Facts(); f.Part != 0 {
		t.Errorf("the import of a foreign run: %+v", f)
	}
}

func TestStagesOf(t *testing.T) {
	if got := RunStages(); !slices.Equal(got, []Stage{Prepare, Init, SFT, RewardModel, Prefer, PassRate, Select, Train, Merge}) {
		t.Errorf("a run is made of %q", got)
	}
	if got := StagesOf(Evaluating); !slices.Equal(got, []Stage{EvalGen, EvalScore}) {
		t.Errorf("evaluations are %q", got)
	}
	if got := StagesOf(); len(got) != len(stageTable) {
		t.Errorf("all are %q", got)
	}
}
