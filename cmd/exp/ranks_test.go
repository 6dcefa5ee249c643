package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"exp/experiments/store"
	"exp/harness/ranks/launch"
	"exp/harness/ranks/mpi"
	"exp/kernels"
	"exp/train/ranks"
)

// needsMPI skips a test where MPI is not installed.
func needsMPI(t *testing.T) {
	t.Helper()
	if _, err := mpi.Load(os.Getenv(mpiVariable)); err != nil {
		t.Skip(err)
	}
	if _, err := launch.Find(os.Getenv); err != nil {
		t.Skip(err)
	}
}

// Three ranks record the run of one: id, steps, chain, weights, completions; and one process
// proves it.
func TestRanks(t *testing.T) {
	needsMPI(t)
	want := unbroken(t)
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, "run", smokeRecipe, "--store", dir, "--ranks", "3")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, want)
	planned(t, dir, 1.2)
	host, _ := os.Hostname()
	exp(t, "show", "@last", "--store", dir).says(t, "3 ranks") // the line may break after it
	exp(t, "show", "@last", "--env", "--store", dir).says(t, "rank_hosts", host+" "+host+" "+host, "mpi ")
	exp(t, "verify", "@last", "--level", "full", "--store", dir).succeeds(t)
	if left, _ := filepath.Glob(filepath.Join(dir, "ranks", "*")); left != nil {
		t.Errorf("the job left %v", left)
	}
}

// Ranks that train on generated problems of several kinds record the run of one.
func TestRanksOfKinds(t *testing.T) {
	needsMPI(t)
	sets := []string{"--set", "task={kind: mixed, mixed: {generate: {train: {countdown: 40, words: 24}, val: {words: 8}, " +
		"test: {countdown: 6, words: 4}}}, words: {largest_number: 9, steps: 1}}", "--set", "data={train: {source: generated}, " +
		"val: {source: generated}, test: {source: generated}, max_prompt_tokens: 200}", "--set", "model.arch.max_positions=240"}
	dir := filepath.Join(t.TempDir(), "store")
	p := start(t, append([]string{"run", smokeRecipe, "--store", dir, "--ranks", "3"}, sets...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, unbroken(t, sets...))
}

// Ranks that share products record the run of one, in the memory that they plan.
func TestRanksShareProducts(t *testing.T) {
	wide := []string{"--set", "model.arch={width: 64, heads: 4, kv_heads: 2, ffn: 64, qkv_bias: true}"}
	dir := filepath.Join(t.TempDir(), "store")
	pairs := append(slices.Clone(wide), "--set", "compute.tensor_parallel=2")
	smoke(t, dir, append(slices.Clone(pairs), "--ranks", "3")...).refuses(t, 2, "smoke has compute.tensor_parallel: 2",
		"must be a multiple")
	smoke(t, dir, append(slices.Clone(wide), "--ranks", "4", "--set", "compute.tensor_parallel=4")...).refuses(t, 2,
		"compute.tensor_parallel is 4, but the model's width of 64 is not a multiple of 128")
	smoke(t, dir, append(slices.Clone(wide), "--ranks", "4", "--set", "compute.rollout_tensor_parallel=4")...).refuses(t, 2,
		"compute.rollout_tensor_parallel is 4, but the model's width of 64 is not a multiple of 128")
	smoke(t, dir, append(slices.Clone(wide), "--ranks", "3", "--set", "compute.rollout_tensor_parallel=2")...).refuses(t, 2,
		"smoke has compute.rollout_tensor_parallel: 2, and ranks must be a multiple")
	smoke(t, dir, append(slices.Clone(pairs), "--ranks", "4", "--set", "compute.rollout_tensor_parallel=1", "--dry-run")...).
		says(t, "policy: copy of weights for sampling", "weights for sampling")
	needsMPI(t)
	p := start(t, append(append([]string{"run", smokeRecipe, "--store", dir}, pairs...), "--ranks", "4")...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, unbroken(t, wide...))
	planned(t, dir, 1.2)
	exp(t, "verify", "@last", "--level", "full", "--store", dir).succeeds(t)
}

// If fewer or more ranks share products in sampling than in training, they record the run of one process, in the memory
// that they plan; so do ranks that only sample, and then no rank has a copy for sampling.
func TestRanksSampleOtherwise(t *testing.T) {
	needsMPI(t)
	wide := []string{"--set", "model.arch={width: 64, heads: 4, kv_heads: 2, ffn: 64, qk_norm: true}"}
	run := func(ranks string, sets ...string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "store")
		args := append([]string{"run", smokeRecipe, "--store", dir, "--ranks", ranks}, wide...)
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		p := start(t, args...)
		if code := p.end(); code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.stderr.String())
		}
		want := wide
		if slices.Contains(sets, ahead[1]) {
			want = append(slices.Clone(wide), ahead...)
		}
		consistent(t, dir).same(t, unbroken(t, want...))
		planned(t, dir, 1.2)
		exp(t, "verify", "@last", "--level", "full", "--store", dir).succeeds(t)
	}
	run("2", "compute.tensor_parallel=2", "compute.rollout_tensor_parallel=1")
	run("3", "compute.rollout_ranks=2", "compute.rollout_tensor_parallel=2", ahead[1])
}

