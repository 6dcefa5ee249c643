package main

import (
	"path/filepath"
	"testing"
)

// A run that trained a reward model alone has nothing that writes: chat says so, and what it is for.
func TestRewardModelWritesNothing(t *testing.T) {
	db := filepath.Join(t.TempDir(), "store")
	t.Chdir("../..")
	exp(t, "-q", "run", "configs/reward_cpu.yaml", "--store", db, "--set", "task={kind: words}", "--set", "sft.steps=0",
		"--set", "reward.kind=task", "--set", "train.steps=0", "--set", "data.train.source=none", "--set",
		"data.test.source=none", "--set", "eval.final.suites=[]", "--set", "reward_model.steps=2").succeeds(t)
	exp(t, "chat", "@last", "--store", db).refuses(t, 2, "trained a reward model only, which rates texts and writes none",
		"reward={kind: model, weights: FOLDER}")
}
