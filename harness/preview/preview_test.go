package preview

import (
	"context"
	"os"
	"strings"
	"testing"

	"exp/harness/config"
	"exp/harness/plan"
	harness "exp/harness/run"
)

const smoke = "../../configs/smoke_cpu.yaml"

func look(t *testing.T, sets ...string) Run {
	t.Helper()
	r, err := config.Load(config.Input{File: smoke, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := plan.Sources()
	if err != nil {
		t.Fatal(err)
	}
	run, err := Machine{Sources: sources, Getenv: os.Getenv, Processes: harness.Alone()}.Of(context.Background(), r, 3)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// Without a store everything would be executed, and only stages that depend on no other
// have an identity yet.
func TestOf(t *testing.T) {
	r := look(t)
	if r.Seed != 3 || r.Algo != "flowrl" || len(r.RID) != 64 || r.Estimate == nil || r.Prompts == nil || len(r.Missing) > 0 {
		t.Errorf("%+v", r)
	}
	for _, s := range r.Stages {
		first := s.Kind == "prepare" || s.Kind == "init"
		if s.State != Execute || (s.SID != "") != first || s.Why != nil {
			t.Errorf("stage %s: %s, id %q, %v", s.Kind, s.State, s.SID, s.Why)
		}
	}
}

// Missing files are listed, and without them the run has no identity.
func TestOfMissing(t *testing.T) {
	r := look(t, "eval.final.suites=[math500]")
	if r.RID != "" || len(r.Stages) > 0 || !strings.Contains(strings.Join(r.Missing, " "), "math500") || len(r.ToDo) == 0 {
		t.Errorf("%+v", r)
	}
	if r.Estimate == nil || r.Prompts == nil {
		t.Error("the known parts are missing")
	}
}

// What ranks lack is stated with what they need.
func TestOfRanks(t *testing.T) {
	r, err := config.Load(config.Input{File: smoke, Sets: []string{"compute.micro_batch_tokens=1000000000", "rollout.n=10000000"}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Machine{Getenv: os.Getenv, Processes: harness.Processes{Ranks: 4, Here: 2}}.Of(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(run.Missing, " "), "memory: 2 ranks here need") || run.Estimate.Ranks != 4 {
		t.Errorf("missing %q, planned for %d ranks", run.Missing, run.Estimate.Ranks)
	}
}