// ahead is a run that samples ahead of training.
var ahead = []string{"--set", "rollout.staleness=1"}

// Ranks that only sample leave the run without them; if one is lost, its name ends the run.
func TestRanksThatSample(t *testing.T) {
	sampler := append(slices.Clone(ahead), "--set", "compute.rollout_ranks=1")
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--ranks", "2", "--set", "compute.rollout_ranks=1").refuses(t, 2, "smoke has compute.rollout_ranks: 1",
		"rollout.staleness is 0")
	smoke(t, dir, append(slices.Clone(ahead), "--ranks", "2", "--set", "compute.rollout_ranks=2")...).refuses(t, 2,
		"no rank of 2 learns")
	smoke(t, dir, append(slices.Clone(sampler), "--ranks", "4", "--set", "compute.tensor_parallel=2")...).refuses(t, 2,
		"compute.tensor_parallel: 2, and the number of ranks that learn (3) must be a multiple")
	smoke(t, dir, append(slices.Clone(sampler), "--ranks", "3", "--set", "compute.rollout_tensor_parallel=2")...).refuses(t, 2,
		"compute.rollout_tensor_parallel: 2, and compute.rollout_ranks: 1 must be a multiple")
	needsMPI(t)
	p := start(t, append([]string{"run", smokeRecipe, "--store", dir, "--ranks", "3"}, sampler...)...)
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	consistent(t, dir).same(t, unbroken(t, ahead...))
	exp(t, "verify", "@last", "--level", "full", "--store", dir).succeeds(t)
	want := unbroken(t, append(slices.Clone(disturbed), ahead...)...)
	f := rankLoss{signal: syscall.SIGKILL, ranks: 3, rank: 2, then: 2, after: time.Second, args: sampler}
	for tries := 0; !f.happens(t, want); tries++ {
		if t.Failed() || tries == 5 {
			t.Fatal("the run ended before the signal")
		}
		f.after /= 2
	}
}

// If only the reward judges, one rank scores rollouts and the first rank scores validations. They record the run of one
// process.
func TestRanksJudgeAlone(t *testing.T) {
	needsMPI(t)
	program := writeFile(t, "reward.sh", `while IFS= read -r row; do
	id=${row#*\"id\":\"}; id=${id%%\"*}
	text=${row#*\"response\":\"}; text=${text%%\",\"turns*}
	case $text in *[G-N]*) score=1 ;; *) score=0.25 ;; esac
	echo "{\"id\": \"$id\", \"score\": $score}"
done
`)
	var rows strings.Builder
	for i := range 16 {
		fmt.Fprintf(&rows, `{"prompt": "Say %d"}`+"\n", i)
	}
	data := writeFile(t, "prompts.jsonl", rows.String())
	sets := []string{"task={kind: prompts}", "tokenizer.kind=byte", "sft.steps=0", "algo.kind=grpo",
		"reward={kind: command, command: [sh, " + program + "]}", ahead[1]}
	for _, split := range []string{"train", "val", "test"} {
		sets = append(sets, "data."+split+"={source: "+data+", size: 0}")
	}
	var args []string
	for _, set := range sets {
		args = append(args, "--set", set)
	}
	want := unbroken(t, args...)
	for _, ranks := range [][]string{{"--ranks", "2"}, {"--ranks", "3", "--set", "compute.rollout_ranks=1"}} {
		dir := filepath.Join(t.TempDir(), "store")
		p := start(t, slices.Concat([]string{"run", smokeRecipe, "--store", dir}, args, ranks)...)
		if code := p.end(); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", ranks, code, p.stderr.String())
		}
		consistent(t, dir).same(t, want)
	}
}

