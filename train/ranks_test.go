package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"exp/kernels"
	"exp/train/checkpoint"
	"exp/train/model"
	"exp/train/optim"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// rankedToy is a toy whose parameters make several shards and whose mini-batches fill most of
// 8 slices.
func rankedToy(t *testing.T, kind Kind) *toyRun {
	r := newToyRun(t, kind, 1)
	r.model.FFN = 200
	for i := range 14 {
		r.problems = append(r.problems, rollout.Problem{ID: fmt.Sprint("q", i), Prompt: "CBADE"[:1+i%5]})
	}
	c := &r.cfg
	c.Slices, c.PromptsPerStep, c.PromptsPerUpdate, c.Samples, c.Steps, c.Epochs = 8, 18, 9, 2, 2, 2
	c.MicroBatchTokens, c.VerifyRate = 40, 1
	return r
}

// rankedResult is the part of a run that must not depend on the number of ranks.
type rankedResult struct {
	trace      string
	params     []float32
	checkpoint string // its manifest, which names the digests of its files
}

// same fails if a result differs from one rank's; format and args name its ranks.
func (got rankedResult) same(t *testing.T, want rankedResult, format string, args ...any) {
	t.Helper()
	who := fmt.Sprintf(format, args...)
	if got.trace != want.trace {
		t.Errorf("%s: %s", who, firstLineThatDiffers(got.trace, want.trace))
	}
	if at := differentBit(got.params, want.params); at >= 0 {
		t.Errorf("%s: parameters differ at %d", who, at)
	}
	if got.checkpoint != want.checkpoint {
		t.Errorf("%s: the checkpoint is\n%s\nwant\n%s", who, got.checkpoint, want.checkpoint)
	}
}

// runRanked runs the toys that build makes, one for each rank, and returns what the first
// one recorded, after checking that the others recorded and learned the same.
func runRanked(t *testing.T, size int, build func() *toyRun) rankedResult {
	t.Helper()
	return runShared(t, size, 1, build)
}

// runShared is runRanked where so many neighbours share products.
func runShared(t *testing.T, size, tensor int, build func() *toyRun) rankedResult {
	t.Helper()
	toys := make([]*toyRun, size)
	groups := ranks.InProcess(size)
	for i := range toys {
		toys[i] = build()
		toys[i].ranks, toys[i].tensor = groups[i], tensor
	}
	startAll(t, toys)
	dir := t.TempDir()
	inParallel(t, toys, func(r *toyRun) error {
		if err := r.trainer.Run(context.Background(), nil); err != nil {
			return err
		}
		if err := r.keepWhole(r.trainer); err != nil {
			return err
		}
		return save(r, dir)
	})
	first := rankedResult{trace(toys[0].steps), toys[0].whole, manifestIn(t, dir)}
	for i, r := range toys[1:] {
		if got := trace(r.steps); got != first.trace {
			t.Errorf("%d ranks: rank %d recorded otherwise than rank 0: %s", size, i+1,
				firstLineThatDiffers(got, first.trace))
		}
		if tensor > 1 {
			if n := len(r.params()); r.adapters == nil && 2*tensor*n > 3*len(first.params) {
				t.Errorf("%d ranks, %d to a product: rank %d holds %d of %d parameters", size, tensor, i+1, n,
					len(first.params))
			}
			continue
		}
		if at := differentBit(r.params(), first.params); at >= 0 {
			t.Errorf("%d ranks: parameters of ranks 0 and %d differ at %d", size, i+1, at)
		}
	}
	return first
}

// keepWhole keeps all parameters on the first rank.
func (r *toyRun) keepWhole(t interface {
	WithBuffers(f func(list []NamedBuffer) error) error
}) error {
	return t.WithBuffers(func(list []NamedBuffer) error {
		if list[0].Cut == nil {
			r.whole = r.host(list[0].Buffer)
			return nil
		}
		x, err := list[0].Cut.Read(0, list[0].Cut.Len())
		r.whole = slices.Clone(kernels.Elems[float32](x))
		return err
	})
}

