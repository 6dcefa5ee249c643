package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"exp/experiments/store"
)

// onGPU runs the program in a new process with the fake driver and its settings, which a process
// reads once. Tests that call it skip without the driver.
func onGPU(t *testing.T, settings string, args ...string) ended {
	t.Helper()
	if _, ok := os.LookupEnv("FAKECUDA"); !ok {
		t.Skip("needs the fake driver: make cuda")
	}
	// The result of a test depends on the library: read it, so that the cache knows.
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) {
		os.ReadFile(filepath.Join(dir, "libcuda.so.1"))
	}
	var stdout, stderr strings.Builder
	p := exec.Command(os.Args[0], args...)
	p.Env = append(os.Environ(), "EXP_TEST_AS_PROGRAM=1", "HOME="+t.TempDir(), "NO_COLOR=1", "FAKECUDA="+settings)
	p.Stdout, p.Stderr = &stdout, &stderr
	err := p.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ended{p.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// recordOf returns the newest run, and its outputs by stage.
func recordOf(t *testing.T, dir string) (run store.Run, outputs map[string]string) {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(t.Context(), store.RunQuery{})
	if err != nil || len(runs) == 0 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	stages, err := db.Stages(t.Context(), runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	outputs = map[string]string{}
	for _, s := range stages {
		for _, o := range s.Outputs {
			outputs[s.SID.String()+" "+s.Kind+" "+o.Role] = o.Digest.String()
		}
	}
	return runs[0], outputs
}

// A run on a GPU has the ids and the bits of the run on the CPU in each numerics class, with moments and
// waiting gradients in the host's memory and a small cache; either verifies and continues the other.
func TestCUDARunIsTheRunOfTheCPU(t *testing.T) {
	t.Parallel()
	short := []string{"--set", "model.dtype=bf16", "--set", "sft.steps=2", "--set", "sft.optim.warmup_steps=0",
		"--set", "train.steps=2", "--set", "eval.final.n=1"}
	t.Run("f32", func(t *testing.T) { sameRun(t, 4, "cpu/fma") })
	t.Run("bf16", func(t *testing.T) {
		if os.Getenv("EXP_TEST_ALL") != "" {
			sameRun(t, 4, "cpu/bf16", "--set", "model.dtype=bf16")
			return
		}
		sameRun(t, 2, "cpu/bf16", short...)
	})
	t.Run("optimizers-and-judge", func(t *testing.T) {
		sameRun(t, 2, "cpu/fma", "--set", smokeJudge(t), "--set", "train.optim.kind=muon", "--set", "sft.optim={kind: sgd, momentum: 0.9}",
			"--set", "sft.steps=2", "--set", "sft.optim.warmup_steps=0", "--set", "train.steps=2", "--set", "eval.final.n=1")
	})
	t.Run("matrix", func(t *testing.T) {
		sameRun(t, 2, "matrix/16x25", append(short, "--set", "compute.numerics=matrix/16x25")...)
	})
}

// briefly ends supervised training after a step.
var briefly = []string{"--set", "sft.steps=1", "--set", "sft.optim.warmup_steps=0"}

// smokeJudge is a reward by the model of a smoke run, which continues a problem with a formula: its last number counts.
func smokeJudge(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	smoke(t, dir, "--set", "eval.final.suites=[]").succeeds(t)
	weights, err := filepath.Glob(filepath.Join(dir, "runs", "*", "model"))
	template := filepath.Join(dir, "judge.txt")
	if err := errors.Join(err, os.WriteFile(template, []byte("{prompt}"), 0o666)); err != nil || len(weights) != 1 {
		t.Fatal(weights, err)
	}
	return fmt.Sprintf("reward={kind: genrm, weights: %s, judge: {template: %s, pattern: '([0-9]+)', temperature: 1, max_tokens: 24, "+
		"context: 64}, max_not_graded: 1}", weights[0], template)
}

// sameRun compares runs of some steps of training.
func sameRun(t *testing.T, steps int, class string, set ...string) {
	t.Parallel()
	cpu, gpu := t.TempDir(), t.TempDir()
	e := onGPU(t, "order=1", append([]string{"run", smokeRecipe, "--set", "compute.device=cuda", "--set", "compute.offload=all",
		"--set", "rollout.cache_tokens=300", "--store", gpu}, set...)...)
	e.succeeds(t)
	if want := class + "  cuda:0, emulated device"; !strings.Contains(e.stderr, want) {
		t.Errorf("the progress lacks %q:\n%s", want, e.stderr)
	}
	smoke(t, cpu, set...).succeeds(t)
	a, want := recordOf(t, cpu)
	b, got := recordOf(t, gpu)
	if a.RID != b.RID || a.Chain != b.Chain || b.Status != store.Done || b.Device != "cuda/emulated device" {
		t.Errorf("on the GPU the run is %s with chain %s (%s on %s), on the CPU %s with %s", b.RID, b.Chain, b.Status,
			b.Device, a.RID, a.Chain)
	}
	if len(want) < 15 || !maps.Equal(want, got) {
		t.Errorf("outputs on the GPU %v, on the CPU %v", got, want)
	}
	onGPU(t, "lazy,graphs=0", "verify", "@last", "--store", cpu, "--device", "cuda").says(t, fmt.Sprintf("steps 1–%d re-executed", steps))
	exp(t, "verify", "@last", "--store", gpu, "--device", "cpu", "--level", "full").says(t, "9 stages repeated")
	onGPU(t, "", append([]string{"run", smokeRecipe, "--device", "auto", "--store", cpu, "--dry-run"}, set...)...).
		says(t, "compute.device auto: on cuda:0, emulated device", "cached")
	onGPU(t, "", "show", "@last", "--store", gpu).says(t, class+" on cuda/emulated device")
	if class == "cpu/fma" {
		sameScores(t, gpu)
	}
}

// sameScores scores the folder that a run left, which has no algorithm, on both devices.
func sameScores(t *testing.T, dir string) {
	t.Helper()
	model, err := filepath.Glob(filepath.Join(dir, "runs", "*", "model"))
	if err != nil || len(model) != 1 {
		t.Fatal(model, err)
	}
	puzzles := filepath.Join(t.TempDir(), "puzzles.jsonl")
	writeRows(t, puzzles, `{"nums":[3,4],"target":12}`, `{"nums":[5,6],"target":11}`)
	score := []string{"eval", model[0], "--suite", puzzles, "--n", "2", "--max-new-tokens", "24", "--json", "--store"}
	gpu, cpu := t.TempDir(), t.TempDir()
	on := onGPU(t, "", append(score, gpu, "--device", "cuda")...)
	on.succeeds(t)
	off := exp(t, append(score, cpu, "--device", "cpu")...)
	if got := strings.ReplaceAll(on.stdout, gpu, cpu); got != off.stdout {
		t.Errorf("on the GPU %s, on the CPU %s", got, off.stdout)
	}
}

// Plans say what a device lacks, and what to do, before any work.
func TestCUDALacks(t *testing.T) {
	for _, tt := range []struct {
		name, settings, device string
		code                   int
		texts                  []string
	}{
		{"old driver", "version=11040", "cuda", 7, []string{"driver for CUDA 11.4: the driver is too old",
			"install driver 525"}},
		{"no device", "devices=0", "cuda", 7, []string{"the driver sees no device", "CUDA_VISIBLE_DEVICES"}},
		{"few devices", "", "cuda:3", 7,
			[]string{"compute.device is cuda:3, and the driver has no such GPU: it lists 1", "exp doctor lists"}},
		{"old device", "capability=75", "cuda", 7, []string{"emulated device has compute capability 7.5",
			"8.0 or newer"}},
		{"broken driver", "init=803", "cuda", 7, []string{"differ", "reboot"}},
		{"memory", "memory=5", "cuda", 7, []string{"cuda:0 has 5.00 MiB", "key/value cache of the sampler",
			"compute.recompute"}},
		{"auto, old driver", "version=11040", "auto", 0,
			[]string{"compute.device auto: on the CPU, because cuda: driver for CUDA 11.4"}},
		{"auto, old device", "capability=75", "auto", 0,
			[]string{"compute.device auto: on the CPU, because emulated device has compute capability 7.5"}},
		{"auto", "", "auto", 0, []string{"compute.device auto: on cuda:0, emulated device"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := onGPU(t, tt.settings, "run", smokeRecipe, "--device", tt.device, "--store", t.TempDir(),
				"--until", "init")
			for _, text := range tt.texts {
				if e.code != tt.code || !strings.Contains(e.stderr, text) {
					t.Errorf("exit code %d, want %d and %q:\n%s", e.code, tt.code, text, e.stderr)
				}
			}
			if tt.code != 0 && tt.name != "memory" && !strings.Contains(e.stderr, "--device cpu") {
				t.Errorf("nothing says how to compute on the CPU:\n%s", e.stderr)
			}
		})
	}
	// Older tensor cores add up in another way.
	matrix := []string{"run", smokeRecipe, "--set", "model.dtype=bf16", "--set", "compute.numerics=matrix/16x25",
		"--store", t.TempDir(), "--device"}
	onGPU(t, "capability=86", append(matrix, "cuda")...).refuses(t, 7, "add up in another way than class matrix/16x25",
		"capability 9.0", "--device cpu")
	onGPU(t, "capability=86", append(matrix, "auto", "--dry-run")...).says(t,
		"compute.device auto: on the CPU, because the tensor cores of emulated device")
	// A command that plans no run.
	onGPU(t, "devices=0", "bench", "--device", "cuda").refuses(t, 7, "the driver sees no device", "--device cpu")
}

// Without a driver the message says so in every build; exp runs nothing.
func TestCUDAWithoutDriver(t *testing.T) {
	e := exp(t, "run", smokeRecipe, "--device", "cuda:999", "--store", filepath.Join(t.TempDir(), "none"))
	e.refuses(t, 7, "compute.device is cuda:999, and ", "--device cpu")
	exp(t, "bench", "--device", "gpu").refuses(t, 2, `no device "gpu": want cpu, cuda, cuda:N or auto`)
	exp(t, "run", smokeRecipe, "--device", "gpu").refuses(t, 2, "compute.device must be cpu, cuda, cuda:N or auto")
}

// If other programs hold the memory, the run names the part that found no room.
func TestCUDAMemoryTaken(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ taken, set, part, help string }{
		{"1024", "rollout.page_tokens=16", "weights and gradients", "train.lora.rank"},
		{"1016", "rollout.page_tokens=16", "activations of a micro-batch: cuda:0: allocate",
			"compute.micro_batch_tokens"},
		{"1000", "rollout.page_tokens=4096", "key/value cache of the sampler: cuda:0: allocate",
			"rollout.max_sequences"},
	} {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			e := onGPU(t, "taken="+tt.taken, append([]string{"-q", "run", smokeRecipe, "--device", "cuda", "--store", dir,
				"--set", tt.set}, briefly...)...)
			e.refuses(t, 7, tt.part, "the device is out of memory", tt.help, "--dry-run")
			if run, _ := recordOf(t, dir); run.Status != store.Failed {
				t.Errorf("the run is %s", run.Status)
			}
		})
	}
}