// planned fails if a learning stage of a store took more memory than its plan says, or if the plan says
// more times as much.
func planned(t *testing.T, dir string, more float64) {
	t.Helper()
	db, err := store.Open(dir, store.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	runs, err := db.Runs(context.Background(), store.RunQuery{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	stages, err := db.Stages(context.Background(), runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range stages {
		var result struct {
			Memory struct {
				Peak    float64 `json:"peak_bytes"`
				Planned float64 `json:"planned_bytes"`
			}
		}
		if err := json.Unmarshal(s.Result, &result); err != nil || result.Memory.Peak == 0 {
			continue
		}
		seen++
		if m := result.Memory; m.Peak > 1.05*m.Planned || m.Planned > more*m.Peak {
			t.Errorf("%s took %v bytes, planned %v", s.Kind, m.Peak, m.Planned)
		}
	}
	if seen != 2 {
		t.Errorf("%d stages have their memory, want 2", seen)
	}
}

// disturbed is the run of TestRanksLost.
var disturbed = []string{"--set", "train.steps=16", "--set", "checkpoint.every_steps=2",
	"--set", "eval.online.every_steps=0"}

// A rank that is killed or hangs at a random moment ends the run with its name, its machine
// and the command that continues; any other number of ranks continues to the bits of an
// undisturbed run. EXP_TEST_ALL=1 disturbs 20 runs.
func TestRanksLost(t *testing.T) {
	needsMPI(t)
	faults := 2
	if os.Getenv("EXP_TEST_ALL") != "" {
		faults = 20
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	began := time.Now()
	want := unbroken(t, disturbed...)
	took := time.Since(began) // a later signal would find ranks that have ended
	done := 0
	for tries := 0; done < faults && !t.Failed(); tries++ {
		if tries == 10*faults {
			t.Fatalf("%d of %d signals came after the end of the run", tries-done, tries)
		}
		f := rankLoss{signal: syscall.SIGKILL, ranks: 2 + r.IntN(3)}
		f.rank, f.after = r.IntN(f.ranks), time.Duration(r.Int64N(int64(took)))
		f.then = 1 + (f.ranks+r.IntN(3))%4
		if done%2 == 1 {
			f.signal = syscall.SIGSTOP
		}
		if f.happens(t, want) {
			done++
		}
	}
}

// SIGTERM to the launching process ends a run on ranks with the code of a run on one.
func TestRanksTerminated(t *testing.T) {
	needsMPI(t)
	p := start(t, "run", smokeRecipe, "--store", filepath.Join(t.TempDir(), "store"), "--ranks", "2",
		"--set", "train.steps=4000", "--set", "eval.online.every_steps=0")
	p.reaches(t, 2)
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.end(); code != 143 || !strings.Contains(p.stderr.String(), "terminated") {
		t.Errorf("exit code %d, want 143\n%s", code, p.stderr.String())
	}
}

// rankLoss is a signal to a rank of a run.
type rankLoss struct {
	signal      syscall.Signal
	ranks, rank int
	after       time.Duration // it has begun
	then        int           // ranks that go on
	env, args   []string      // of the run
}

// happens runs until the fault, and then to the end. It reports false if the end came first.
func (f rankLoss) happens(t *testing.T, want record) bool {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	recipe := slices.Concat([]string{"run", smokeRecipe, "--store", dir}, disturbed, f.args)
	p := startWith(t, f.env, append(recipe, "--rank-timeout", "2s", "--ranks", strconv.Itoa(f.ranks))...)
	hit := f.strike(t, dir)
	at := time.Now()
	code, text := p.end(), p.stderr.String()
	t.Logf("%v of rank %d of %d after %v: %v; %d go on; exit code %d in %v: %s", f.signal, f.rank, f.ranks, f.after, hit,
		f.then, code, time.Since(at).Round(time.Millisecond), firstLine(text))
	if hit == nil || code == 0 {
		return false
	}
	words := []string{fmt.Sprintf("rank %d on %s (pid %d) ", f.rank, hit.Host, hit.PID)}
	if f.signal == syscall.SIGKILL {
		words = append(words, "was killed by signal 9")
	} else {
		words = append(words, "no answer for 2s")
	}
	again := recipe
	if !hit.Run.IsZero() {
		words = append(words, " in step ", "phase ", "exp resume "+hit.Run.Short()+" --ranks ")
		again = []string{"resume", hit.Run.Short(), "--store", dir}
	}
	for _, w := range words {
		if code != 10 || !strings.Contains(text, w) {
			t.Errorf("exit code %d; the message lacks %q:\n%s", code, w, text)
		}
	}
	if took := time.Since(at); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	p = startWith(t, f.env, append(again, "--ranks", strconv.Itoa(f.then))...)
	if code := p.end(); code != 0 {
		t.Fatalf("%d ranks went on to exit code %d\n%s", f.then, code, p.stderr.String())
	}
	consistent(t, dir).same(t, want)
	return true
}

// strike sends the signal and returns the card of the rank that got it; nil if it had ended.
func (f rankLoss) strike(t *testing.T, dir string) *launch.Card {
	t.Helper()
	card := func() (c launch.Card, ok bool) {
		found, _ := filepath.Glob(filepath.Join(dir, "ranks", "*", strconv.Itoa(f.rank)+".json"))
		if len(found) != 1 {
			return c, false
		}
		b, err := os.ReadFile(found[0])
		return c, err == nil && json.Unmarshal(b, &c) == nil
	}
	for range 1000 {
		if _, ok := card(); ok {
			time.Sleep(f.after)
			c, ok := card()
			if !ok || syscall.Kill(c.PID, f.signal) != nil {
				return nil
			}
			return &c
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("rank %d did not start", f.rank)
	return nil
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// What cannot run on ranks is refused before anything starts.
func TestRanksRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	smoke(t, dir, "--ranks", "9").refuses(t, 2, "smoke has 8 slices (train.slices), and every rank needs one")
	smoke(t, dir, "--ranks", "4", "--dry-run").says(t, "on each of 4 ranks")
	tensor := []string{"--set", "compute.tensor_parallel=4", "--dry-run", "--ranks"}
	smoke(t, dir, append(tensor, "2")...).refuses(t, 2, "compute.tensor_parallel")
	smoke(t, dir, append(tensor, "6")...).refuses(t, 2, "compute.tensor_parallel")
	smoke(t, dir, append(tensor, "36")...).refuses(t, 2, "smoke has 8 slices (train.slices), and every group of 4 ranks "+
		"(compute.tensor_parallel) needs one", "help: --ranks 32 is the most")
	smoke(t, dir, append(tensor, "1")...).says(t, "policy: weights")
	smoke(t, dir, "--ranks", "4", "--set", "compute.micro_batch_tokens=1000000000", "--set", "rollout.n=10000000").
		refuses(t, 7, "memory: 4 ranks here need", "on each of 4 ranks")
	smoke(t, dir, "--ranks", "0").refuses(t, 2, "it must be at least 1")
	smoke(t, dir, "--ranks", "2", "--rank-timeout", "soon").refuses(t, 2, "--rank-timeout soon: it must be a time", "90s")
	smoke(t, dir, "--set", "train.slices=6").refuses(t, 2, "train.slices (6) is not a power of two", "4 or 8")
	needsMPI(t)
	got := call{env: map[string]string{mpiVariable: "/none"}}.run("run", smokeRecipe, "--store", dir, "--ranks", "2")
	got.refuses(t, 7, "no MPI library: /none", "apt install")
	if _, err := os.Stat(filepath.Join(dir, "exp.db")); err == nil {
		t.Error("a refused run made a store")
	}
}

// Ranks measure their sums next to the library's.
func TestBenchRanks(t *testing.T) {
	exp(t, "bench", "--ranks", "1").refuses(t, 2, "--ranks 1: sums need at least 2")
	exp(t, "bench", "--ranks", "2", "--only", "train").refuses(t, 2, "leave --only and FOLDER out")
	exp(t, "bench", "--floats", "9").refuses(t, 2, "--floats needs --ranks")
	exp(t, "bench", "--ranks", "2", "--floats", "0").refuses(t, 2, "a vector of 0 floats")
	needsMPI(t)
	p := start(t, "bench", "--ranks", "3", "--floats", "300001", "--repeat", "2", "--json")
	if code := p.end(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	var got struct {
		Schema string
		Data   rankBenchmark
	}
	if err := json.Unmarshal(p.stdout.Bytes(), &got); err != nil || got.Schema != "exp.bench_ranks/1" {
		t.Fatalf("schema %q, %v\n%s", got.Schema, err, p.stdout.String())
	}
	b := got.Data
	if b.Ranks != 3 || b.Floats != 300001 || b.ReduceScatter.Min <= 0 || b.Gather.Min <= 0 || b.AllReduce.Min <= 0 ||
		b.Ratio != b.Both.Median/b.AllReduce.Median || b.Library == "" {
		t.Errorf("%+v", b)
	}
}

// A rank that fails leaves the exit code and the advice of its error to the process that launched it.
func TestRankFails(t *testing.T) {
	dir := t.TempDir()
	m := launch.Join(ranks.InProcess(1)[0], dir, time.Minute)
	defer m.Close()
	fail(m, fmt.Errorf("train: %w", &kernels.RoomError{Part: kernels.CacheRoom, Err: errors.New("out of memory")}))
	b, err := os.ReadFile(filepath.Join(dir, "0.json"))
	var c launch.Card
	if err := errors.Join(err, json.Unmarshal(b, &c)); err != nil || c.Code != 7 ||
		c.Error != "train: key/value cache of the sampler: out of memory" ||
		!strings.HasPrefix(c.Help, "make rollout.max_sequences smaller; exp run --dry-run") {
		t.Errorf("card %+v, %v", c, err)
	}
	fail(m, &kernels.DeviceError{Device: "cuda:0", Lasting: true})
	if b, err = os.ReadFile(filepath.Join(dir, "0.json")); err != nil || json.Unmarshal(b, &c) != nil || c.Code != 10 {
		t.Errorf("a lost device has code %d, %v", c.Code, err)
	}
}
