package main

import (
	"strings"
	"testing"
)

// A run in tensor-core arithmetic is computed on the CPU, verified and resumed like any other,
// and has its own id.
func TestMatrixNumerics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(args ...string) ended {
		return smoke(t, dir, append([]string{"--set", "model.dtype=bf16", "--set", "sft.steps=2",
			"--set", "sft.optim.warmup_steps=0", "--set", "train.steps=2", "--set", "rollout.n=2",
			"--set", "eval.online.every_steps=0", "--set", "eval.final.n=1", "--set", "data.test.size=4"}, args...)...)
	}
	run("--set", "compute.numerics=matrix/16x25").succeeds(t)
	matrix, outputs := recordOf(t, dir)
	if !strings.HasPrefix(matrix.Numerics, "matrix/16x25") || !strings.HasPrefix(matrix.Device, "cpu/") {
		t.Errorf("the run is of class %s on %s", matrix.Numerics, matrix.Device)
	}
	exp(t, "verify", "@last", "--store", dir, "--level", "full").says(t, "steps 1–2 re-executed", "9 stages repeated")
	exp(t, "run", smokeRecipe, "--dry-run", "--store", dir, "--set", "model.dtype=bf16",
		"--set", "compute.numerics=matrix/16x25").says(t, "matrix/16x25", "policy: weights", "the CPU emulates tensor cores: a product takes")
	run("--set", "compute.numerics=cpu/bf16").succeeds(t)
	own, others := recordOf(t, dir)
	if own.RID == matrix.RID || own.XID != matrix.XID || own.Chain == matrix.Chain || len(outputs) != len(others) {
		t.Errorf("runs %s and %s of experiments %s and %s", matrix.RID, own.RID, matrix.XID, own.XID)
	}
	run("--set", "compute.numerics=matrix/16x25", "--device", "cuda:999").refuses(t, 7, "compute.device is cuda:999, and ")
}

// Where the kernels have no instructions for bf16, the plan warns; in float32 it has no reason to.
func TestEmulatedBF16(t *testing.T) {
	plan := func(dtype string) ended {
		e := call{env: map[string]string{"HOME": t.TempDir(), "EXP_CPU": "portable"}}.run("run", smokeRecipe, "--dry-run",
			"--store", t.TempDir(), "--set", "model.dtype="+dtype)
		e.succeeds(t)
		return e
	}
	const warning = "the kernels for portable have no instructions for bf16"
	if e := plan("bf16"); !strings.Contains(e.stdout+e.stderr, warning) {
		t.Errorf("no warning:\n%s%s", e.stdout, e.stderr)
	}
	if e := plan("f32"); strings.Contains(e.stdout+e.stderr, "no instructions") {
		t.Errorf("a warning about bf16 in float32:\n%s%s", e.stdout, e.stderr)
	}
}
