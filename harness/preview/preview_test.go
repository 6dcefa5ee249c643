package preview

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"exp/eval/suite"
	"exp/experiments/ident"
	"exp/experiments/store"
	"exp/harness/config"
	"exp/harness/plan"
	harness "exp/harness/run"
)

const smoke = "../../configs/smoke_cpu.yaml"

func look(t *testing.T, sets ...string) Run {
	t.Helper()
	run, err := lookIn(t, nil, sets...)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func lookIn(t *testing.T, db *store.DB, sets ...string) (Run, error) {
	t.Helper()
	r, err := config.Load(config.Input{File: smoke, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	sources, err := plan.Sources()
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{DB: db, Sources: sources, Getenv: os.Getenv, Processes: harness.Alone()}
	return m.Of(context.Background(), r, 3)
}

// Without a store everything would be executed, and only stages that depend on no other
// have an identity yet.
func TestOf(t *testing.T) {
	r := look(t)
	if r.Seed != 3 || r.Algo != "flowrl" || len(r.RID) != 64 || r.Estimate == nil || r.Prompts == nil || len(r.Missing) > 0 {
		t.Errorf("%+v", r)
	}
	if n := r.Prompts.Longest; n != 9 { // "3,5,9=17:"
		t.Errorf("the longest prompt of the task has %d tokens", n)
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

// A benchmark's prompt that the run cannot use is an error of the plan, not only of the run.
func TestOfSuiteThatDoesNotFit(t *testing.T) {
	db, err := store.Open(filepath.Join(t.TempDir(), "store"), store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	path := filepath.Join(t.TempDir(), "long.jsonl")
	if err := os.WriteFile(path, []byte(`{"problem":"`+strings.Repeat("1+", 40)+`1","answer":"41"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := suite.Read("long", path, suite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := db.Blobs.Put(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	row := store.Suite{Digest: ident.Sum(data), Name: s.Name, Version: "v1", Scorer: strings.Join(s.Graders, ","),
		Items: []store.Item{{ID: s.Problems[0].ID}}}
	if _, err := db.AddSuite(t.Context(), row, int64(len(data))); err != nil {
		t.Fatal(err)
	}
	_, err = lookIn(t, db, "eval.final.suites=[long]")
	if err == nil || !strings.Contains(err.Error(), "suite long: problem 0: the prompt has 81 tokens") {
		t.Errorf("%v", err)
	}
}

// The CPU is measured once for runs of the same shape on as many threads.
func TestOfMeasuresOnce(t *testing.T) {
	sources, err := plan.Sources()
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Sources: sources, Getenv: os.Getenv, Processes: harness.Alone()}
	for _, x := range []struct {
		set      string
		measured int
	}{{"algo.kind=flowrl", 1}, {"algo.kind=grpo", 1}, {"train.steps=7", 1}, {"compute.threads=1", 2}, {"model.arch.ffn=96", 3}} {
		r, err := config.Load(config.Input{File: smoke, Sets: []string{"compute.threads=2", x.set}})
		if err != nil {
			t.Fatal(err)
		}
		run, err := m.Of(t.Context(), r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.rates) != x.measured || run.Estimate.Rates == nil {
			t.Errorf("%s: measured %d times, want %d; rates %v", x.set, len(m.rates), x.measured, run.Estimate.Rates)
		}
	}
}

// What ranks lack is stated with what they need.
func TestOfRanks(t *testing.T) {
	r, err := config.Load(config.Input{File: smoke, Sets: []string{"compute.micro_batch_tokens=1000000000", "rollout.n=10000000"}})
	if err != nil {
		t.Fatal(err)
	}
	m := Machine{Getenv: os.Getenv, Processes: harness.Processes{Ranks: 4, Here: 2}}
	run, err := m.Of(t.Context(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(run.Missing, " "), "memory: 2 ranks here need") || run.Estimate.Ranks != 4 {
		t.Errorf("missing %q, planned for %d ranks", run.Missing, run.Estimate.Ranks)
	}
}