// inParallel calls f for each toy in a goroutine. A rank that fails leaves its group.
func inParallel(t *testing.T, toys []*toyRun, f func(r *toyRun) error) {
	t.Helper()
	var done sync.WaitGroup
	for i, r := range toys {
		done.Go(func() {
			if err := f(r); err != nil {
				t.Errorf("rank %d: %v", i, err)
				r.ranks.(interface{ Close() }).Close()
			}
		})
	}
	done.Wait()
}

// startAll makes the trainers: ranks that share products pack their weights together.
func startAll(t *testing.T, toys []*toyRun) {
	t.Helper()
	inParallel(t, toys, func(r *toyRun) error {
		r.start()
		return nil
	})
}

// save writes a checkpoint of a toy's trainer to dir.
func save(r *toyRun, dir string) error {
	return r.trainer.WithBuffers(func(list []NamedBuffer) error {
		_, err := checkpoint.Write(r.be, dir, checkpoint.State{Step: r.trainer.step, Groups: groupsOf(list)})
		return err
	})
}

func groupsOf(list []NamedBuffer) (groups []checkpoint.Group) {
	for _, b := range list {
		name := strings.ReplaceAll(b.Name, "/", ".")
		x := checkpoint.NamedBuffer{Name: name, Data: b.Buffer}
		if b.Cut != nil {
			x.Cut = b.Cut
		}
		groups = append(groups, checkpoint.Group{Name: name, Buffers: []checkpoint.NamedBuffer{x}})
	}
	return groups
}

