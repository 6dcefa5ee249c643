package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// largePages makes ranks that only sample need a cache of some 24 MiB, and those that learn 16 MiB in all.
func largePages(sets ...string) (args []string) {
	for _, set := range append([]string{"model.arch={width: 64, heads: 4, kv_heads: 2, ffn: 64}", "sft.steps=2",
		"sft.optim.warmup_steps=0", "train.steps=2", "eval.final.n=1", "eval.online.every_steps=0", "rollout.staleness=1",
		"rollout.page_tokens=2048"}, sets...) {
		args = append(args, "--set", set)
	}
	return args
}

// Ranks that only sample give their cache the memory that is left, and no more, also if they share products.
func TestCUDARanksFillMemory(t *testing.T) {
	t.Parallel()
	env := onGPUs(t, "FAKECUDA=devices=3,memory=18")
	want := unbroken(t, largePages()...)
	for _, shared := range []string{"1", "2"} {
		dir := filepath.Join(t.TempDir(), "store")
		args := slices.Concat([]string{"run", smokeRecipe, "--store", dir, "--device", "cuda", "--ranks", "3"},
			largePages("compute.rollout_ranks=2", "compute.rollout_tensor_parallel="+shared))
		p := startWith(t, env, append(args, "--dry-run")...)
		if code := p.end(); code != 0 || !strings.Contains(p.stdout.String(), "others restart") {
			t.Fatalf("products shared by %s: exit code %d: the cache is whole\n%s%s", shared, code, p.stdout.String(),
				p.stderr.String())
		}
		p = startWith(t, env, args...)
		if code := p.end(); code != 0 {
			t.Fatalf("products shared by %s: exit code %d\n%s", shared, code, p.stderr.String())
		}
		consistent(t, dir).same(t, want)
	}
}

// If a rank other than the first lacks memory, because another program holds some, the process that launched it
// ends with the code and the advice of that.
func TestCUDARankLacksMemory(t *testing.T) {
	t.Parallel()
	env := onGPUs(t, "FAKECUDA=devices=2,memory=24,taken=8")
	args := []string{"run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--device", "cuda", "--ranks", "2"}
	p := startWith(t, env, append(args, largePages("compute.rollout_ranks=1")...)...)
	code := p.end()
	for _, text := range []string{"rank 1 on ", " failed in step 0", "key/value cache of the sampler: cuda:1: ",
		"out of memory", "help: make rollout.max_sequences smaller", "then exp resume ", " --ranks 2"} {
		if said := p.stderr.String(); code != 7 || !strings.Contains(said, text) {
			t.Errorf("exit code %d, want 7 and %q:\n%s", code, text, said)
		}
	}
}
