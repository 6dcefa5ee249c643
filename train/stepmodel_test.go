package train

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rl"
)

// steppedLetters makes an answer of steps of letters, each followed by E; "+" before a step says that it is right, "-"
// that it is wrong, and "?" that nobody labelled it.
func steppedLetters(prompt string, steps ...string) SteppedAnswer {
	a := SteppedAnswer{ID: prompt + strings.Join(steps, ""), Prompt: lettersOf(prompt)}
	for _, s := range steps {
		a.Tokens = append(a.Tokens, lettersOf(s[1:]+"E")...)
		if s[0] != '?' {
			a.Ends, a.Right = append(a.Ends, len(a.Tokens)-1), append(a.Right, s[0] == '+')
		}
	}
	return a
}

// steppedAnswers have steps that are right if they begin with the prompt's first letter.
func steppedAnswers() []SteppedAnswer {
	return []SteppedAnswer{
		steppedLetters("AE", "+A", "+AB", "-C"), steppedLetters("BE", "-A", "+B"), steppedLetters("CE", "+CA", "-BA", "+C", "-A"),
		steppedLetters("ABE", "-B", "?A", "+AC"), steppedLetters("BCE", "+BA", "-C"), steppedLetters("CBE", "-BC"),
	}
}

func stepModelConfig() StepModelConfig {
	return StepModelConfig{Steps: 40, AnswersPerStep: 4, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy,
		ValidateEvery: 15}
}

