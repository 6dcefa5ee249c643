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
)

// lettersOf returns the tokens of letters.
func lettersOf(text string) []int32 {
	ids, err := letters{}.encode(text)
	if err != nil {
		panic(err)
	}
	return ids
}

func ratedLetters(prompt, chosen, rejected string) RatedPair {
	return RatedPair{ID: prompt + chosen, Prompt: lettersOf(prompt), Chosen: lettersOf(chosen), Rejected: lettersOf(rejected)}
}

// ratedPairs prefer answers that end as the prompt begins; in one pair an answer is nothing more than the prompt.
func ratedPairs() (list []RatedPair) {
	for _, p := range []string{"A", "B", "C", "AB", "BC", "CA", "ABC", "CBA"} {
		first, other := p[:1], string("BCA"[p[0]-'A'])
		list = append(list, ratedLetters(p+"E", "D"+first, other))
	}
	x := ratedLetters("ABE", "A", "")
	x.Margin = 0.5
	return append(list, x)
}

func rewardModelConfig() RewardModelConfig {
	return RewardModelConfig{Steps: 40, PairsPerStep: 4, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy,
		Loss: rl.RewardPairConfig{Center: 0.01}, ValidateEvery: 15}
}

// rewardModelOf makes a reward model that learns on a device.
func rewardModelOf(r *toyRun, be kernels.Backend, c RewardModelConfig, pairs []RatedPair) (*RewardModel, *model.Model, error) {
	m, err := model.New(be, r.model, model.Heads{Score: true}, true)
	if err != nil {
		return nil, nil, err
	}
	r.t.Cleanup(m.Close)
	m.Init(hashSeed(99))
	held := []RatedPair{ratedLetters("BAE", "CB", "A"), ratedLetters("CE", "C", "BB"), ratedLetters("AE", "AA", "DB")}
	t, err := NewRewardModel(c, RewardModelParts{Backend: be, Tensor: r.tensor, Model: m, Pairs: pairs, HeldOut: held, Seed: hashSeed(2), Ranks: r.ranks,
		Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
	if err == nil {
		r.t.Cleanup(t.Close)
	}
	return t, m, err
}

func rewardModelRun(t *testing.T, c RewardModelConfig, threads int, pairs []RatedPair, stop func() bool) (preferred, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	x, m, err := rewardModelOf(r, r.be, c, pairs)
	if err != nil {
		return preferred{}, err
	}
	err = x.Run(context.Background(), stop)
	return preferred{r.steps, r.host(m.Params())}, err
}

// The model learns to tell the answers apart, with the same bits for any micro-batch and number of threads.
func TestRewardModelLearnsAndIsExact(t *testing.T) {
	c := rewardModelConfig()
	want, err := rewardModelRun(t, c, 1, ratedPairs(), nil)
	if err != nil {
		t.Fatal(err)
	}
	first, last := want.steps[0], want.steps[len(want.steps)-1]
	if a, b := metric(t, first, "rm/loss"), metric(t, last, "rm/loss"); !(a > 0.5 && b < 0.2) || metric(t, last, "rm/accuracy") != 1 {
		t.Errorf("loss %.3f to %.3f, accuracy %.2f", a, b, metric(t, last, "rm/accuracy"))
	}
	for _, s := range []*Step{first, last} {
		if got, want := metric(t, s, "rm/margin"), metric(t, s, "rm/reward_chosen")-metric(t, s, "rm/reward_rejected"); math.Abs(got-want) > 1e-9 {
			t.Errorf("margin %g, want %g", got, want)
		}
		low, mean, high := metric(t, s, "rm/reward_min"), metric(t, s, "rm/reward_mean"), metric(t, s, "rm/reward_max")
		if want := (metric(t, s, "rm/reward_chosen") + metric(t, s, "rm/reward_rejected")) / 2; math.Abs(mean-want) > 1e-9 || !(low < mean && mean < high) {
			t.Errorf("rewards from %g to %g, mean %g, want %g", low, high, mean, want)
		}
	}
	var validated []int
	for _, s := range want.steps {
		if slices.ContainsFunc(s.Metrics, func(m rl.Metric) bool { return m.Name == "rm/val_accuracy" }) {
			validated = append(validated, s.Step)
		}
	}
	if !slices.Equal(validated, []int{15, 30, 40}) {
		t.Errorf("validated after steps %v", validated)
	}
	c.MicroBatchTokens, c.Recompute = 9, true
	got, err := rewardModelRun(t, c, 3, ratedPairs(), nil)
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

// Held-out pairs are judged by the weights after an update: as the next update finds the same pairs.
func TestRewardModelValidates(t *testing.T) {
	c := rewardModelConfig()
	c.Steps, c.PairsPerStep, c.ValidateEvery = 2, len(ratedPairs()), 1
	r := newToyRun(t, GRPO, 1)
	x, _, err := rewardModelOf(r, r.be, c, ratedPairs())
	if err != nil {
		t.Fatal(err)
	}
	x.heldOut = x.pairs
	if err := x.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for held, of := range map[string]string{"rm/val_loss": "rm/loss", "rm/val_margin": "rm/margin",
		"rm/val_reward_mean": "rm/reward_mean"} {
		got, before, after := metric(t, r.steps[0], held), metric(t, r.steps[0], of), metric(t, r.steps[1], of)
		if math.Abs(got-after) > 1e-6 || math.Abs(after-before) < 1e-3 {
			t.Errorf("%s %g after the first step, %s %g and %g", held, got, of, before, after)
		}
	}
}

// ratingLoss returns the loss and the gradient of the only step, of a model whose parameters are moved.
func ratingLoss(t *testing.T, pairs []RatedPair, move []float32) (loss float64, grads []float32, x *ratings, m *model.Model) {
	t.Helper()
	r := newToyRun(t, GRPO, 1)
	c := rewardModelConfig()
	c.Steps, c.PairsPerStep, c.Loss.Center = 1, len(pairs), 0.3
	f, m, err := rewardModelOf(r, r.be, c, pairs)
	if err != nil {
		t.Fatal(err)
	}
	params := r.host(m.Params())
	for i := range move {
		params[i] += move[i]
	}
	r.be.Copy(m.Params(), kernels.Host(params))
	r.be.Sync()
	m.Refresh()
	x = ratingsOf(pairs, c.Loss)
	f.gradient(1, x.slice(0, len(x.traj), c.Slices, f.passes.bundle), x)
	return x.summary().loss, r.host(m.Grads()), x, m
}

// The gradient is the derivative of the loss along a direction.
func TestRewardModelGradient(t *testing.T) {
	pairs := ratedPairs()[5:]
	_, _, _, m := ratingLoss(t, pairs, nil)
	n := m.Params().Len()
	start, direction := make([]float32, n), make([]float32, n)
	for i := range start {
		start[i] = float32(0.02 * math.Sin(float64(3*i+1)))
		direction[i] = float32(math.Cos(float64(i * i % 1009)))
	}
	_, grads, _, _ := ratingLoss(t, pairs, start)
	const h = 2e-3
	at := func(h float32) float64 {
		moved := slices.Clone(start)
		for i := range moved {
			moved[i] += h * direction[i]
		}
		loss, _, _, _ := ratingLoss(t, pairs, moved)
		return loss
	}
	var got float64
	for i, g := range grads {
		got += float64(g) * float64(direction[i])
	}
	want := (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
	if math.Abs(got-want) > 2e-3*math.Abs(want) || want == 0 {
		t.Errorf("derivative %g, differences say %g", got, want)
	}
}

// The reward is the score head times the last token's state, of each answer in a sequence of its own.
func TestRewardIsTheScoreOfTheLastToken(t *testing.T) {
	pairs := ratedPairs()
	_, _, x, m := ratingLoss(t, pairs, nil)
	r := newToyRun(t, GRPO, 1)
	ws, err := model.NewWorkspace(r.be, r.model, m.Heads, model.Capacity{Tokens: 64, Sequences: 4}, model.KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ws.Close)
	score := r.host(m.View("score.weight"))
	for row, tr := range x.traj {
		text := slices.Concat(tr.Prompt, tr.Completion.Tokens[:len(tr.Completion.Tokens)-1])
		ws.Load(model.Batch{Tokens: text, Offsets: []int32{0, int32(len(text))}, Prompt: []int32{int32(len(text))}})
		m.Forward(ws)
		h := r.host(ws.Hidden())
		h = h[len(h)-r.model.Width:]
		var want float64
		for i, w := range score {
			want += float64(w) * float64(h[i])
		}
		if got := x.reward(row); math.Abs(got-want) > 1e-6 {
			t.Errorf("row %d: reward %g, want %g", row, got, want)
		}
	}
	for i, p := range pairs {
		row := slices.IndexFunc(x.traj, func(tr *Trajectory) bool { return tr.Problem.ID == p.ID })
		if got, want := x.pair(row).Loss, x.cfg.Pair(x.reward(row), x.reward(row+1), p.Margin).Loss; got != want {
			t.Errorf("pair %d with the margin %g: loss %g, want %g", i, p.Margin, got, want)
		}
	}
}

func TestRewardModelErrors(t *testing.T) {
	c := rewardModelConfig()
	c.PairsPerStep = 1
	nan := ratedLetters("A", "B", "C")
	nan.Margin = math.NaN()
	for want, p := range map[string]RatedPair{
		"different tokens": ratedLetters("", "A", "B"),
		"positions":        ratedLetters("A", "A", strings.Repeat("B", 40)),
		"margin NaN":       nan,
	} {
		if _, err := rewardModelRun(t, c, 1, []RatedPair{p}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	c.PairsPerStep = 2
	if _, err := rewardModelRun(t, c, 1, ratedPairs()[:1], nil); err == nil || !strings.Contains(err.Error(), "only 1 pairs") {
		t.Errorf("too few pairs: %v", err)
	}
	n := 0
	got, err := rewardModelRun(t, rewardModelConfig(), 1, ratedPairs(), func() bool { n++; return n == 3 })
	if !errors.Is(err, ErrStopped) || len(got.steps) != 2 {
		t.Errorf("stopped after %d steps with %v, want 2 and ErrStopped", len(got.steps), err)
	}
}

// Ranks that share pairs and products learn and validate with one process's bits.
func TestRewardModelOnRanks(t *testing.T) {
	run := func(size, shared int) (string, []float32) {
		toys, groups := make([]*toyRun, size), ranks.InProcess(size)
		for i := range toys {
			r := sharedToy(t, GRPO)
			r.ranks, r.tensor, toys[i] = groups[i], shared, r
		}
		inParallel(t, toys, func(r *toyRun) error {
			c := rewardModelConfig()
			c.Steps, c.PairsPerStep, c.MicroBatchTokens, c.Slices, c.ValidateEvery = 5, 7, 12, 8, 2
			f, _, err := rewardModelOf(r, r.device(), c, ratedPairs())
			if err != nil {
				return err
			}
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