func manifestIn(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "step-*", "manifest.json"))
	if err != nil || len(found) != 1 {
		t.Fatalf("checkpoints %v, %v", found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// batchGrader judges all completions of a step in one call.
type batchGrader struct{ graderFunc }

func (g batchGrader) GradeAll(_ context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	var out []rollout.Verdict
	for _, i := range items {
		out = append(out, g.graderFunc(i.Problem, i.Completion))
	}
	return out, nil
}

// rankedCases are the ways of training that ranks must not change.
func rankedCases(t *testing.T) map[string]func() *toyRun {
	toy := func(kind Kind, change func(r *toyRun)) func() *toyRun {
		return func() *toyRun {
			r := rankedToy(t, kind)
			change(r)
			return r
		}
	}
	return map[string]func() *toyRun{
		"FlowRL":  toy(FlowRL, func(r *toyRun) {}),
		"PPO":     toy(PPO, func(r *toyRun) { r.cfg.KL.RewardCoef, r.cfg.EntropyCoef = 0.05, 0.01 }),
		"GRPO":    toy(GRPO, func(r *toyRun) {}),
		"teacher": toy(Distill, func(r *toyRun) { r.cfg.Advantage, r.cfg.Distill.Max = "grpo", 2 }),
		"teachers of data sources": toy(Distill, func(r *toyRun) {
			r.ofSources()
			r.cfg.Distill.TopK = 3
		}),
		"teacher's likeliest tokens": toy(Distill, func(r *toyRun) {
			r.cfg.Distill.TopK, r.cfg.Distill.Floor, r.cfg.Distill.Max = 4, -4, 0.5
		}),
		"KL-Cov": toy(GRPO, func(r *toyRun) { r.cfg.Loss = "kl_cov" }),
		"Clip-Cov": toy(GRPO, func(r *toyRun) {
			r.cfg.Loss = "clip_cov"
		}),
		"GVPO": toy(GRPO, func(r *toyRun) { r.cfg.Loss = "gvpo" }),
		"renewed reference": toy(FlowRL, func(r *toyRun) {
			r.cfg.Renewal, r.cfg.Steps, r.cfg.Staleness = Renewal{Every: 2, Mix: 0.6, ResetOptimizer: true}, 4, 1
		}),
		"SPO": toy(GRPO, func(r *toyRun) { r.tracks(3).cfg.Steps = 4 }),
		"SPO, ahead": toy(GRPO, func(r *toyRun) {
			r.tracks(0).cfg.Steps, r.cfg.Staleness = 4, 2
		}),
		"DPO": toy(GRPO, func(r *toyRun) { r.cfg.Loss = "dpo" }),
		"PRIME": toy(Prime, func(r *toyRun) {
			r.cfg.Process.PromptsPerUpdate = r.cfg.PromptsPerStep
		}),
		"PRIME after, best of n, adapters with dropout": toy(Prime, func(r *toyRun) {
			r.cfg.Settings = with(r.cfg.Settings, "prime.update", "after", "prime.loss", "bon_rm", "prime.granularity", "whole")
			r.adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: 0.2}
		}),
		"VarGrad": toy(GRPO, func(r *toyRun) {
			r.cfg.Loss, r.cfg.Settings = "gvpo", with(r.cfg.Settings, "gvpo.reference", "ref")
			r.cfg.Correction = rl.Correction{Weights: rl.TokenWeights, High: 2}
		}),
		"FlowRL, log Z from groups": toy(FlowRL, func(r *toyRun) {
			r.cfg.Settings = with(r.cfg.Settings, "flowrl.logz.from", "group")
		}),
		"bypass": toy(GRPO, func(r *toyRun) {
			r.cfg.Correction = rl.Correction{Bypass: rl.BypassPPO, Weights: rl.TokenWeights, High: 2}
		}),
		"ReMax, graded together": toy(GRPO, func(r *toyRun) { r.cfg.Advantage, r.together = "remax", true }),
		"ReMax, graded by three ranks": toy(GRPO, func(r *toyRun) {
			r.cfg.Advantage, r.together = "remax", true
			r.judging = Judging{Ranks: 3, Alike: func(it rollout.Item) string { return it.Completion.Text }}
		}),
		"turns":         toy(PPO, func(r *toyRun) { r.withTurns() }),
		"agent":         toy(PPO, func(r *toyRun) { r.bringing() }),
		"conversations": toy(FlowRL, func(r *toyRun) { r.delegates() }),
		"turns in states": toy(GRPO, func(r *toyRun) {
			r.delegates().earns()
			earning()["turns in states, ahead, less a KL"](&r.cfg)
		}),
		"images":                toy(FlowRL, func(r *toyRun) { r.illustrate() }),
		"images, tower learned": toy(FlowRL, func(r *toyRun) { r.tower() }),
		"images, tower adapted": toy(FlowRL, func(r *toyRun) { r.adaptedTower() }),
		"stale":                 toy(FlowRL, func(r *toyRun) { r.cfg.Staleness, r.cfg.Steps = 1, 3 }),
		"high entropies, ahead": toy(GRPO, func(r *toyRun) {
			r.cfg.TopEntropy, r.cfg.MaskTruncated, r.cfg.Staleness = 0.3, true, 1
		}),
		"votes, ahead": toy(GRPO, func(r *toyRun) {
			r.cfg.Self, r.cfg.Votes, r.cfg.Samples, r.cfg.Staleness = RewardMajority, VoteRewards{Right: 1, Format: 0.5}, 3, 1
		}),
		"confidence, filtered": toy(GRPO, func(r *toyRun) {
			r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.cfg.Self = 6, 3, RewardConfidence
			r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 3}
		}),
		"likelihood, ahead": toy(GRPO, func(r *toyRun) {
			r.likely(rl.LikelihoodProduct, 0.5).cfg.Staleness = 1
		}),
		"likelihood over a baseline": toy(PPO, func(r *toyRun) {
			r.likely(rl.LikelihoodMean, 0.5).cfg.Likelihood.Baseline = true
		}),
		"demonstrations, filtered": toy(GRPO, func(r *toyRun) {
			demonstrated(&r.cfg)
			r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 6, 3
			r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 3}
		}),
		"filtered": toy(GRPO, func(r *toyRun) {
			r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 6, 3
			r.cfg.Filter = Filter{By: FilterScore, MaxBatches: 3}
		}),
		"adapters with dropout, of two rates": toy(FlowRL, func(r *toyRun) {
			r.cfg.Policy.BRatio = 16
			r.adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: 0.2}
		}),
		"rewards of minus zero": toy(GRPO, func(r *toyRun) {
			grade := r.grade
			r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
				v := grade(p, c)
				if v.Reward < 0.3 {
					v.Reward = math.Copysign(0, -1)
				}
				return v
			}
		}),
		"bf16, few problems": toy(FlowRL, func(r *toyRun) {
			r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate, r.bf16 = 4, 2, true
		}),
	}
}