func stepModelOf(r *toyRun, be kernels.Backend, c StepModelConfig, answers []SteppedAnswer) (*StepModel, *model.Model, error) {
	m, err := model.New(be, r.model, model.Heads{Score: true}, true)
	if err != nil {
		return nil, nil, err
	}
	r.t.Cleanup(m.Close)
	m.Init(hashSeed(99))
	held := []SteppedAnswer{steppedLetters("ACE", "+A", "-BB"), steppedLetters("BAE", "-C", "+B", "+BC")}
	t, err := NewStepModel(c, StepModelParts{Backend: be, Tensor: r.tensor, Model: m, Answers: answers, HeldOut: held,
		Seed: hashSeed(2), Ranks: r.ranks, Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
	if err == nil {
		r.t.Cleanup(t.Close)
	}
	return t, m, err
}

func stepModelRun(t *testing.T, c StepModelConfig, threads int, answers []SteppedAnswer) (preferred, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	x, m, err := stepModelOf(r, r.be, c, answers)
	if err != nil {
		return preferred{}, err
	}
	err = x.Run(context.Background(), nil)
	return preferred{r.steps, r.host(m.Params())}, err
}

// The model learns which steps are right, with the same bits for any micro-batch and number of threads.
func TestStepModelLearnsAndIsExact(t *testing.T) {
	c := stepModelConfig()
	want, err := stepModelRun(t, c, 1, steppedAnswers())
	if err != nil {
		t.Fatal(err)
	}
	first, last := want.steps[0], want.steps[len(want.steps)-1]
	a, b := metric(t, first, "rm/step_loss"), metric(t, last, "rm/step_loss")
	if !(a > 0.5 && b < 0.3) || metric(t, last, "rm/step_accuracy") < 0.9 {
		t.Errorf("loss %.3f to %.3f, accuracy %.2f", a, b, metric(t, last, "rm/step_accuracy"))
	}
	if right, wrong := metric(t, last, "rm/score_right"), metric(t, last, "rm/score_wrong"); !(right > 0 && wrong < 0) {
		t.Errorf("scores of right steps %.2f, of wrong ones %.2f", right, wrong)
	}
	if got := metric(t, last, "rm/val_steps_right"); got != 0.6 {
		t.Errorf("%g of the held-out steps are right, want 3 of 5", got)
	}
	c.MicroBatchTokens, c.Recompute = 9, true
	got, err := stepModelRun(t, c, 3, steppedAnswers())
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

// Held-out answers are judged by the weights after an update: as the next update finds the same answers.
func TestStepModelValidates(t *testing.T) {
	c := stepModelConfig()
	c.Steps, c.AnswersPerStep, c.ValidateEvery = 2, len(steppedAnswers()), 1
	r := newToyRun(t, GRPO, 1)
	x, _, err := stepModelOf(r, r.be, c, steppedAnswers())
	if err != nil {
		t.Fatal(err)
	}
	x.heldOut = x.answers
	if err := x.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	got := metric(t, r.steps[0], "rm/val_step_loss")
	before, after := metric(t, r.steps[0], "rm/step_loss"), metric(t, r.steps[1], "rm/step_loss")
	if math.Abs(got-after) > 1e-6 || math.Abs(after-before) < 1e-3 {
		t.Errorf("held-out loss %g after the first step, loss %g and %g", got, before, after)
	}
}

// stepModelLoss returns the loss and the gradient of the only step, of a model whose parameters are moved.
func stepModelLoss(t *testing.T, answers []SteppedAnswer, move []float32) (loss float64, grads []float32, x *stepScores, m *model.Model) {
	t.Helper()
	r := newToyRun(t, GRPO, 1)
	c := stepModelConfig()
	c.Steps, c.AnswersPerStep = 1, len(answers)
	f, m, err := stepModelOf(r, r.be, c, answers)
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
	x = stepScoresOf(answers)
	f.gradient(1, x.slice(0, len(x.traj), c.Slices, f.passes.bundle), x)
	return x.summary().loss, r.host(m.Grads()), x, m
}

// The gradient is the derivative of the loss along a direction.
func TestStepModelGradient(t *testing.T) {
	answers := steppedAnswers()[2:4]
	_, _, _, m := stepModelLoss(t, answers, nil)
	n := m.Params().Len()
	start, direction := make([]float32, n), make([]float32, n)
	for i := range start {
		start[i] = float32(0.02 * math.Sin(float64(3*i+1)))
		direction[i] = float32(math.Cos(float64(i * i % 1009)))
	}
	_, grads, _, _ := stepModelLoss(t, answers, start)
	const h = 2e-3
	at := func(h float32) float64 {
		moved := slices.Clone(start)
		for i := range moved {
			moved[i] += h * direction[i]
		}
		loss, _, _, _ := stepModelLoss(t, answers, moved)
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

// The score of a step is the score head times the state at the step's last token, and the loss is a mean over labelled
// steps.
func TestStepScores(t *testing.T) {
	answers := steppedAnswers()
	loss, _, x, m := stepModelLoss(t, answers, nil)
	r := newToyRun(t, GRPO, 1)
	ws, err := model.NewWorkspace(r.be, r.model, m.Heads, model.Capacity{Tokens: 64, Sequences: 4}, model.KeepNothing)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ws.Close)
	score := r.host(m.View("score.weight"))
	var sum, n float64
	for row, tr := range x.traj {
		a := x.of[tr.Problem]
		k := 0
		x.steps(row, func(place int, right bool) {
			text := slices.Concat(a.Prompt, a.Tokens[:a.Ends[k]+1])
			ws.Load(model.Batch{Tokens: text, Offsets: []int32{0, int32(len(text))}, Prompt: []int32{int32(len(text))}})
			m.Forward(ws)
			h := r.host(ws.Hidden())
			h = h[len(h)-r.model.Width:]
			var want float64
			for i, w := range score {
				want += float64(w) * float64(h[i])
			}
			if got := float64(x.value[place]); math.Abs(got-want) > 1e-6 || right != a.Right[k] {
				t.Errorf("answer %s, step %d: score %g, want %g; right %t", a.ID, k, got, want, right)
			}
			one, _ := rl.StepLoss(want, right)
			sum, n, k = sum+one, n+1, k+1
		})
	}
	if n != 14 || math.Abs(loss-sum/n) > 1e-6 {
		t.Errorf("loss %g over %g steps, want %g over 14", loss, n, sum/n)
	}
}

func TestStepModelErrors(t *testing.T) {
	c := stepModelConfig()
	c.AnswersPerStep = 1
	bad := steppedLetters("A", "+B", "+C")
	bad.Ends[1] = bad.Ends[0]
	for want, a := range map[string]SteppedAnswer{
		"empty prompt":       steppedLetters("", "+A"),
		"0 steps":            steppedLetters("A", "?B"),
		"positions":          steppedLetters("A", "+"+strings.Repeat("B", 40)),
		"ends at token 1 of": bad,
	} {
		if _, err := stepModelRun(t, c, 1, []SteppedAnswer{a}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	c.AnswersPerStep = 2
	if _, err := stepModelRun(t, c, 1, steppedAnswers()[:1]); err == nil || !strings.Contains(err.Error(), "only 1 answers") {
		t.Errorf("too few answers: %v", err)
	}
}
