package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"exp/train/rl"
	"exp/train/rollout"
)

// parted is a grader that judges a step at once, with two named parts.
type parted struct {
	graderFunc
	calls [][]int // samples of the items of each call
	short bool    // gives one part only
}

func (p *parted) Components() []string { return []string{"a", "tokens"} }

func (p *parted) GradeAll(_ context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	var samples []int
	out := make([]rollout.Verdict, len(items))
	for i, it := range items {
		samples = append(samples, it.Sample)
		out[i] = p.graderFunc(it.Problem, it.Completion)
		out[i].Components = []float64{out[i].Reward, float64(len(it.Completion.Tokens))}
		if p.short {
			out[i].Components = out[i].Components[:1]
		}
	}
	p.calls = append(p.calls, samples)
	return out, nil
}

// A grader of batches sees all completions of a step at once; its parts are metrics
// and stay with the verdicts, and nothing else changes.
func TestBatchGrader(t *testing.T) {
	plain := newToyRun(t, GRPO, 1)
	plain.cfg.Steps = 2
	plain.run()
	r := newToyRun(t, GRPO, 1)
	r.cfg.Steps = 2
	tr := r.start()
	g := &parted{graderFunc: r.grade}
	tr.Grader = g
	if err := tr.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	n := r.cfg.PromptsPerStep * r.cfg.Samples
	if len(g.calls) != 2 || len(g.calls[0]) != n || g.calls[0][r.cfg.Samples+1] != 1 {
		t.Errorf("calls: got %v, want 2 with %d items", g.calls, n)
	}
	var reward, tokens float64
	for _, x := range r.steps[1].Trajectories {
		if v := x.Verdict; len(v.Components) != 2 || v.Components[0] != v.Reward {
			t.Fatalf("verdict %+v", v)
		}
		reward += x.Verdict.Reward
		tokens += float64(len(x.Completion.Tokens))
	}
	got := map[string]float64{}
	for _, m := range r.steps[1].Metrics {
		got[m.Name] = m.Value
	}
	if got["reward/a/mean"] != reward/float64(n) || got["reward/tokens/mean"] != tokens/float64(n) {
		t.Errorf("metrics: got %v and %v, want %v and %v", got["reward/a/mean"], got["reward/tokens/mean"], reward/float64(n), tokens/float64(n))
	}
	for i, m := range plain.steps[1].Metrics {
		if x := got[m.Name]; x != m.Value && !(x != x && m.Value != m.Value) {
			t.Errorf("metric %d, %s: got %v, want %v as one by one", i, m.Name, x, m.Value)
		}
	}
}

func TestPartsThatAreMissing(t *testing.T) {
	r := newToyRun(t, GRPO, 1)
	tr := r.start()
	tr.Grader = &parted{graderFunc: r.grade, short: true}
	if err := tr.Run(context.Background(), nil); err == nil {
		t.Error("no error for a verdict with one of two parts")
	}
}

// inOrder grades one completion after another.
type inOrder struct{ graderFunc }

func (g inOrder) GradeAll(_ context.Context, items []rollout.Item) ([]rollout.Verdict, error) {
	v := make([]rollout.Verdict, len(items))
	for i, x := range items {
		v[i] = g.graderFunc(x.Problem, x.Completion)
	}
	return v, nil
}

func TestTooManyNotGraded(t *testing.T) {
	for _, tt := range []struct {
		limit float64
		ends  bool
	}{{0, false}, {0.25, false}, {0.24, true}} {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps, r.cfg.MaxNotGraded = 1, tt.limit
		grade, n := r.grade, 0
		r.grade = func(p *rollout.Problem, c *rollout.Completion) rollout.Verdict {
			if n++; n%4 == 2 { // a quarter
				return rollout.Verdict{Reason: "the program is tired"}
			}
			return grade(p, c)
		}
		tr := r.start()
		tr.Grader = inOrder{r.grade}
		err := tr.Run(context.Background(), nil)
		var e *NotGradedError
		switch {
		case tt.ends && (!errors.As(err, &e) || e.ExitCode() != 8 || e.NotGraded*4 != e.Completions || e.Sample != 1 || e.Reason != "the program is tired"):
			t.Errorf("limit %v: got %v (%+v)", tt.limit, err, e)
		case !tt.ends && err != nil:
			t.Errorf("limit %v: %v", tt.limit, err)
		}
	}
}

