package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/ranks"
	"exp/train/rl"
	"exp/train/rollout"
)

// letterPair is a pair of letters; an inserted part of chosen begins and ends at the marks.
func letterPair(prompt, chosen, rejected string, inserted ...rollout.Span) PreferredPair {
	encode := func(text string) []int32 {
		ids, err := letters{}.encode(text)
		if err != nil {
			panic(err)
		}
		return ids
	}
	return PreferredPair{ID: prompt, Prompt: encode(prompt), Chosen: &rollout.Completion{Tokens: encode(chosen), Inserted: inserted},
		Rejected: &rollout.Completion{Tokens: encode(rejected)}}
}

// letterPairs prefer the prompt twice to it reversed with an A; two have the same prompt.
func letterPairs() (list []PreferredPair) {
	for _, p := range []string{"A", "B", "C", "AB", "BC", "CA", "ABC", "CBA", "ABC"} {
		rev := []byte(p)
		slices.Reverse(rev)
		list = append(list, letterPair(p+"E", p+p, string(rev)+"A"))
	}
	return list
}

func preferConfig() PreferConfig {
	return PreferConfig{Steps: 40, PairsPerStep: 4, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy, Reference: true,
		Loss: rl.PairConfig{Beta: 0.5, Loss: rl.Sigmoid}}
}

type preferred struct {
	steps  []*Step
	params []float32
}

