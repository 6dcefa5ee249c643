package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/tensor"
)

// share returns the backend, or this rank's share among so many neighbours in g.
func (r *toyRun) share(g ranks.Group, neighbours int) kernels.Backend {
	if neighbours <= 1 {
		return r.be
	}
	_, products := ranks.Grid(g, neighbours)
	b := tensor.New(r.be, products)
	r.t.Cleanup(b.Close)
	return b
}

// devices returns the shares for training and for sampling; only: this rank only samples.
func (r *toyRun) devices() (be, sampling kernels.Backend, only bool) {
	neighbours := cmp.Or(r.rollout, r.tensor)
	if r.samplers == 0 {
		be = r.device()
		if neighbours == r.tensor {
			return be, be, false
		}
		return be, r.share(r.ranks, neighbours), false
	}
	size := r.ranks.Size()
	if learning := size - r.samplers; r.ranks.Rank() < learning {
		be = r.share(ranks.Between(r.ranks, 0, learning), r.tensor)
	} else {
		be, only = r.share(ranks.Between(r.ranks, learning, size), neighbours), true
	}
	return be, be, only
}

// copied returns a model of the policy's weights for sampling.
func (r *toyRun) copied(be kernels.Backend, p *Parts) *model.Model {
	var err error
	if p.Copy, err = model.NewCopy(be, r.model); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(p.Copy.Close)
	m, err := model.NewOn(p.Copy, model.Heads{LM: true}, false)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(m.Close)
	return m
}

// The bits are one rank's if more or fewer ranks share products in sampling than in training.
func TestRolloutTensor(t *testing.T) {
	adapted := func(r *toyRun) {
		r.adapters = &model.Adapters{Rank: 32, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: 0.2}
	}
	for _, tt := range []struct {
		name    string
		kind    Kind
		change  func(r *toyRun)
		layouts [][3]int // ranks, those that share products of training, and of sampling
	}{
		{"FlowRL", FlowRL, func(*toyRun) {}, [][3]int{{2, 1, 2}, {2, 2, 1}, {4, 2, 4}, {4, 4, 2}, {4, 2, 1}}},
		{"PPO", PPO, func(*toyRun) {}, [][3]int{{4, 2, 4}}},
		{"PPO of images, tower learned", PPO, func(r *toyRun) { r.tower() }, [][3]int{{4, 2, 4}}},
		{"bf16, untied embeddings", GRPO, func(r *toyRun) { r.bf16, r.model.TieEmbeddings = true, false }, [][3]int{{4, 2, 1}}},
		{"adapters", FlowRL, adapted, [][3]int{{2, 2, 1}, {2, 1, 2}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			build := func() *toyRun {
				r := sharedToy(t, tt.kind)
				tt.change(r)
				return r
			}
			want := runRanked(t, 1, build)
			for _, x := range tt.layouts {
				got := runShared(t, x[0], x[1], func() *toyRun {
					r := build()
					r.rollout = x[2]
					return r
				})
				got.same(t, want, "%d ranks, %d to a product and %d in sampling", x[0], x[1], x[2])
			}
		})
	}
}

// Ranks that only sample may share products, and so may those that learn.
func TestSamplersShareProducts(t *testing.T) {
	ahead := func(kind Kind, change func(r *toyRun)) func() *toyRun {
		return func() *toyRun {
			r := sharedToy(t, kind)
			r.cfg.Staleness, r.cfg.Steps = 1, 3
			change(r)
			return r
		}
	}
	for _, tt := range []struct {
		name    string
		build   func() *toyRun
		layouts [][4]int // ranks, those that only sample, and those that share products of training and of sampling
	}{
		{"FlowRL", ahead(FlowRL, func(*toyRun) {}), [][4]int{{4, 2, 1, 2}, {4, 2, 2, 1}, {6, 2, 4, 2}}},
		{"filtered by the reward less KL", ahead(GRPO, func(r *toyRun) {
			r.cfg.Filter, r.cfg.KL.RewardCoef = Filter{By: FilterFinal, MaxBatches: 2}, 0.1
		}), [][4]int{{3, 1, 2, 1}}},
		{"adapters", ahead(FlowRL, func(r *toyRun) {
			r.adapters = &model.Adapters{Rank: 32, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: 0.2}
		}), [][4]int{{3, 2, 1, 2}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := runRanked(t, 1, tt.build)
			for _, x := range tt.layouts {
				toys, dir := startApart(t, x[0], x[1], func() *toyRun {
					r := tt.build()
					r.tensor, r.rollout = x[2], x[3]
					return r
				}), t.TempDir()
				inParallel(t, toys, func(r *toyRun) error {
					if err := r.trainer.Run(context.Background(), nil); err != nil {
						return err
					}
					if err := r.keepWhole(r.trainer); err != nil {
						return err
					}
					return save(r, dir)
				})
				got := rankedResult{trace(toys[0].steps), toys[0].whole, manifestIn(t, dir)}
				got.same(t, want, "%d ranks, %d of them sample, %d and %d to a product", x[0], x[1], x[2], x[3])
			}
		})
	}
}