// TestRanks: any number of ranks records the metrics and completions, learns the parameters
// and moments, and writes the checkpoint of one rank.
func TestRanks(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(rankedCases(t))) {
		t.Run(name, func(t *testing.T) {
			build := rankedCases(t)[name] // whose models are closed with the case
			want := runRanked(t, 1, build)
			for _, size := range []int{2, 3, 4, 8} {
				got := runRanked(t, size, build)
				got.same(t, want, "%d ranks", size)
			}
		})
	}
}

// sharedToy is a toy whose layers 4 ranks can share.
func sharedToy(t *testing.T, kind Kind) *toyRun {
	r := rankedToy(t, kind)
	r.model.Width, r.model.Heads, r.model.KVHeads, r.model.Head, r.model.FFN = 128, 4, 2, 32, 256
	r.model.QKVBias, r.model.QKNorm = true, true
	r.cfg.PromptsPerStep, r.cfg.PromptsPerUpdate = 8, 4
	return r
}

// Ranks that share products, alone and with others that share the mini-batch, sample, score,
// learn and save what one rank does.
func TestTensorRanks(t *testing.T) {
	for name, toy := range map[string]func(t *testing.T) *toyRun{
		"FlowRL": func(t *testing.T) *toyRun { return sharedToy(t, FlowRL) },
		"PPO":    func(t *testing.T) *toyRun { return sharedToy(t, PPO) },
		"PRIME":  func(t *testing.T) *toyRun { return sharedToy(t, Prime) },
		"teacher": func(t *testing.T) *toyRun {
			r := sharedToy(t, Distill)
			own := r.model
			own.Layers, own.Vocab, own.QKNorm = 2, 8, false
			r.teacher = &own
			return r
		},
		"teacher's likeliest tokens": func(t *testing.T) *toyRun {
			r := sharedToy(t, Distill)
			own := r.model
			own.Layers, own.Vocab = 2, 8
			r.teacher, r.cfg.Distill.TopK = &own, 5
			return r
		},
		"bf16, renewed reference": func(t *testing.T) *toyRun {
			r := sharedToy(t, FlowRL)
			r.bf16, r.cfg.Renewal, r.cfg.Steps = true, Renewal{Every: 1, Mix: 0.5}, 3
			return r
		},
		"bf16, frozen reference": func(t *testing.T) *toyRun {
			r := sharedToy(t, GRPO)
			r.bf16, r.frozen = true, true
			return r
		},
		"untied embeddings, frozen reference, recomputed": func(t *testing.T) *toyRun {
			r := sharedToy(t, GRPO)
			r.cfg.Recompute, r.model.Layers, r.model.KVHeads = true, 2, 4
			r.model.TieEmbeddings, r.frozen = false, true
			return r
		},
		"biases, norms after blocks, another gate": func(t *testing.T) *toyRun {
			r := sharedToy(t, GRPO)
			r.model.FFNBias, r.model.OutBias, r.model.PostNorms, r.model.Gate = true, true, true, kernels.GELUTanh
			return r
		},
		"norms after blocks alone, of all heads, no positions": func(t *testing.T) *toyRun {
			r := sharedToy(t, GRPO)
			r.model.PostNorms, r.model.NoPreNorms, r.model.WideQKNorm, r.cfg.Recompute = true, true, true, true
			r.model.NoRope = slices.Repeat([]bool{true}, r.model.Layers)
			return r
		},
		"turns": func(t *testing.T) *toyRun {
			r := sharedToy(t, GRPO)
			r.withTurns()
			return r
		},
		"images, recomputed": func(t *testing.T) *toyRun {
			r := sharedToy(t, FlowRL)
			r.cfg.Recompute = true
			r.illustrate()
			return r
		},
		"images, tower learned": func(t *testing.T) *toyRun {
			r := sharedToy(t, FlowRL)
			r.cfg.Recompute = true
			r.tower()
			return r
		},
		"adapters": func(t *testing.T) *toyRun {
			r := sharedToy(t, FlowRL)
			r.cfg.Policy.BRatio = 16
			r.adapters = &model.Adapters{Rank: 32, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: 0.2}
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			build := func() *toyRun { return toy(t) }
			want := runRanked(t, 1, build)
			for _, x := range [][2]int{{2, 2}, {4, 4}, {4, 2}, {6, 2}} {
				got := runShared(t, x[0], x[1], build)
				got.same(t, want, "%d ranks, %d to a product", x[0], x[1])
			}
		})
	}
}

