package train

import (
	"context"
	"slices"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
)

// adaptedModel makes a model whose adapters, with a share of dropout, all pass something on.
func adaptedModel(t *testing.T, r *toyRun, h model.Heads, dropout float64) *model.Model {
	t.Helper()
	h.Adapters = &model.Adapters{Rank: 3, Alpha: 6, Targets: r.model.AdapterTargets(), Dropout: dropout}
	m, err := model.NewOn(r.backbone(r.be), h, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(hashSeed(98))
	params := r.host(m.Params())
	for i := range params {
		params[i] += 0.05 * float32(i%7-3)
	}
	r.be.Copy(m.Params(), kernels.Host(params))
	r.be.Sync()
	m.Refresh()
	return m
}

// Adapters with dropout learn with the same bits for any micro-batch and number of threads, from any step on, and other
// bits than without it. The references they are compared with have no dropout.
func TestDropoutOnAdapters(t *testing.T) {
	type learns interface {
		Run(ctx context.Context, stop func() bool) error
		WithBuffers(f func(list []NamedBuffer) error) error
		Close()
	}
	type start func(r *toyRun, m *model.Model, budget int, keep func(s *Step) error) (learns, error)
	record := func(keep func(s *Step) error) Recorder { return recorderFunc(keep) }
	for name, x := range map[string]struct {
		heads model.Heads
		start start
	}{
		"pairs": {model.Heads{LM: true}, func(r *toyRun, m *model.Model, budget int, keep func(s *Step) error) (learns, error) {
			c := preferConfig()
			c.Steps, c.MicroBatchTokens = 4, budget
			return NewPrefer(c, PreferParts{Backend: r.be, Model: m, Pairs: letterPairs(), Seed: hashSeed(2), Recorder: record(keep)})
		}},
		"answers": {model.Heads{LM: true}, func(r *toyRun, m *model.Model, budget int, keep func(s *Step) error) (learns, error) {
			c := unpairedConfig()
			c.Steps, c.MicroBatchTokens = 4, budget
			return NewUnpaired(c, UnpairedParts{Backend: r.be, Model: m, Answers: letterAnswers(), Seed: hashSeed(2), Recorder: record(keep)})
		}},
		"rewards": {model.Heads{Score: true}, func(r *toyRun, m *model.Model, budget int, keep func(s *Step) error) (learns, error) {
			c := RewardModelConfig{Steps: 4, PairsPerStep: 3, MicroBatchTokens: budget, Slices: 2, Optim: toyConfig(GRPO).Policy}
			return NewRewardModel(c, RewardModelParts{Backend: r.be, Model: m, Pairs: ratedPairs(), Seed: hashSeed(2), Recorder: record(keep)})
		}},
	} {
		run := func(dropout float64, budget, threads int) (steps []*Step, params []float32) {
			r := newToyRun(t, GRPO, threads)
			m := adaptedModel(t, r, x.heads, dropout)
			f, err := x.start(r, m, budget, func(s *Step) error { steps = append(steps, s); return nil })
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer f.Close()
			if err := f.Run(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			return steps, r.host(m.Params())
		}
		want, params := run(0.3, 1000, 1)
		got, others := run(0.3, 9, 3)
		if a, b := trace(got), trace(want); a != b || !slices.Equal(others, params) {
			t.Errorf("%s, other micro-batches: %s", name, firstLineThatDiffers(a, b))
		}
		plain, others := run(0, 1000, 1)
		loss := map[string]string{"rewards": "rm/loss"}[name]
		if loss == "" {
			loss = "prefer/loss"
		}
		if metric(t, want[0], loss) == metric(t, plain[0], loss) || slices.Equal(others, params) {
			t.Errorf("%s: dropout changes nothing", name)
		}
		if name == "rewards" {
			continue
		}
		if a, b := metric(t, plain[0], "prefer/margin"), metric(t, want[0], "prefer/margin"); a != 0 || b == 0 {
			t.Errorf("%s: margins %g without and %g with dropout, against a reference without it", name, a, b)
		}
		for _, s := range want { // the estimate of KTO has no dropout: at the start it is 0
			if s.Step == 1 && name == "answers" && metric(t, s, "prefer/kl") != 0 {
				t.Errorf("KL divergence %g at the start", metric(t, s, "prefer/kl"))
			}
		}
	}
}

// Each side of a pair, and each step, has masks of its own.
func TestDropoutSeeds(t *testing.T) {
	labels := map[string]int{}
	r := newToyRun(t, GRPO, 1)
	m := adaptedModel(t, r, model.Heads{LM: true}, 0.3)
	c := preferConfig()
	c.Steps, c.PairsPerStep, c.Slices, c.Loss = 2, 3, 1, rl.PairConfig{Beta: 0.5, Loss: rl.Hinge}
	f, err := NewPrefer(c, PreferParts{Backend: r.be, Model: m, Pairs: letterPairs()[:3], Recorder: recorderFunc(func(*Step) error { return nil }),
		Seed: func(label string) uint64 { labels[label]++; return hashSeed(2)(label) }})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"dropout/step=1/problem=AE/sample=0", "dropout/step=1/problem=AE/sample=1", "dropout/step=2/problem=BE/sample=0"} {
		if labels[want] != 1 {
			t.Errorf("%s: asked %d times of %v", want, labels[want], labels)
		}
	}
	delete(labels, "data/epoch=0")
	delete(labels, "data/epoch=1")
	if len(labels) != 2*3*2 {
		t.Errorf("%d labels: %v", len(labels), labels)
	}
}
