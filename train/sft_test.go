package train

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/model"
	"exp/train/rollout"
)

func sftRun(t *testing.T, c SFTConfig, threads int, problems []rollout.Problem, stop func() bool) ([]*Step, []float32, error) {
	t.Helper()
	r := newToyRun(t, GRPO, threads)
	m, err := model.New(r.be, r.model, model.Heads{LM: true}, true)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.Init(hashSeed(99))
	f, err := NewSFT(c, SFTParts{Backend: r.be, Model: m, Problems: problems, Prompt: letters{}.prompt, Encode: letters{}.encode, Seed: hashSeed(2),
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
