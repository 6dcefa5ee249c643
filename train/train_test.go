package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exp/kernels"
	"exp/train/rl"
	"exp/train/rollout"
)

// trace renders everything deterministic of the steps, floats as bits.
func trace(steps []*Step) string {
	var b bytes.Buffer
	for _, s := range steps {
		fmt.Fprintf(&b, "step %d/%d\n", s.Step, s.Of)
		for _, m := range s.Metrics {
			fmt.Fprintf(&b, "%s %x\n", m.Name, math.Float64bits(m.Value))
		}
		for _, t := range s.Trajectories {
			named := t.Completion.Named()
			fmt.Fprintf(&b, "%s %d %v", t.Problem.ID, t.Sample, named.Tokens)
			for _, x := range named.Later() {
				fmt.Fprintf(&b, " %d %d %v %q", x.Start, x.TextStart, x.Tokens, x.Text)
			}
			for _, a := range named.Acts {
				fmt.Fprintf(&b, " %+v", a)
			}
			for _, lp := range t.Completion.LogProbs {
				fmt.Fprintf(&b, " %x", math.Float32bits(lp))
			}
			fmt.Fprintf(&b, " %x %q %q %q\n", math.Float64bits(t.Verdict.Reward), t.Completion.Text, t.Verdict.Answer,
				t.Verdict.Reason)
		}
		for _, e := range s.Events {
			fmt.Fprintf(&b, "%s %s\n", e.Kind, e.Text)
		}
	}
	return b.String()
}

// firstLineThatDiffers names where two traces part.
func firstLineThatDiffers(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d: %q, want %q", i, x[i], y[i])
		}
	}
	return "length"
}

// TestSizesChangeNoBit: the number of threads, the budget of a micro-batch and the
// sizes of the sampler change neither a metric, nor a sample, nor a parameter.
func TestSizesChangeNoBit(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO, Distill, Prime} {
		t.Run(string(kind), func(t *testing.T) {
			want := newToyRun(t, kind, 1)
			want.cfg.EntropyCoef, want.cfg.KL.RewardCoef, want.cfg.Epochs = 0.01, 0.05, 2
			want.run()
			for seed := range uint64(3) {
				r := rand.New(rand.NewPCG(seed, 0))
				got := newToyRun(t, kind, 1+r.IntN(4))
				got.cfg = want.cfg
				got.cfg.MicroBatchTokens, got.cfg.Recompute = 8+r.IntN(300), seed == 1
				got.options.MaxSequences = 1 + r.IntN(40)
				got.options.PageTokens = 16 * (1 + r.IntN(3))
				got.run()
				if a, b := trace(got.steps), trace(want.steps); a != b {
					t.Errorf("seed %d: %s", seed, firstLineThatDiffers(a, b))
				}
				if !slices.Equal(got.params(), want.params()) {
					t.Errorf("seed %d: parameters differ", seed)
				}
			}
		})
	}
}

// A run that is stopped, saved and continued by another trainer equals the run that
// was not.
func TestStopAndContinue(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, Prime} {
		t.Run(string(kind), func(t *testing.T) {
			whole := newToyRun(t, kind, 2)
			whole.cfg.Steps, whole.cfg.KL.RewardCoef = 5, 0.1
			whole.cfg.KL.Control = rl.KLControl{Adaptive: true, Target: 0.01, Horizon: 100}
			whole.run()

			continues(t, whole)
		})
	}
}

// continues checks that a run with the settings of the finished run whole gives the same
// result when it is stopped after two steps and continued by another trainer.
func continues(t *testing.T, whole *toyRun) {
	t.Helper()
	another := func(threads int) *toyRun {
		r := newToyRun(t, GRPO, threads)
		r.cfg, r.grade, r.recorded, r.cutText = whole.cfg, whole.grade, whole.recorded, whole.cutText
		return r
	}
	first := another(2)
	tr := first.start()
	err := tr.Run(context.Background(), func() bool { return len(first.steps) == 2 })
	if !errors.Is(err, ErrStopped) {
		t.Fatalf("Run = %v, want ErrStopped", err)
	}
	second := another(1)
	next := second.start()
	from, to := tr.Buffers(), next.Buffers()
	for i := range from {
		if from[i].Name != to[i].Name {
			t.Fatalf("buffer %d is %s, then %s", i, from[i].Name, to[i].Name)
		}
		x := make([]float32, from[i].Buffer.Len())
		first.be.Copy(kernels.Host(x), from[i].Buffer)
		second.be.Copy(to[i].Buffer, kernels.Host(x))
	}
	saved, err := json.Marshal(tr.State())
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(saved, &state); err != nil {
		t.Fatal(err)
	}
	if err := next.Restore(state); err != nil {
		t.Fatal(err)
	}
	if err := next.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if a, b := trace(append(first.steps, second.steps...)), trace(whole.steps); a != b {
		t.Error(firstLineThatDiffers(a, b))
	}
	if !slices.Equal(second.params(), whole.params()) {
		t.Error("parameters differ")
	}
}