// Completions are judged side by side; of several errors the first completion's is told,
// and each verdict goes to its own.
func TestJudgeApart(t *testing.T) {
	all := make([]Trajectory, 100)
	for i := range all {
		all[i] = Trajectory{Problem: &rollout.Problem{ID: fmt.Sprint(i)}, Completion: &rollout.Completion{Text: fmt.Sprint(i)}}
	}
	if err := judgeApart(context.Background(), failing{}, all, func(int) {}); err != nil {
		t.Fatal(err)
	}
	for i := range all {
		if all[i].Verdict.Reason != fmt.Sprint(i) {
			t.Errorf("completion %d has the verdict of %s", i, all[i].Verdict.Reason)
		}
	}
	if err := judgeApart(context.Background(), failing{"93", "20", "21"}, all, func(int) {}); err == nil || !strings.Contains(err.Error(), "problem 20:") {
		t.Errorf("got %v, want the error of problem 20", err)
	}
	if err := judgeApart(context.Background(), failing{}, nil, func(int) {}); err != nil {
		t.Error(err)
	}
}

// failing is a grader that cannot go on at some problems.
type failing []string

func (f failing) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	if slices.Contains(f, p.ID) {
		return rollout.Verdict{}, errors.New("away")
	}
	return rollout.Verdict{Reason: c.Text}, nil
}

// Right completions with a weak basis are counted if the grader gives the basis of its verdicts.
func TestSuspicious(t *testing.T) {
	for _, says := range []bool{false, true} {
		r := newToyRun(t, GRPO, 1)
		r.cfg.Steps = 1
		n := 0
		r.grade = func(*rollout.Problem, *rollout.Completion) rollout.Verdict {
			v := rollout.Verdict{Status: rollout.Graded, Correct: n%2 == 0, Reward: float64(n % 2)}
			if says {
				v.Basis = []rollout.Basis{rollout.ByProof, rollout.ByUnit, rollout.ByGuess, rollout.ByProof}[n%4]
			}
			n++
			return v
		}
		tr := r.start()
		tr.Grader = inOrder{r.grade}
		if err := tr.Run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		got := -1.0
		for _, m := range r.steps[0].Metrics {
			if m.Name == "reward/suspicious" {
				got = m.Value
			}
		}
		if want := map[bool]float64{false: -1, true: 0.25}[says]; got != want {
			t.Errorf("says %v: reward/suspicious is %v, want %v", says, got, want)
		}
	}
}

// Metrics of a kind of problems are over its graded completions; a kind without any has none.
func TestKindMetrics(t *testing.T) {
	var all []Trajectory
	for _, x := range []struct {
		kind    string
		status  rollout.Status
		correct bool
		reward  float64
	}{
		{"math", rollout.Graded, true, 2}, {"math", rollout.Graded, false, -1}, {"math", rollout.NotGraded, true, 7},
		{"code", rollout.Graded, true, 4}, {"prompts", rollout.NotGraded, false, 0}, {"", rollout.Graded, true, 1},
	} {
		all = append(all, Trajectory{Problem: &rollout.Problem{Kind: x.kind},
			Verdict: rollout.Verdict{Status: x.status, Correct: x.correct, Reward: x.reward}})
	}
	want := []rl.Metric{{Name: "train/accuracy/code", Value: 1}, {Name: "train/score/code", Value: 4},
		{Name: "train/accuracy/math", Value: 0.5}, {Name: "train/score/math", Value: 0.5}}
	if got := kindMetrics(all); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
