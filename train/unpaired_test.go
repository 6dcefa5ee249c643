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

// letterAnswers say of two answers to each prompt which is good, as letterPairs prefer them; one prompt has only a bad one.
func letterAnswers() (list []LabelledAnswer) {
	for _, p := range letterPairs() {
		list = append(list, LabelledAnswer{ID: p.ID + "/chosen", Prompt: p.Prompt, Completion: p.Chosen, Good: true},
			LabelledAnswer{ID: p.ID + "/rejected", Prompt: p.Prompt, Completion: p.Rejected})
	}
	return list[1:]
}

func unpairedConfig() UnpairedConfig {
	return UnpairedConfig{Steps: 60, AnswersPerStep: 8, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy,
		Loss: rl.UnpairedConfig{Beta: 0.5, Loss: rl.KTO, Chosen: 1, Rejected: 1}}
}

// unpaired makes the toy's model and what learns it.
func unpaired(t *testing.T, c UnpairedConfig, threads int, answers []LabelledAnswer) (*toyRun, *Unpaired, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	m.Init(hashSeed(99))
	f, err := NewUnpaired(c, UnpairedParts{Backend: r.be, Model: m, Answers: answers, Seed: hashSeed(2),
		Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
	if err == nil {
		t.Cleanup(f.Close)
	}
	return r, f, err
}

func unpairedRun(t *testing.T, c UnpairedConfig, threads int, answers []LabelledAnswer, stop func() bool) (preferred, error) {
	t.Helper()
	r, f, err := unpaired(t, c, threads, answers)
	if err != nil {
		return preferred{}, err
	}
	err = f.Run(context.Background(), stop)
	return preferred{r.steps, r.host(f.learner.m.Params())}, err
}

// The first step has no KL divergence and a loss of a half, since the model is its reference. Learning tells the answers
// apart, with the same bits for any micro-batch and number of threads.
func TestUnpairedLearnsAndIsExact(t *testing.T) {
	for _, kind := range []rl.UnpairedLoss{rl.KTO, rl.APOZero} {
		c := unpairedConfig()
		c.Loss.Loss = kind
		want, err := unpairedRun(t, c, 1, letterAnswers(), nil)
		if err != nil {
			t.Fatal(err)
		}
		first, last := want.steps[0], want.steps[len(want.steps)-1]
		for _, name := range []string{"prefer/margin", "prefer/reward_chosen", "prefer/reward_rejected"} {
			if got := metric(t, first, name); got != 0 {
				t.Errorf("%s is %g at the start", name, got)
			}
		}
		if got := metric(t, first, "prefer/loss"); math.Abs(got-0.5) > 1e-12 {
			t.Errorf("the first loss is %g, want 1/2", got)
		}
		if loss, margin := metric(t, last, "prefer/loss"), metric(t, last, "prefer/margin"); !(loss < 0.2 && margin > 2) {
			t.Errorf("the last loss is %.3f, the margin %.2f", loss, margin)
		}
		if has := slices.ContainsFunc(last.Metrics, func(m rl.Metric) bool { return m.Name == "prefer/kl" }); has != (kind == rl.KTO) {
			t.Errorf("loss %d: KL recorded: %v", kind, has)
		}
		c.MicroBatchTokens, c.Recompute = 9, true
		got, err := unpairedRun(t, c, 3, letterAnswers(), nil)
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
}

// Plain loops, one row at a time, over the model after three updates and the one at the start.
func TestUnpairedIsPlain(t *testing.T) {
	c := unpairedConfig()
	c.Loss = rl.UnpairedConfig{Beta: 0.5, Loss: rl.KTO, Chosen: 1.2, Rejected: 0.7}
	answers := letterAnswers()
	answers[2].Completion.Inserted = []rollout.Span{{Start: 1, End: 2}}
	_, now, err := unpaired(t, c, 1, answers)
	if err != nil {
		t.Fatal(err)
	}
	_, start, err := unpaired(t, c, 1, answers)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := now.Step(); err != nil {
			t.Fatal(err)
		}
	}
	longest := 0
	for _, x := range answers {
		longest = max(longest, len(x.Prompt)+len(x.Completion.Tokens))
	}
	// logProb of the learned ones of y's tokens after x's prompt, up to longest tokens.
	logProb := func(of *Unpaired, x, y LabelledAnswer) (sum float64) {
		defer of.passes.scoring(of.rows)()
		kept := *y.Completion
		kept.Tokens = kept.Tokens[:min(len(kept.Tokens), longest-len(x.Prompt))]
		b := newBatch([]Trajectory{scoredRow("", x.Prompt, &rollout.Completion{Tokens: kept.Tokens})}, rl.Overlong{}, nil)
		for i, lp := range of.passes.logProbs(of.learner.m, b, 0, 1, 1) {
			inserted := slices.ContainsFunc(kept.Inserted, func(s rollout.Span) bool { return s.Start <= i && i < s.End })
			if !inserted {
				sum += float64(lp)
			}
		}
		return sum
	}
	chosen, _ := now.order.step(4)
	var kl, loss float64
	var ratios []float64
	n := float64(len(chosen))
	for i, k := range chosen {
		x, y := answers[k], answers[chosen[(i+len(chosen)-1)%len(chosen)]]
		kl += (logProb(now, x, y) - logProb(start, x, y)) / n
		ratios = append(ratios, logProb(now, x, x)-logProb(start, x, x))
	}
	kl = math.Max(0, kl)
	reward, count := map[bool]float64{}, map[bool]float64{}
	for i, k := range chosen {
		good := answers[k].Good
		if good {
			loss += 1.2 * (1 - 1/(1+math.Exp(-0.5*(ratios[i]-kl)))) / n
		} else {
			loss += 0.7 * (1 - 1/(1+math.Exp(-0.5*(kl-ratios[i])))) / n
		}
		reward[good] += 0.5 * ratios[i]
		count[good]++
	}
	rec, err := now.Step()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"prefer/kl": kl, "prefer/loss": loss, "prefer/reward_chosen": reward[true] / count[true],
		"prefer/reward_rejected": reward[false] / count[false]} {
		if got := metric(t, rec, name); math.Abs(got-want) > 1e-9 || want == 0 && name != "prefer/kl" {
			t.Errorf("%s is %g, want %g", name, got, want)
		}
	}
	if kl == 0 {
		t.Error("the estimate of KL divergence is 0: nothing is tested")
	}
}

// The gradient is the derivative of the loss along a direction, away from the reference, with the KL divergence held.
func TestUnpairedGradient(t *testing.T) {
	answers := letterAnswers()[:5]
	answers[0].Completion.Inserted = []rollout.Span{{Start: 0, End: 1}}
	c := unpairedConfig()
	c.Steps, c.AnswersPerStep, c.Loss.Chosen = 1, 5, 1.3
	loss := func(move []float32) (value float64, grads []float32) {
		r, f, err := unpaired(t, c, 1, answers)
		if err != nil {
			t.Fatal(err)
		}
		m := f.learner.m
		if move != nil {
			params := r.host(m.Params())
			for i, d := range move {
				params[i] += d
			}
			r.be.Copy(m.Params(), kernels.Host(params))
			r.be.Sync()
			m.Refresh()
		}
		chosen, _ := f.order.step(1)
		x := f.labelled(f.batch(chosen), chosen, 0.4)
		f.answer(1, &x.answered, x.slopes)
		return x.metrics()[0].Value, r.host(m.Grads())
	}
	_, grads := loss(nil)
	start, direction := make([]float32, len(grads)), make([]float32, len(grads))
	for i := range start {
		start[i] = float32(0.02 * math.Sin(float64(3*i+1)))
		direction[i] = float32(math.Cos(float64(i * i % 1009)))
	}
	_, grads = loss(start)
	const h = 2e-3
	at := func(h float32) float64 {
		moved := slices.Clone(start)
		for i := range moved {
			moved[i] += h * direction[i]
		}
		x, _ := loss(moved)
		return x
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

// Answers of one kind only have no margin, and nothing of the other kind.
func TestUnpairedOfOneKind(t *testing.T) {
	c := unpairedConfig()
	c.Steps = 2
	good := slices.DeleteFunc(letterAnswers(), func(x LabelledAnswer) bool { return !x.Good })
	got, err := unpairedRun(t, c, 1, good, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range got.steps[1].Metrics {
		if m.Name == "prefer/margin" || strings.HasSuffix(m.Name, "_rejected") {
			t.Errorf("%s is %g", m.Name, m.Value)
		}
	}
	if x := metric(t, got.steps[1], "prefer/reward_chosen"); x == 0 {
		t.Error("nothing is learned")
	}
}

// A mismatched answer is cut to the longest answer with its prompt, and its inserted parts with it.
func TestMismatchedAnswers(t *testing.T) {
	answer := func(prompt, text string, inserted ...rollout.Span) LabelledAnswer {
		p := letterPair(prompt, text, "A", inserted...)
		return LabelledAnswer{ID: prompt, Prompt: p.Prompt, Completion: p.Chosen}
	}
	f := &Unpaired{longest: 6, answers: []LabelledAnswer{answer("ABE", "AB"), answer("E", "ABCAB", rollout.Span{Start: 1, End: 2}, rollout.Span{Start: 2, End: 4}),
		answer("CCE", "B")}}
	b := f.mismatched([]int{0, 1, 2})
	var got []string
	for i, tr := range b.traj {
		got = append(got, tr.Problem.ID+":"+fmtTokens(tr.Completion.Tokens)+fmtMask(b.mask[b.rows[i]:b.rows[i+1]]))
	}
	want := []string{"ABE:" + fmtTokens(answer("A", "B").Completion.Tokens) + "1", "E:" + fmtTokens(answer("A", "AB").Completion.Tokens) + "11",
		"CCE:" + fmtTokens(answer("A", "ABC").Completion.Tokens) + "100"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func fmtTokens(ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteByte(byte('a' + id))
	}
	return b.String() + " "
}

func fmtMask(mask []bool) string {
	var b strings.Builder
	for _, on := range mask {
		b.WriteByte(map[bool]byte{true: '1', false: '0'}[on])
	}
	return b.String()
}

func TestUnpairedErrors(t *testing.T) {
	c := unpairedConfig()
	c.AnswersPerStep = 2
	for want, p := range map[string]PreferredPair{
		"empty prompt":     letterPair("", "A", "B"),
		"positions":        letterPair("A", strings.Repeat("B", 40), "A"),
		"nothing to learn": letterPair("A", "AB", "B", rollout.Span{Start: 0, End: 2}),
	} {
		list := []LabelledAnswer{{ID: "x", Prompt: p.Prompt, Completion: p.Chosen}, letterAnswers()[0]}
		if _, err := unpairedRun(t, c, 1, list, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	if _, err := unpairedRun(t, c, 1, letterAnswers()[:1], nil); err == nil || !strings.Contains(err.Error(), "only 1 answers") {
		t.Errorf("too few answers: %v", err)
	}
	c.AnswersPerStep = 1
	if _, err := unpairedRun(t, c, 1, letterAnswers(), nil); err == nil || !strings.Contains(err.Error(), "the prompt of another") {
		t.Errorf("one answer a step: %v", err)
	}
	n := 0
	got, err := unpairedRun(t, unpairedConfig(), 1, letterAnswers(), func() bool { n++; return n == 3 })
	if !errors.Is(err, ErrStopped) || len(got.steps) != 2 {
		t.Errorf("stopped after %d steps with %v, want 2 and ErrStopped", len(got.steps), err)
	}
}

// Ranks that share answers and products learn with one process's bits.
func TestUnpairedOnRanks(t *testing.T) {
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
			c := unpairedConfig()
			c.Steps, c.AnswersPerStep, c.MicroBatchTokens, c.Slices = 5, 7, 12, 8
			f, err := NewUnpaired(c, UnpairedParts{Backend: be, Tensor: shared, Model: m, Answers: letterAnswers(), Seed: hashSeed(2),
				Ranks: r.ranks, Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
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