// A failing launch ends the attempt with its exit code and advice. The run continues in another
// process, on either device, and ends with the bits of an undisturbed run.
func TestCUDADeviceLost(t *testing.T) {
	t.Parallel()
	cpu, gpu := t.TempDir(), t.TempDir()
	smoke(t, cpu, briefly...).succeeds(t)
	undisturbed, want := recordOf(t, cpu)
	saved, err := filepath.Glob(filepath.Join(cpu, "runs", "*", "ckpt", "*", "step-00000002"))
	if err != nil || len(saved) != 1 {
		t.Fatalf("%v, %v", saved, err)
	}
	run := append([]string{"-q", "run", smokeRecipe, "--device", "cuda", "--store", gpu}, briefly...)
	onGPU(t, "fail=40:719", run...).refuses(t, 7, "sft: cuda:0: ", "a kernel failed (code 719)", "to continue: ",
		"--device cuda")
	onGPU(t, "lost="+strings.Replace(saved[0], cpu, gpu, 1), run...).refuses(t, 7, "train: cuda:0: ", "code 719")
	failed, _ := recordOf(t, gpu)
	if failed.Status != store.Failed || failed.Steps < 2 || failed.Steps == undisturbed.Steps {
		t.Errorf("the run is %s after %d steps", failed.Status, failed.Steps)
	}
	for _, device := range []string{"cuda", "cpu"} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(gpu)); err != nil {
			t.Fatal(err)
		}
		e := onGPU(t, "", "resume", "@last", "--store", dir, "--device", device)
		e.succeeds(t)
		if !strings.Contains(e.stderr, "checkpoint step 2 ok") {
			t.Errorf("on %s: not resumed from the checkpoint:\n%s", device, e.stderr)
		}
		got, outputs := recordOf(t, dir)
		if got.RID != undisturbed.RID || got.Chain != undisturbed.Chain || !maps.Equal(outputs, want) {
			t.Errorf("resumed on %s, run %s has chain %s, undisturbed %s has %s", device, got.RID, got.Chain,
				undisturbed.RID, undisturbed.Chain)
		}
	}
}

