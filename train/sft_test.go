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
	"exp/train/rollout"
)

func sftRun(t *testing.T, c SFTConfig, threads int, problems []rollout.Problem, stop func() bool) ([]*Step, []float32, error) {
	t.Helper()
	return sftRunOf(t, c, threads, problems, stop, targetOf)
}

// targetOf is a fine-tuning example: a problem's target and the end token.
func targetOf(p *rollout.Problem) ([]int32, *rollout.Completion, error) {
	if p.Target == "" {
		return nil, nil, errors.New("it has no target")
	}
	prompt, _ := letters{}.encode(p.Prompt)
	ids, err := letters{}.encode(p.Target)
	return prompt, &rollout.Completion{Tokens: append(ids, 0), Finish: rollout.FinishStop}, err
}

func sftRunOf(t *testing.T, c SFTConfig, threads int, problems []rollout.Problem, stop func() bool,
	example func(p *rollout.Problem) ([]int32, *rollout.Completion, error)) ([]*Step, []float32, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(hashSeed(99))
	f, err := NewSFT(c, SFTParts{Backend: r.be, Model: m, Problems: problems, Example: example, Seed: hashSeed(2),
		Recorder: recorderFunc(func(s *Step) error { r.steps = append(r.steps, s); return nil })})
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	err = f.Run(context.Background(), stop)
	x := make([]float32, m.Params().Len())
	r.be.Copy(kernels.Host(x), m.Params())
	r.be.Sync()
	return r.steps, x, err
}

// Fine-tuning learns a rule that its targets follow, to nearly no loss, with the
// same bits for any micro-batch and number of threads.
func TestSFTLearnsAndIsExact(t *testing.T) {
	var problems []rollout.Problem
	for _, p := range []string{"A", "B", "C", "AB", "BC", "CA", "ABC", "CBA"} {
		rev := []byte(p)
		slices.Reverse(rev)
		problems = append(problems, rollout.Problem{ID: p, Prompt: p + "E", Target: string(rev)})
	}
	c := SFTConfig{Steps: 60, ProblemsPerStep: 4, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy}
	steps, want, err := sftRun(t, c, 1, problems, nil)
	if err != nil {
		t.Fatal(err)
	}
	first, last := metric(t, steps[0], "sft/loss"), metric(t, steps[59], "sft/loss")
	if !(first > 1 && last < 0.1) {
		t.Errorf("loss went from %.3f to %.3f, want from above 1 to below 0.1", first, last)
	}
	c.MicroBatchTokens, c.Recompute = 9, true
	again, got, err := sftRun(t, c, 3, problems, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := trace(again), trace(steps); a != b {
		t.Error(firstLineThatDiffers(a, b))
	}
	if !slices.Equal(got, want) {
		t.Error("parameters differ")
	}
}

func TestSFTErrors(t *testing.T) {
	c := SFTConfig{Steps: 3, ProblemsPerStep: 1, MicroBatchTokens: 100, Slices: 2, Optim: toyConfig(GRPO).Policy}
	for want, p := range map[string]rollout.Problem{
		"no target":    {ID: "x", Prompt: "A"},
		"empty prompt": {ID: "x", Target: "A"},
		"positions":    {ID: "x", Prompt: "A", Target: strings.Repeat("B", 40)},
	} {
		if _, _, err := sftRun(t, c, 1, []rollout.Problem{p}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
	good := []rollout.Problem{{ID: "x", Prompt: "A", Target: "B"}}
	n := 0
	steps, _, err := sftRun(t, c, 1, good, func() bool { n++; return n == 3 })
	if !errors.Is(err, ErrStopped) || len(steps) != 2 {
		t.Errorf("stopped after %d steps with %v, want 2 and ErrStopped", len(steps), err)
	}
}

// masked is a fine-tuning example whose completion is all of text; of reads its inserted parts.
func masked(text string, of ...rollout.Span) func(p *rollout.Problem) ([]int32, *rollout.Completion, error) {
	return func(p *rollout.Problem) ([]int32, *rollout.Completion, error) {
		prompt, _ := letters{}.encode(p.Prompt)
		ids, err := letters{}.encode(text)
		return prompt, &rollout.Completion{Tokens: ids, Inserted: of, Finish: rollout.FinishStop}, err
	}
}

func maskedStep(t *testing.T, text string, of ...rollout.Span) (loss, entropy float64, params []float32) {
	t.Helper()
	c := SFTConfig{Steps: 1, ProblemsPerStep: 1, MicroBatchTokens: 100, Slices: 2, Optim: toyConfig(GRPO).Policy}
	steps, x, err := sftRunOf(t, c, 1, []rollout.Problem{{ID: "x", Prompt: "AC"}}, nil, masked(text, of...))
	if err != nil {
		t.Fatal(err)
	}
	return metric(t, steps[0], "sft/loss"), metric(t, steps[0], "sft/entropy"), x
}

// Tokens that are only read have no loss of their own: at the end of an example, where they are nobody's context,
// none changes a bit of the gradient.
func TestSFTReadsWithoutLearning(t *testing.T) {
	tail := rollout.Span{Start: 3, End: 6}
	loss, entropy, want := maskedStep(t, "ABCABC", tail)
	for _, text := range []string{"ABCBBB", "ABCDCA"} {
		l, h, got := maskedStep(t, text, tail)
		if l != loss || h != entropy || !slices.Equal(got, want) {
			t.Errorf("%s: loss %v, want %v; the parameters are the same: %v", text, l, loss, slices.Equal(got, want))
		}
	}
	if l, _, got := maskedStep(t, "ABBABC", tail); l == loss || slices.Equal(got, want) {
		t.Error("a learned token makes no difference")
	}
	// Elsewhere they are context, and still not in the mean: 6 tokens' loss is the loss of 1, 2, 5 and 6 and the loss
	// of 3 and 4, each over their number.
	all, _, _ := maskedStep(t, "ABCABC")
	outer, _, _ := maskedStep(t, "ABCABC", rollout.Span{Start: 2, End: 4})
	inner, _, _ := maskedStep(t, "ABCABC", rollout.Span{Start: 0, End: 2}, rollout.Span{Start: 4, End: 6})
	if sum := (4*outer + 2*inner) / 6; math.Abs(sum-all) > 1e-9 || outer == all {
		t.Errorf("mean loss %v, want %v of the parts %v and %v", all, sum, outer, inner)
	}
}

// Masks go with their examples into micro-batches and slices.
func TestSFTMaskIsExact(t *testing.T) {
	var problems []rollout.Problem
	for _, p := range []string{"A", "BB", "C", "AB", "BCA"} {
		problems = append(problems, rollout.Problem{ID: p, Prompt: p})
	}
	example := func(p *rollout.Problem) ([]int32, *rollout.Completion, error) {
		return masked(p.Prompt+"CAB"+p.Prompt, rollout.Span{Start: 1, End: 2 + len(p.Prompt)})(p)
	}
	c := SFTConfig{Steps: 4, ProblemsPerStep: 4, MicroBatchTokens: 1000, Slices: 2, Optim: toyConfig(GRPO).Policy}
	steps, want, err := sftRunOf(t, c, 1, problems, nil, example)
	if err != nil {
		t.Fatal(err)
	}
	c.MicroBatchTokens = 12
	again, got, err := sftRunOf(t, c, 3, problems, nil, example)
	if err != nil || trace(again) != trace(steps) || !slices.Equal(got, want) {
		t.Errorf("%v: %s", err, firstLineThatDiffers(trace(again), trace(steps)))
	}
}