// Every algorithm raises the reward that it is given.
func TestLearns(t *testing.T) {
	for _, kind := range []Kind{FlowRL, PPO, GRPO, Prime} {
		r := newToyRun(t, kind, 2)
		r.cfg.Steps, r.cfg.Samples, r.cfg.Settings = 40, 16, with(r.cfg.Settings, "flowrl.beta", 5.0)
		r.cfg.Policy.LR, r.cfg.Critic.LR = 1e-2, 1e-2
		r.run()
		first, last := metric(t, r.steps[0], "critic/score/mean"), metric(t, r.steps[39], "critic/score/mean")
		if !(last > first+0.3) {
			t.Errorf("%s: reward went from %.3f to %.3f", kind, first, last)
		}
	}
}

func metric(t *testing.T, s *Step, name string) float64 {
	t.Helper()
	for _, m := range s.Metrics {
		if m.Name == name {
			return m.Value
		}
	}
	t.Fatalf("step %d has no metric %s", s.Step, name)
	return 0
}

func hasMetric(s *Step, name string) bool {
	return slices.ContainsFunc(s.Metrics, func(m rl.Metric) bool { return m.Name == name })
}

// Each algorithm records verl's metrics that apply to it, and none twice.
func TestMetricNames(t *testing.T) {
	want := map[Kind][]string{
		FlowRL: {"actor/log_z", "actor/final_loss", "actor/importance_weight", "actor/ref_kl", "actor/residual_abs", "kl/ref_k3"},
		PPO:    {"critic/vf_loss", "critic/vf_explained_var", "critic/vpred_mean", "critic/values/mean", "critic/lr", "actor/pg_clipfrac", "actor/kl_loss"},
		GRPO:   {"actor/pg_loss", "actor/pg_clipfrac_lower", "actor/kl_coef"},
	}
	all := []string{"training/global_step", "training/epoch", "critic/score/mean", "critic/rewards/max", "critic/advantages/min",
		"response_length/mean", "response_length/clip_ratio", "prompt_length/mean", "actor/entropy", "actor/ppo_kl",
		"actor/grad_norm", "actor/lr", "train/accuracy", "train/solved", "train/distinct", "training/rollout_probs_diff_max"}
	for kind, names := range want {
		r := newToyRun(t, kind, 1)
		r.cfg.Steps = 1
		r.run()
		for _, name := range append(names, all...) {
			if !hasMetric(r.steps[0], name) {
				t.Errorf("%s: no metric %s", kind, name)
			}
		}
		seen := map[string]bool{}
		for _, m := range r.steps[0].Metrics {
			if seen[m.Name] {
				t.Errorf("%s: metric %s twice", kind, m.Name)
			}
			seen[m.Name] = true
		}
		if !slices.ContainsFunc(r.steps[0].System, func(m rl.Metric) bool { return m.Name == "timing_s/gen" }) {
			t.Errorf("%s: no timing", kind)
		}
	}
}

// On the first update of a batch, the policy that sampled computes the ratio: it is exactly
// 1, whatever the micro-batches.
func TestFirstRatioIsOne(t *testing.T) {
	r := newToyRun(t, GRPO, 2)
	r.cfg.Steps, r.cfg.PromptsPerUpdate, r.cfg.KL.LossCoef = 1, 4, 0
	r.run()
	if got := metric(t, r.steps[0], "actor/ppo_kl"); got != 0 {
		t.Errorf("ppo_kl of the first update = %v, want exactly 0", got)
	}
}