// A run that is stopped, saved and continued on other ranks has the bits of one rank.
func TestRanksResume(t *testing.T) {
	t.Run("2 after 3", func(t *testing.T) { resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}) })
	t.Run("2 that share products after 4 in pairs", func(t *testing.T) {
		resumeRanked(t, sharedToy, [2]int{4, 2}, [2]int{2, 2})
	})
	renews := func(r *toyRun) { r.cfg.Renewal, r.cfg.Steps = Renewal{Every: 2, Mix: 0.6, ResetOptimizer: true}, 4 }
	t.Run("2 after 3 that renewed the reference", func(t *testing.T) {
		resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}, renews)
	})
	t.Run("4 in pairs after 4 that share products and renewed the reference", func(t *testing.T) {
		resumeRanked(t, sharedToy, [2]int{4, 4}, [2]int{4, 2}, renews)
	})
	t.Run("2 after 3 that track values", func(t *testing.T) {
		resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}, func(r *toyRun) { r.tracks(2).cfg.Steps = 4 })
	})
	t.Run("2 after 3 with an agent", func(t *testing.T) {
		resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}, func(r *toyRun) { r.bringing() })
	})
	t.Run("2 after 3 with several conversations", func(t *testing.T) {
		resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}, func(r *toyRun) { r.tracks(2).delegates(); r.cfg.Steps = 4 })
	})
	t.Run("2 after 3 that track values, with an agent", func(t *testing.T) {
		resumeRanked(t, rankedToy, [2]int{3, 1}, [2]int{2, 1}, func(r *toyRun) { r.tracks(2).bringing(); r.cfg.Steps = 4 })
	})
	t.Run("4 in pairs after 4 that share products", func(t *testing.T) {
		resumeRanked(t, sharedToy, [2]int{4, 4}, [2]int{4, 2})
	})
	t.Run("2 after 8 with muon", func(t *testing.T) { // shards end within matrices
		resumeRanked(t, rankedToy, [2]int{8, 1}, [2]int{2, 1}, func(r *toyRun) { r.cfg.Policy.Kind, r.cfg.Policy.Momentum = optim.KindMuon, 0.9 })
	})
}

// resumeRanked stops a toy on ranks that may share products, and continues it on others.
func resumeRanked(t *testing.T, toy func(t *testing.T, kind Kind) *toyRun, before, after [2]int,
	change ...func(r *toyRun)) {
	t.Helper()
	build := func() *toyRun {
		r := toy(t, PPO)
		r.cfg.Steps, r.cfg.Staleness, r.cfg.KL.RewardCoef = 3, 1, 0.1
		r.cfg.KL.Control = rl.KLControl{Adaptive: true, Target: 0.01, Horizon: 100}
		for _, f := range change {
			f(r)
		}
		return r
	}
	want := runRanked(t, 1, build)
	start := func(layout [2]int) []*toyRun {
		toys, groups := make([]*toyRun, layout[0]), ranks.InProcess(layout[0])
		for i := range toys {
			toys[i] = build()
			toys[i].ranks, toys[i].tensor = groups[i], layout[1]
		}
		startAll(t, toys)
		return toys
	}
	dir := t.TempDir()
	first := start(before)
	inParallel(t, first, func(r *toyRun) error {
		stop := func() bool { return r == first[1] && len(r.steps) == 2 } // one rank is told to
		if err := r.trainer.Run(context.Background(), stop); !errors.Is(err, ErrStopped) {
			return fmt.Errorf("Run = %v, want ErrStopped", err)
		}
		return save(r, dir)
	})
	second := start(after)
	inParallel(t, second, func(r *toyRun) error {
		err := r.trainer.WithBuffers(func(list []NamedBuffer) error {
			c, _, err := checkpoint.LatestUpTo(dir, 9, func(*checkpoint.Checkpoint) error { return nil })
			if err != nil {
				return err
			}
			return c.Load(r.be, groupsOf(list))
		})
		if err != nil {
			return err
		}
		var state State
		if r == second[0] {
			state = first[0].trainer.State()
		}
		if err := r.trainer.Restore(state); err != nil {
			return err
		}
		if err := r.trainer.Run(context.Background(), nil); err != nil {
			return err
		}
		return r.keepWhole(r.trainer)
	})
	if got := trace(append(first[0].steps, second[0].steps...)); got != want.trace {
		t.Error(firstLineThatDiffers(got, want.trace))
	}
	if at := differentBit(second[0].whole, want.params); at >= 0 {
		t.Errorf("parameters differ at %d", at)
	}
}