// Each rank gets the parts that it lacks, by turns from those that hold them.
func TestTurns(t *testing.T) {
	whole := []model.Span{{Lo: 0, Hi: 40, Whole: true}}
	three := []offer{{Holds: whole}, {Holds: whole}, {Needs: [][2]int{{0, 10}, {10, 20}, {20, 40}}}}
	var from []int
	for _, turn := range turnsOf(2, three) {
		for _, x := range turn.take {
			from = append(from, x.peer)
		}
	}
	if want := []int{0, 1, 0}; !reflect.DeepEqual(from, want) {
		t.Errorf("rank 2 gets its weights from %v, want %v", from, want)
	}
	halves := []offer{
		{Holds: []model.Span{{Lo: 0, Hi: 10}, {Lo: 20, Hi: 24, At: 10, Whole: true}}, Needs: [][2]int{{5, 15}, {20, 24}}},
		{Holds: []model.Span{{Lo: 10, Hi: 20}, {Lo: 20, Hi: 24, At: 10, Whole: true}}, Needs: [][2]int{{15, 20}}},
	}
	want := []turn{
		{take: []transfer{{0, 5, 0, 5}, {1, 0, 5, 5}}},
		{take: []transfer{{0, 10, 0, 4}}},
	}
	if got := turnsOf(0, halves); !reflect.DeepEqual(got, want) {
		t.Errorf("rank 0: %v, want %v", got, want)
	}
	want = []turn{{send: []transfer{{0, 0, 5, 5}}, take: []transfer{{1, 5, 0, 5}}}, {}}
	if got := turnsOf(1, halves); !reflect.DeepEqual(got, want) {
		t.Errorf("rank 1: %v, want %v", got, want)
	}
}

// counted is a group that counts its exchanges.
type counted struct {
	*ranks.Local
	exchanges int
}

func (g *counted) Exchange(parts []ranks.Part) error {
	g.exchanges++
	return g.Local.Exchange(parts)
}

// The weights are copied once for each update, and again after a state is restored.
func TestWeightsAreCopiedOnce(t *testing.T) {
	toys := make([]*toyRun, 2)
	for i, g := range ranks.InProcess(2) {
		toys[i] = sharedToy(t, GRPO)
		toys[i].cfg.Steps = 1
		toys[i].ranks, toys[i].tensor, toys[i].rollout = &counted{Local: g}, 2, 1
	}
	startAll(t, toys)
	inParallel(t, toys, func(r *toyRun) error {
		prepare := func(when string, copies bool) error {
			g := r.ranks.(*counted)
			before := g.exchanges
			if err := r.trainer.PrepareSampler(); err != nil {
				return err
			}
			if (g.exchanges > before) != copies {
				return fmt.Errorf("%s: %d exchanges, want copies %v", when, g.exchanges-before, copies)
			}
			return nil
		}
		if err := errors.Join(prepare("first", true), prepare("again", false)); err != nil {
			return err
		}
		if err := r.trainer.Run(t.Context(), nil); err != nil {
			return err
		}
		if err := errors.Join(prepare("after a step", true), prepare("after a validation", false)); err != nil {
			return err
		}
		if err := r.trainer.Restore(r.trainer.State()); err != nil {
			return err
		}
		return prepare("after it is restored", true)
	})
}

// A step with recorded rollouts copies the weights only for what it draws in addition.
func TestRecordedCopies(t *testing.T) {
	for _, tt := range []struct {
		advantage string
		copies    bool
	}{{"grpo", false}, {"remax", true}} {
		build := func() *toyRun {
			r := sharedToy(t, GRPO)
			r.cfg.Steps, r.cfg.Advantage = 2, tt.advantage
			return r
		}
		own := build()
		own.run()
		again := func() *toyRun {
			r := build()
			r.recorded, r.rollout = recordingOf(own.steps, true), 1
			return r
		}
		want := runRanked(t, 1, again)
		toys := make([]*toyRun, 2)
		for i, g := range ranks.InProcess(2) {
			toys[i] = again()
			toys[i].ranks, toys[i].tensor = g, 2
		}
		startAll(t, toys)
		inParallel(t, toys, func(r *toyRun) error { return r.trainer.Run(t.Context(), nil) })
		if got := trace(toys[0].steps); got != want.trace {
			t.Errorf("%s: %s", tt.advantage, firstLineThatDiffers(got, want.trace))
		}
		if copied := toys[0].trainer.copier != nil; copied != tt.copies {
			t.Errorf("%s: copies weights: %v, want %v", tt.advantage, copied, tt.copies)
		}
	}
}