func TestCriticWarmup(t *testing.T) {
	r := newToyRun(t, PPO, 1)
	r.cfg.Steps, r.cfg.Settings = 3, with(r.cfg.Settings, "critic.warmup_steps", 2)
	before := []float32(nil)
	r.start()
	before = r.params()
	r.trainer.AfterStep = func(step int) error {
		changed := !slices.Equal(r.params(), before)
		if want := step > 2; changed != want {
			t.Errorf("after step %d the policy has changed: %v, want %v", step, changed, want)
		}
		return nil
	}
	if err := r.trainer.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if hasMetric(r.steps[1], "actor/grad_norm") || !hasMetric(r.steps[2], "actor/grad_norm") {
		t.Error("policy metrics must begin after the warm-up")
	}
}

// As verl's workers do, each optimizer counts its own steps: the policy's warm-up of two steps follows the
// critic's of two.
func TestSchedulesCountOwnSteps(t *testing.T) {
	r := newToyRun(t, PPO, 1)
	r.cfg.Steps, r.cfg.Settings = 4, with(r.cfg.Settings, "critic.warmup_steps", 2)
	r.cfg.Policy.LR, r.cfg.Critic.LR = 3e-3, 1e-2
	r.run()
	for name, want := range map[string][]float64{"critic/lr": {0.5e-2, 1e-2, 1e-2, 1e-2}, "actor/lr": {0, 0, 1.5e-3, 3e-3}} {
		for i, s := range r.steps {
			if want[i] == 0 {
				if hasMetric(s, name) {
					t.Errorf("step %d has %s", i+1, name)
				}
			} else if got := metric(t, s, name); got != want[i] {
				t.Errorf("step %d: %s = %v, want %v", i+1, name, got, want[i])
			}
		}
	}
}

// A completion without a verdict takes no part in training, and is told.
func TestNotGraded(t *testing.T) {
	r := newToyRun(t, FlowRL, 1)
	grade := r.grade
	r.cfg.Steps = 2
	r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
		switch {
		case p.ID == "p1":
			return rollout.Verdict{Reason: "grader is away"}
		case len(c.Tokens) == 1:
			return rollout.Verdict{Status: rollout.Graded, Reward: math.NaN()}
		case len(c.Tokens) == 2:
			return rollout.Verdict{Status: rollout.Graded, Reward: 1e39} // rewards are float32
		}
		return grade(p, c)
	}
	r.problems = r.problems[:4]
	r.run()
	for _, s := range r.steps {
		if got := metric(t, s, "train/not_graded"); got < 0.25 {
			t.Errorf("not_graded = %v, want at least a quarter", got)
		}
		if got := metric(t, s, "critic/score/mean"); !(got >= 0 && got <= 1) {
			t.Errorf("mean score %v: a missing verdict was scored", got)
		}
		if !slices.ContainsFunc(s.Events, func(e Event) bool { return e.Kind == "not-graded" }) {
			t.Error("no event")
		}
	}

	r = newToyRun(t, GRPO, 1)
	r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict { return rollout.Verdict{Reason: "down"} }
	if err := r.start().Run(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "down") {
		t.Errorf("a step without any verdict: error %v", err)
	}
}

// A gradient that is not finite changes nothing and is an event with its place.
func TestNonFiniteGradient(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	tr := r.start()
	inf := float32(math.Inf(1))
	tr.policy.m.ZeroGrads()
	r.be.Copy(tr.policy.m.Grad("model.norm.weight").Slice(3, 4), kernels.Host([]float32{inf}))
	before := r.params()
	norm, event := tr.policy.update(7, 1e-3)
	if !math.IsInf(norm, 1) || event == nil || event.Kind != "nonfinite" ||
		!strings.Contains(event.Text, "model.norm.weight[3]") || !strings.Contains(event.Text, "step 7") {
		t.Errorf("update = %v, %+v", norm, event)
	}
	if !slices.Equal(r.params(), before) || tr.policy.opt.Steps() != 0 {
		t.Error("the update was not skipped")
	}
}

