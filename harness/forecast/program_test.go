package forecast

import (
	"runtime"
	"testing"

	"exp/eval/task"
	"exp/harness/dataset"
)

// Generated problems take as much of the heap as planned, without the garbage, whose half of the plan stands for them
// once more.
func TestProblemBytes(t *testing.T) {
	for _, file := range []string{"smoke_cpu.yaml", "words_cpu_flowrl.yaml", "code_cpu_grpo.yaml"} {
		c := &recipe(t, file).Run
		made, err := task.New(dataset.TaskConfig(c))
		if err != nil {
			t.Fatal(err)
		}
		live := func() (m runtime.MemStats) {
			runtime.GC()
			runtime.GC() // what the first one has finalized
			runtime.ReadMemStats(&m)
			return m
		}
		const n = 1000
		before := live()
		list, err := made.Generate(task.Train, n, 7)
		if err != nil {
			t.Fatal(err)
		}
		took := float64(live().HeapAlloc-before.HeapAlloc) / n
		runtime.KeepAlive(list)
		if plan := float64(problemBytes(c, 1000)); took < 0.7*plan/2 || took > 1.15*plan/2 {
			t.Errorf("%s: a problem takes %.0f bytes, planned %.0f", file, took, plan/2)
		}
	}
	// Several tasks make problems of many lengths, so none is longer than sequences.
	mixed := &recipe(t, "smoke_cpu.yaml").Run
	mixed.Task.Kind = "mixed"
	if got := problemBytes(mixed, 1000); got != 6128 {
		t.Errorf("of several tasks: %d bytes", got)
	}
}

// Completions that a filter drops are recorded like others, and take as much.
func TestProgramOfFiltered(t *testing.T) {
	program := func(sets ...string) int64 {
		e, err := Of(smoke(t, append(sets, "rollout={n: 4000, max_new_tokens: 6}")...), 1).Estimate()
		if err != nil {
			t.Fatal(err)
		}
		return e.Program
	}
	const step = 8 * 4000 * (1200 + 24*6)
	plain := program("algo.kind=grpo")
	if got := program("algo={kind: grpo, filter_groups: {metric: score, max_batches: 3}}"); got != plain+2*2*step {
		t.Errorf("%d bytes with a filter, %d without", got, plain)
	}
}