// Commands that compute without recording a run, or on a folder, take --device too.
func TestCUDACommands(t *testing.T) {
	t.Parallel()
	dir, _, _ := tinyFolder(t)
	out := t.TempDir()
	ids := filepath.Join(out, "ids.json")
	if err := os.WriteFile(ids, []byte(`{"sequences": [[1, 2, 3], [4]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	var files [2][]byte
	for i, device := range []string{"cpu", "cuda:0"} {
		file := filepath.Join(out, device)
		onGPU(t, "", "inspect", dir, "--logits", ids, "--out", file, "--device", device).says(t, "2 sequences")
		var err error
		if files[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(files[0], files[1]) {
		t.Error("the logits differ")
	}

	flags := append(slices.Clone(small), "--device", "cuda")
	e := onGPU(t, "", append(flags, "--json")...)
	e.succeeds(t)
	var b struct{ Data benchmark }
	if err := json.Unmarshal([]byte(e.stdout), &b); err != nil {
		t.Fatal(err)
	}
	if m := b.Data.Models[0]; b.Data.Backend != "cuda/emulated device" || b.Data.Machine != nil ||
		m.Train.TokensPer.Median <= 0 || m.Train.Share != 0 || len(m.MatMul) == 0 {
		t.Errorf("measured %+v", b.Data)
	}
	onGPU(t, "", flags...).says(t, "cuda/emulated device, cuda:0, emulated device, f32", "train 2 × 4")
	onGPU(t, "", append(flags, "--only", "machine")...).refuses(t, 2, "only the CPU's limits")
	onGPU(t, "fail=9:719", flags...).refuses(t, 7, "a kernel failed (code 719)")
}

// exp doctor trains on the GPU too, and survives a GPU that fails.
func TestCUDADoctor(t *testing.T) {
	t.Parallel()
	e := onGPU(t, "", "doctor", "--quick", "--store", t.TempDir())
	e.says(t, "cuda:0)", "CUDA 13.0", "1 found; compute.device cuda", "as on every machine of the class cpu/fma",
		"as on every machine of the class cpu/bf16",
		"emulated device, 1.00 GiB, compute capability 9.0; can compute the numerics",
		"class matrix/16x25 by wgmma, with the bits of mma.sync")
	e = onGPU(t, "fail=40:719", "doctor", "--quick", "--store", t.TempDir())
	if e.code != 7 || !strings.Contains(e.stdout, "a kernel failed (code 719)") ||
		!strings.Contains(e.stdout, "sandbox") {
		t.Errorf("exit code %d\n%s\n%s", e.code, e.stdout, e.stderr)
	}
}
