package main

import (
	"path/filepath"
	"testing"
)

// exp chat refuses a run that only trained a reward model, and says how to use the model.
func TestRewardModelWritesNothing(t *testing.T) {
	db := filepath.Join(t.TempDir(), "store")
	t.Chdir("../..")
	exp(t, "-q", "run", "configs/reward_cpu.yaml", "--store", db, "--set", "task={kind: words}", "--set", "sft.steps=0",
		"--set", "reward.kind=task", "--set", "train.steps=0", "--set", "data.train.source=none", "--set",
		"data.test.source=none", "--set", "eval.final.suites=[]", "--set", "reward_model.steps=2").succeeds(t)
	exp(t, "chat", "@last", "--store", db).refuses(t, 2, "trained a reward model only, which rates texts and writes none",
		"reward={kind: model, weights: FOLDER}")
}