// Skipped updates and metrics that are not finite are told once a step, whatever their number.
func TestNonFiniteEvents(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.Epochs = 3
	n := r.cfg.Sampling.MaxNewTokens
	r.cfg.Overlong = rl.Overlong{MaxResponse: n, Buffer: n, Penalty: 1e39}
	r.run()
	var text []string
	for _, e := range r.steps[0].Events {
		if e.Kind != "nonfinite" {
			t.Errorf("event %+v", e)
		}
		text = append(text, e.Text)
	}
	if len(text) != 2 || !strings.HasSuffix(text[0], "update skipped (6 times)") ||
		!strings.HasPrefix(text[1], "step 1: critic/score/") || !strings.HasSuffix(text[1], ", actor/grad_norm is NaN") {
		t.Errorf("events:\n%s\nwant the updates and the metrics, each once", strings.Join(text, "\n"))
	}
}

// The trainer refuses log-probs that it would not compute.
func TestVerifyFindsForeignLogProbs(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	r.cfg.VerifyRate = 1
	tr := r.start()
	tr.Sampler = liar{tr.Sampler}
	err := tr.Run(context.Background(), nil)
	var m *MismatchError
	if !errors.As(err, &m) || m.Step != 1 || m.Sample != 3 || m.ExitCode() != 5 || m.Hint() == "" {
		t.Errorf("Run = %v, want a MismatchError at sample 3 with exit code and advice", err)
	}
}

// liar changes the last bit of one log-prob.
type liar struct{ rollout.Sampler }

func (l liar) Sample(ctx context.Context, reqs []rollout.Request, p rollout.Params, done func(int)) ([][]rollout.Completion, error) {
	out, err := l.Sampler.Sample(ctx, reqs, p, done)
	lp := out[1][3].LogProbs
	lp[0] = math.Float32frombits(math.Float32bits(lp[0]) ^ 1)
	return out, err
}

func TestOrder(t *testing.T) {
	o := order{n: 11, perStep: 3, shuffled: true, seed: hashSeed(5)}
	var epochs [2][]int
	for s := 1; s <= 6; s++ {
		p, epoch := o.step(s)
		if want := (s - 1) / 3; epoch != want {
			t.Errorf("step %d is of epoch %d, want %d", s, epoch, want)
		}
		epochs[epoch] = append(epochs[epoch], p...)
	}
	if slices.Equal(epochs[0], epochs[1]) {
		t.Errorf("both epochs have the order %v", epochs[0])
	}
	for _, e := range epochs {
		slices.Sort(e)
		if len(slices.Compact(e)) != 9 {
			t.Errorf("epoch repeats a problem: %v", e)
		}
	}
	again := order{n: 11, perStep: 3, shuffled: true, seed: hashSeed(5)}
	p5, _ := again.step(5)
	o.step(1)
	q5, _ := o.step(5)
	if !slices.Equal(p5, q5) {
		t.Errorf("step 5 has problems %v, or %v: it must not depend on what was asked before", p5, q5)
	}
}

func TestMiniBatches(t *testing.T) {
	b := &batch{group: []int{0, 0, 1, 3, 3, 3}} // problem 2 has no graded completion
	got := b.miniBatches(2, 2)
	if want := [][2]int{{0, 3}, {3, 6}}; !slices.Equal(got, want) {
		t.Errorf("miniBatches = %v, want %v", got, want)
	}
	if got := b.miniBatches(1, 4); !slices.Equal(got, [][2]int{{0, 2}, {2, 3}, {3, 3}, {3, 6}}) {
		t.Errorf("miniBatches of one problem = %v", got)
	}
}

func TestBadSettings(t *testing.T) {
	tests := map[string]func(r *toyRun){
		"prompts_per_update": func(r *toyRun) { r.cfg.PromptsPerUpdate = 3 },
		"fewer than":         func(r *toyRun) { r.problems = r.problems[:3] },
		"positions":          func(r *toyRun) { r.cfg.Sampling.MaxNewTokens = 32 },
		"empty prompt":       func(r *toyRun) { r.problems[2].Prompt = "" },
		"temperature":        func(r *toyRun) { r.cfg.Sampling.Temperature = 0 },
	}
	for want, change := range tests {
		r := newToyRun(t, GRPO, 1)
		change(r)
		_, err := New(r.cfg, Parts{Backend: r.be, Policy: newToyRun(t, GRPO, 1).start().Policy, Prompt: letters{}.prompt, Problems: r.problems, Seed: hashSeed(1)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