// Fine-tuning on any number of ranks is fine-tuning on one, with masks too.
func TestRanksSFT(t *testing.T) {
	var problems []rollout.Problem
	for _, p := range []string{"A", "B", "C", "AB", "BC", "CA", "ABC", "CBA"} {
		problems = append(problems, rollout.Problem{ID: p, Prompt: p + "E", Target: p + p})
	}
	read := func(p *rollout.Problem) ([]int32, *rollout.Completion, error) {
		return masked(p.Prompt+"D"+p.Prompt, rollout.Span{Start: 1, End: 1 + len(p.Prompt)})(p)
	}
	run := func(size, shared int, example func(p *rollout.Problem) ([]int32, *rollout.Completion, error)) (string, []float32) {
		toys, groups := make([]*toyRun, size), ranks.InProcess(size)
		for i := range toys {
			r := sharedToy(t, GRPO)
			r.ranks, r.tensor, toys[i] = groups[i], shared, r
		}
		inParallel(t, toys, func(r *toyRun) error {
			be := r.device()
			m, err := model.New(be, r.model, model.Heads{LM: true}, true)
			if err != nil {
				return err
			}
			t.Cleanup(m.Close)
			m.Init(hashSeed(99))
			fit, err := NewSFT(SFTConfig{Steps: 6, ProblemsPerStep: 7, MicroBatchTokens: 12, Slices: 8, Optim: r.cfg.Policy},
				SFTParts{Backend: be, Tensor: shared, Model: m, Problems: problems, Example: example, Seed: hashSeed(2), Ranks: r.ranks,
					Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
			if err != nil {
				return err
			}
			t.Cleanup(fit.Close)
			if err := fit.Run(context.Background(), nil); err != nil {
				return err
			}
			return r.keepWhole(fit)
		})
		return trace(toys[size-1].steps), toys[0].whole
	}
	for _, example := range []func(p *rollout.Problem) ([]int32, *rollout.Completion, error){targetOf, read} {
		want, params := run(1, 1, example)
		for _, layout := range [][2]int{{2, 1}, {3, 1}, {8, 1}, {4, 4}, {4, 2}} {
			size := layout[0]
			got, x := run(size, layout[1], example)
			if got != want {
				t.Errorf("%d ranks: %s", size, firstLineThatDiffers(got, want))
			}
			if at := differentBit(x, params); at >= 0 {
				t.Errorf("%d ranks: parameters differ at %d", size, at)
			}
		}
	}
}

// A grader that fails on one rank ends the run on all ranks, and so does a lost rank.
func TestRanksFail(t *testing.T) {
	toys, groups := make([]*toyRun, 3), ranks.InProcess(3)
	for i := range toys {
		toys[i] = rankedToy(t, GRPO)
		toys[i].ranks = groups[i]
		toys[i].start().Grader = brokenOn{i == 1}
	}
	var done sync.WaitGroup
	errs := make([]error, len(toys))
	for i, r := range toys {
		done.Go(func() { errs[i] = r.trainer.Run(context.Background(), nil) })
	}
	done.Wait()
	for i, err := range errs {
		want := "rank 1: problem"
		if i == 1 {
			want = "no interpreter"
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %q", i, err, want)
		}
	}
	r := rankedToy(t, GRPO)
	r.ranks = ranks.InProcess(2)[0]
	r.start()
	r.ranks.(*ranks.Local).Close()
	var lost *ranks.Error
	if err := r.trainer.Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("Run without its other rank = %v (%v)", err, lost)
	}
}

// brokenOn is a grader that cannot work on one rank.
type brokenOn struct{ fails bool }

func (f brokenOn) Grade(context.Context, *rollout.Problem, *rollout.Completion) (rollout.Verdict, error) {
	if f.fails {
		return rollout.Verdict{}, errors.New("no interpreter")
	}
	return rollout.Verdict{Status: rollout.Graded}, nil
}