func preferRun(t *testing.T, c PreferConfig, threads int, pairs []PreferredPair, stop func() bool) (preferred, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(hashSeed(99))
	f, err := NewPrefer(c, PreferParts{Backend: r.be, Model: m, Pairs: pairs, Seed: hashSeed(2),
		Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
	if err != nil {
		return preferred{}, err
	}
	defer f.Close()
	err = f.Run(context.Background(), stop)
	x := make([]float32, m.Params().Len())
	r.be.Copy(kernels.Host(x), m.Params())
	r.be.Sync()
	return preferred{r.steps, x}, err
}

// The first margins are 0, since the model is its reference. Learning tells the answers apart, to nearly no loss, with
// the same bits for any micro-batch and number of threads.
func TestPreferLearnsAndIsExact(t *testing.T) {
	c := preferConfig()
	want, err := preferRun(t, c, 1, letterPairs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, last := want.steps[0], want.steps[len(want.steps)-1]
	for _, name := range []string{"prefer/margin", "prefer/reward_chosen", "prefer/reward_rejected", "prefer/accuracy"} {
		if got := metric(t, first, name); got != 0 {
			t.Errorf("%s is %g at the start", name, got)
		}
	}
	if got := metric(t, first, "prefer/loss"); math.Abs(got-math.Ln2) > 1e-12 {
		t.Errorf("the first loss is %g, want ln 2", got)
	}
	if loss, right := metric(t, last, "prefer/loss"), metric(t, last, "prefer/accuracy"); !(loss < 0.1 && right == 1) {
		t.Errorf("the last loss is %.3f, the accuracy %.2f", loss, right)
	}
	if m := metric(t, last, "prefer/margin"); m != metric(t, last, "prefer/reward_chosen")-metric(t, last, "prefer/reward_rejected") && !(m > 1) {
		t.Errorf("margin %g", m)
	}
	c.MicroBatchTokens, c.Recompute = 9, true
	got, err := preferRun(t, c, 3, letterPairs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := trace(got.steps), trace(want.steps); a != b {
		t.Error(firstLineThatDiffers(a, b))
	}
	if !slices.Equal(got.params, want.params) {
		t.Error("parameters differ")
	}
}

// All losses learn, with and without a reference and the imitation of chosen answers.
func TestPreferLosses(t *testing.T) {
	for _, tt := range []struct {
		name      string
		loss      rl.PairConfig
		reference bool
	}{
		{"smoothed", rl.PairConfig{Beta: 0.5, Loss: rl.Sigmoid, Smoothing: 0.1}, true},
		{"IPO", rl.PairConfig{Beta: 0.5, Loss: rl.IPO, PerToken: true}, true},
		{"hinge", rl.PairConfig{Beta: 0.5, Loss: rl.Hinge}, true},
		{"SimPO", rl.PairConfig{Beta: 2, Loss: rl.Sigmoid, PerToken: true, Target: 0.5}, false},
		{"RPO", rl.PairConfig{Beta: 0.5, Loss: rl.Sigmoid, Imitate: 1}, true},
		{"robust", rl.PairConfig{Beta: 0.5, Loss: rl.Robust, Smoothing: 0.1}, true},
		{"EXO", rl.PairConfig{Beta: 0.5, Loss: rl.EXO, Smoothing: 0.001}, true},
		{"SPPO", rl.PairConfig{Beta: 0.2, Loss: rl.SPPOHard}, true},
		{"APO zero", rl.PairConfig{Beta: 0.5, Loss: rl.APOZeroPair}, true},
		{"ORPO", rl.PairConfig{Beta: 0.5, Loss: rl.OddsRatio, PerToken: true, Imitate: 1}, false},
	} {
		c := preferConfig()
		c.Loss, c.Reference = tt.loss, tt.reference
		got, err := preferRun(t, c, 2, letterPairs(), nil)
		if err != nil {
			t.Fatal(err)
		}
		first, last := got.steps[0], got.steps[len(got.steps)-1]
		if a, b := metric(t, first, "prefer/loss"), metric(t, last, "prefer/loss"); !(b < 0.6*a) || metric(t, last, "prefer/accuracy") != 1 {
			t.Errorf("%s: loss %.3f to %.3f, accuracy %.2f", tt.name, a, b, metric(t, last, "prefer/accuracy"))
		}
		nll := -1.0
		for _, m := range last.Metrics {
			if m.Name == "prefer/nll" {
				nll = m.Value
			}
		}
		if tt.loss.Loss == rl.OddsRatio { // the parts of the loss, and odds that grow
			if a, b := metric(t, last, "prefer/loss"), nll+0.5*metric(t, last, "prefer/odds_loss"); math.Abs(a-b) > 1e-12 {
				t.Errorf("loss %g, its parts %g", a, b)
			}
			if a, b := metric(t, first, "prefer/log_odds"), metric(t, last, "prefer/log_odds"); !(math.Abs(a) < 1 && b > 2) {
				t.Errorf("log odds %g to %g", a, b)
			}
		}
		if imitates := tt.loss.Imitate > 0; imitates != (nll >= 0) || nll > 0.6 {
			t.Errorf("%s: negative log-prob %g", tt.name, nll)
		}
		// Log-probs are sums; with no reference the reward is Beta times their mean per token.
		if tt.reference {
			continue
		}
		if r, lp := metric(t, first, "prefer/reward_chosen"), metric(t, first, "prefer/log_prob_chosen"); !(r < 0 && lp < r/tt.loss.Beta) {
			t.Errorf("%s: reward %g of log-prob %g", tt.name, r, lp)
		}
	}
}

// stepLoss returns the loss of the only step, of a model whose parameter at is moved by d, and the gradient there.
func stepLoss(t *testing.T, c PreferConfig, pairs []PreferredPair, move []float32) (loss float64, grads, params []float32) {
	t.Helper()
	r := newToyRun(t, GRPO, 1)
	m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(hashSeed(99))
	f, err := NewPrefer(c, PreferParts{Backend: r.be, Model: m, Pairs: pairs, Seed: hashSeed(2)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	params, grads = make([]float32, m.Params().Len()), make([]float32, m.Params().Len())
	r.be.Copy(kernels.Host(params), m.Params())
	r.be.Sync()
	if move != nil { // after the reference is made
		for i, d := range move {
			params[i] += d
		}
		r.be.Copy(m.Params(), kernels.Host(params))
		r.be.Sync()
		m.Refresh()
	}
	chosen, _ := f.order.step(1)
	b := f.batch(chosen)
	x := f.preferences(b, chosen)
	f.answer(1, &x.answered, x.slopes)
	r.be.Copy(kernels.Host(grads), m.Grads())
	r.be.Sync()
	for _, v := range x.metrics() {
		if v.Name == "prefer/loss" {
			loss = v.Value
		}
	}
	return loss, grads, params
}

// The gradient is the derivative of the loss along a direction, also away from the reference, with inserted parts.
func TestPreferGradient(t *testing.T) {
	pairs := []PreferredPair{letterPair("AE", "ABCA", "BBCC", rollout.Span{Start: 1, End: 3}), letterPair("BE", "C", "BA"), letterPair("CE", "AB", "A")}
	for name, loss := range map[string]rl.PairConfig{
		"sigmoid": {Beta: 0.7, Loss: rl.Sigmoid, Smoothing: 0.1},
		"IPO":     {Beta: 0.7, Loss: rl.IPO, PerToken: true},
		"hinge":   {Beta: 0.2, Loss: rl.Hinge, Imitate: 0.5},
		"NCA":     {Beta: 0.7, Loss: rl.NCA},
		"BCO":     {Beta: 0.7, Loss: rl.BCO},
		"APO":     {Beta: 0.7, Loss: rl.APODown},
		"ORPO":    {Beta: 0.7, Loss: rl.OddsRatio, PerToken: true, Imitate: 1},
	} {
		c := preferConfig()
		c.Reference = loss.Loss != rl.OddsRatio
		c.Steps, c.PairsPerStep, c.Loss = 1, 3, loss
		_, _, params := stepLoss(t, c, pairs, nil)
		start, direction := make([]float32, len(params)), make([]float32, len(params))
		for i := range params {
			start[i] = float32(0.02 * math.Sin(float64(3*i+1)))
			direction[i] = float32(math.Cos(float64(i * i % 1009)))
		}
		_, grads, _ := stepLoss(t, c, pairs, start)
		const h = 2e-3
		at := func(h float32) float64 {
			moved := slices.Clone(start)
			for i := range moved {
				moved[i] += h * direction[i]
			}
			loss, _, _ := stepLoss(t, c, pairs, moved)
			return loss
		}
		var got float64
		for i, g := range grads {
			got += float64(g) * float64(direction[i])
		}
		want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
		if math.Abs(got-want) > 2e-3*math.Abs(want) || want == 0 {
			t.Errorf("%s: derivative %g, differences say %g", name, got, want)
		}
	}
}

func TestPreferErrors(t *testing.T) {
	c := preferConfig()
	c.PairsPerStep = 1
	for want, p := range map[string]PreferredPair{
		"empty prompt":     letterPair("", "A", "B"),
		"positions":        letterPair("A", "A", strings.Repeat("B", 40)),
		"nothing to learn": letterPair("A", "AB", "B", rollout.Span{Start: 0, End: 2}),
	} {
		if _, err := preferRun(t, c, 1, []PreferredPair{p}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	c.PairsPerStep = 2
	if _, err := preferRun(t, c, 1, []PreferredPair{letterPair("A", "A", "B")}, nil); err == nil || !strings.Contains(err.Error(), "only 1 pairs") {
		t.Errorf("too few pairs: %v", err)
	}
	n := 0
	got, err := preferRun(t, preferConfig(), 1, letterPairs(), func() bool { n++; return n == 3 })
	if !errors.Is(err, ErrStopped) || len(got.steps) != 2 {
		t.Errorf("stopped after %d steps with %v, want 2 and ErrStopped", len(got.steps), err)
	}
}

// Ranks that share pairs and products learn with one process's bits.
func TestPreferOnRanks(t *testing.T) {
	run := func(size, shared int) (string, []float32) {
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
			c := preferConfig()
			c.Steps, c.PairsPerStep, c.MicroBatchTokens, c.Slices, c.Loss.Imitate = 5, 7, 12, 8, 0.1
			f, err := NewPrefer(c, PreferParts{Backend: be, Tensor: shared, Model: m, Pairs: letterPairs(), Seed: hashSeed(2), Ranks: r.ranks,
				Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
			if err != nil {
				return err
			}
			t.Cleanup(f.Close)
			if err := f.Run(context.Background(), nil); err != nil {
				return err
			}
			return r.keepWhole(f)
		})
		return trace(toys[size-1].steps), toys[0].whole
	}
	want, params := run(1, 1)
	for _, layout := range [][2]int{{2, 1}, {3, 1}, {8, 1}, {4, 4}, {4, 2}} {
		got, x := run(layout[0], layout[1])
		if got != want {
			t.Errorf("%d ranks: %s", layout[0], firstLineThatDiffers(got, want))
		}
		if at := differentBit(x, params); at >= 0 {
			t.Errorf("%d ranks: parameters differ at %d", layout[0], at)
		}
	}
}

// A pair is never cut, and never shares a bundle, whatever the limit and the prompts of its neighbours.
func TestPairsStayTogether(t *testing.T) {
	p := &Prefer{pairs: []PreferredPair{letterPair("AE", "ABCA", "BB"), letterPair("AE", "C", "BA"), letterPair("AE", "AB", "A")}}
	for _, limit := range []int{1, 9, 1024} {
		b := p.batch([]int{0, 1, 2})
		if got := b.bundles(0, 6, limit); !slices.Equal(got, []bundle{{2, 8, 2}, {4, 5, 2}, {6, 6, 2}}) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
}
