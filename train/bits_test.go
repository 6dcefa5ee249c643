package train

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"exp/kernels"
	"exp/kernels/cpu"
)

// onLevel puts the run on a backend of another level.
func (r *toyRun) onLevel(l cpu.Level, threads int) {
	r.t.Helper()
	be, err := cpu.Open(cpu.Options{Level: &l, Threads: threads, Operand: r.operand})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(be.Close)
	r.be = be
}

// anyToy draws an architecture, completions longer than the toy's, and how a step is
// cut into updates: 20 in five steps.
func anyToy(t *testing.T, kind Kind, r *rand.Rand) *toyRun {
	run := newToyRun(t, kind, 1)
	m := &run.model
	m.Layers, m.Width, m.FFN, m.Head = 1+r.IntN(2), 8+r.IntN(40), 1+r.IntN(60), 2*(1+r.IntN(8))
	m.QKVBias, m.QKNorm, m.TieEmbeddings = r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	c := &run.cfg
	c.Steps, c.PromptsPerStep, c.PromptsPerUpdate, c.Epochs = 5, 4, 2, 2
	c.Sampling.MaxNewTokens, c.Samples = 4+r.IntN(16), 2+r.IntN(6)
	c.EntropyCoef, c.KL.RewardCoef = 0.01, 0.05
	c.LogZ.Layers, c.LogZ.PoolAll, c.LogZ.Detach = 1+r.IntN(3), r.IntN(2) == 0, r.IntN(2) == 0
	return run
}

// resize draws all that must not show in a result.
func (r *toyRun) resize(rnd *rand.Rand, threads int) string {
	l := cpu.Level(rnd.IntN(int(cpu.BestLevel()) + 1))
	r.onLevel(l, threads)
	r.cfg.MicroBatchTokens, r.cfg.Recompute = 1+rnd.IntN(400), rnd.IntN(2) == 0
	o := &r.options
	o.MaxSequences, o.PageTokens, o.StepRows = 1+rnd.IntN(40), 16*(1+rnd.IntN(3)), rnd.IntN(80)
	return fmt.Sprintf("level=%s threads=%d micro_batch=%d recompute=%v %+v", l, threads, r.cfg.MicroBatchTokens, r.cfg.Recompute, *o)
}

// TestTwentyUpdates: after 20 optimizer steps of FlowRL with its log Z head, of PPO
// with its critic and of GRPO, over random architectures, every parameter and moment
// and everything recorded on the way have the same bits at any level, number of
// threads, micro-batch budget and size of the sampler, with and without
// recomputation.
func TestTwentyUpdates(t *testing.T) {
	for i, kind := range []Kind{FlowRL, PPO, GRPO} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", kind, seed), func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				want := anyToy(t, kind, r)
				want.operand = []kernels.DType{kernels.F32, kernels.BF16}[seed]
				want.onLevel(cpu.BestLevel(), 1)
				want.run()
				if got := want.trainer.State(); got.PolicyUpdates != 20 || kind == PPO && got.CriticUpdates != 20 {
					t.Fatalf("%+v, want 20 updates", got)
				}
				for _, threads := range []int{1, 2, 3, 8} {
					got := newToyRun(t, kind, 1)
					got.model, got.cfg, got.operand = want.model, want.cfg, want.operand
					sizes := got.resize(r, threads)
					got.run()
					if a, b := trace(got.steps), trace(want.steps); a != b {
						t.Errorf("%s, %+v: %s", sizes, got.model, firstLineThatDiffers(a, b))
					}
					for k, b := range want.trainer.Buffers() {
						if at := differentBit(got.host(got.trainer.Buffers()[k].Buffer), want.host(b.Buffer)); at >= 0 {
							t.Errorf("%s, %+v: %s differ at %d", sizes, got.model, b.Name, at)
						}
					}
				}
			})
		}
	}
}

func (r *toyRun) host(b kernels.Buffer) []float32 {
	x := make([]float32, b.Len())
	r.be.Copy(kernels.Host(x), b)
	r.be.Sync()
	return x
}

// differentBit returns where a and b first differ in a bit, or -1; a NaN is a
// difference.
func differentBit(a, b []float32) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || math.Float32bits(a[i]) != math.Float32bits(b[i]) || a[i] != a[i] {
			return i
		}
	}
	return -1
}

// The first of 16 completions of a problem equals the only one with n = 1: problem and
// sample name its stream, not their number.
func TestFirstOfMany(t *testing.T) {
	draw := func(n int) []Trajectory {
		r := newToyRun(t, GRPO, 2)
		r.cfg.Samples = n
		out, err := r.start().sample(context.Background(), 1, []int{3, 7, 5}, func(int) int { return n })
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one, many := draw(1), draw(16)
	for i := range one {
		a, b := one[i], many[16*i]
		if x, y := trace([]*Step{{Trajectories: []Trajectory{a}}}), trace([]*Step{{Trajectories: []Trajectory{b}}}); x != y {
			t.Errorf("problem %s: n = 1 draws\n%sthe first of 16 is\n%s", a.Problem.ID, x, y)
		}
	}
}
