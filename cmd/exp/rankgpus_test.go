package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// onGPUs is the environment of a run on fake GPUs and a fake NCCL with settings. Tests that
// call it skip without them and without MPI.
func onGPUs(t *testing.T, settings ...string) []string {
	t.Helper()
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver and the fake NCCL: make cuda")
	}
	needsMPI(t)
	path := os.Getenv("LD_LIBRARY_PATH")
	for _, dir := range filepath.SplitList(path) { // so that the cache of tests knows
		os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
		os.ReadFile(filepath.Join(dir, "libnccl.so.2"))
	}
	return append(settings, "LD_LIBRARY_PATH="+path)
}

// Ranks on GPUs, joined by NCCL, record the run of one process on the CPU, which proves it.
func TestCUDARanks(t *testing.T) {
	t.Parallel()
	env := onGPUs(t, "FAKECUDA=devices=3")
	want := unbroken(t)
	for _, n := range []string{"2", "3"} {
		if n == "2" && os.Getenv("EXP_TEST_ALL") == "" { // as in TestCUDARanksShareProducts
			continue
		}
		dir := filepath.Join(t.TempDir(), "store")
		p := startWith(t, env, "run", smokeRecipe, "--store", dir, "--set", "compute.device=cuda", "--ranks", n)
		if code := p.end(); code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.stderr.String())
		}
		consistent(t, dir).same(t, want)
		exp(t, "show", "@last", "--store", dir).says(t, n+" ranks", "cuda/emulated device")
		exp(t, "show", "@last", "--env", "--store", dir).says(t, "libnccl.so.2: NCCL 2.23.4")
		exp(t, "verify", "@last", "--level", "full", "--device", "cpu", "--store", dir).succeeds(t)
	}
	dir := filepath.Join(t.TempDir(), "store")
	p := startWith(t, env, append([]string{"run", smokeRecipe, "--store", dir, "--device", "cuda", "--ranks", "3", "--set",
		"compute.rollout_ranks=1"}, ahead...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, unbroken(t, ahead...))
}

// A rank with a GPU that is killed or hangs ends the run as one without does, and any number
// of ranks goes on.
func TestCUDARanksLost(t *testing.T) {
	env := onGPUs(t, "FAKECUDA=devices=4")
	want := unbroken(t, disturbed...)
	faults := []rankLoss{{signal: syscall.SIGKILL, ranks: 3, rank: 1, then: 2},
		{signal: syscall.SIGSTOP, ranks: 2, rank: 0, then: 3}, {signal: syscall.SIGSTOP, ranks: 2, rank: 1, then: 1}}
	if os.Getenv("EXP_TEST_ALL") == "" {
		faults = faults[:1]
	}
	for _, f := range faults {
		f.env, f.args, f.after = env, []string{"--device", "cuda"}, time.Second
		for tries := 0; !f.happens(t, want); tries++ {
			if t.Failed() || tries == 5 {
				t.Fatal("the run ended before the signal")
			}
			f.after /= 2
		}
	}
}

// What ranks on GPUs lack, and failures of NCCL, are errors that say what to do.
func TestCUDARanksRefused(t *testing.T) {
	onGPUs(t)
	for _, tt := range []struct {
		name  string
		env   []string
		ranks string
		code  int
		texts []string
	}{
		{"no library", []string{"EXP_NCCL=/none"}, "2", 7, []string{"ranks on GPUs need NCCL: /none: ", "EXP_NCCL="}},
		{"old library", []string{"FAKENCCL=version=21205"}, "2", 7,
			[]string{"libnccl.so.2 is version 2.12.5, and 2.14 or newer is needed", "NVIDIA's package libnccl2"}},
		{"few GPUs", []string{"FAKECUDA=devices=2"}, "3", 7,
			[]string{"rank 2: compute.device is cuda:2, and the driver has no such GPU: it lists 2"}},
		{"one GPU", []string{"FAKECUDA=devices=1"}, "2", 7,
			[]string{"ranks 0 and 1 have the same GPU on ", "as many ranks on a machine as it has GPUs"}},
		{"join fails", []string{"FAKENCCL=join=2"}, "2", 10,
			[]string{"NCCL: CommInitRankConfig: unhandled system error: FAKENCCL says so (code 2)"}},
		{"exchange fails", []string{"FAKENCCL=fail=9:3"}, "2", 10,
			[]string{"rank 0 on ", " failed in step ", "NCCL: Send and Recv: internal error: FAKENCCL says so (code 3)",
				"exp resume ", " --ranks 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			env := onGPUs(t, append([]string{"FAKECUDA=devices=2"}, tt.env...)...)
			p := startWith(t, env, "run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--device", "cuda",
				"--ranks", tt.ranks)
			code := p.end()
			for _, text := range tt.texts {
				if said := p.stderr.String(); code != tt.code || !strings.Contains(said, text) {
					t.Errorf("exit code %d, want %d and %q:\n%s", code, tt.code, text, said)
				}
			}
		})
	}
}

// Ranks on GPUs that share products record the run of one process in the memory that they plan: in float32
// the CPU's run, on tensor cores one GPU's.
func TestCUDARanksShareProducts(t *testing.T) {
	t.Parallel()
	brief := []string{"--set", "model.arch={width: 64, heads: 4, kv_heads: 2, ffn: 64, qkv_bias: true}", "--set", "sft.steps=2",
		"--set", "sft.optim.warmup_steps=0", "--set", "train.steps=2", "--set", "eval.final.n=1"}
	for i, tt := range []struct{ name, ranks, sampling, alone string }{
		{"algo.kind=flowrl", "4", "1", "cpu"}, {"compute.numerics=matrix/16x25", "2", "0", "cuda"},
		{"algo.kind=flowrl", "4", "0", "cpu"}, {"algo.kind=ppo", "2", "1", "cpu"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if i > 1 && os.Getenv("EXP_TEST_ALL") == "" {
				t.Skip("left out without EXP_TEST_ALL=1")
			}
			t.Parallel()
			env := onGPUs(t, "FAKECUDA=devices=4")
			args := append(slices.Clone(brief), "--set", tt.name)
			if tt.alone == "cuda" {
				args = append(args, "--set", "model.dtype=bf16")
			}
			executed := func(more ...string) (string, record) {
				dir := filepath.Join(t.TempDir(), "store")
				p := startWith(t, env, slices.Concat([]string{"run", smokeRecipe, "--store", dir}, args, more)...)
				if code := p.end(); code != 0 {
					t.Fatalf("exit code %d\n%s", code, p.stderr.String())
				}
				return dir, consistent(t, dir)
			}
			_, want := executed("--device", tt.alone)
			dir, got := executed("--device", "cuda", "--ranks", tt.ranks, "--set", "compute.tensor_parallel=2",
				"--set", "compute.rollout_tensor_parallel="+tt.sampling)
			got.same(t, want)
			planned(t, dir, 1.25) // rooms grow with micro-batches, which so short a run does not fill
		})
	}
}
