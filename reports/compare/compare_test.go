package compare

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval"
	"exp/experiments/store"
)

// Two runs, four problems with two samples each:
//
//	A  2 1 1 0 correct  →  1 .5 .5 0,  mean .5
//	B  1 1 0 0 correct  →  .5 .5 0 0,  mean .25
//	d  .5 0 .5 0        mean .25, deviations ±.25, Σ² = .25
//	SE      sqrt(4/3 · .25) / 4 = .1443376         MDE (3.1824463 + .9784723)·SE = .6005769
//	t(.975, 3) = 3.1824463: .25 ± .4593467
//	p       signs of the two that are not 0: ++ and -- of four, .5
//	effect  .25 / sqrt(.25/3) = .8660254
func TestOneRunAnArm(t *testing.T) {
	f := newFixture(t)
	a := f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...))
	b := f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	s := &r.Suites[0]
	if s.Name != "countdown/test" || s.Items != 4 || s.Clusters != 4 || s.Samples != 2 || s.SeedVariance {
		t.Errorf("suite %+v", *s)
	}
	m := s.Metric("pass@1")
	near(t, "mean of A", m.Arms[0].Mean, 0.5)
	near(t, "mean of B", m.Arms[1].Mean, 0.25)
	p := m.Pairs[0]
	near(t, "delta", p.Delta, 0.25)
	near(t, "SE", p.SE, 0.1443376)
	near(t, "MDE", p.MDE, 0.6005769)
	near(t, "lo", &p.Interval.Lo, 0.25-0.4593467)
	near(t, "hi", &p.Interval.Hi, 0.25+0.4593467)
	near(t, "p", p.P, 0.5)
	near(t, "effect", p.Effect, 0.8660254)
	if !p.Exact || p.Verdict != Underpowered || p.Interval.Kind != OverItems || p.Interval.Method != "t" {
		t.Errorf("pair %+v of %+v", p, *p.Interval)
	}
	// pass@2 of c correct of 2 is 1 unless c is 0.
	near(t, "pass@2 of A", s.Metric("pass@2").Arms[0].Mean, 0.75)
	near(t, "pass@2 of B", s.Metric("pass@2").Arms[1].Mean, 0.5)
	if got := len(s.Curves[1].Points); got != 2 {
		t.Errorf("%d points on the curve, want k = 1 and 2", got)
	}
	// Tests: pass@1, pass@2, distinct_correct, solved_two_ways.
	if r.Tests != 4 {
		t.Errorf("%d tests, want 4", r.Tests)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "training-seed variance not measured") }) {
		t.Errorf("notes %q", r.Notes)
	}
	if c := r.Cost[0]; c.TrainS != 2 || c.UpstreamS != 1 || c.EvalS != 0.75 || c.Machine != "cpu/test" {
		t.Errorf("cost %+v", c)
	}
}

// Three runs an arm, two problems with one sample each:
//
//	A  run means .5 .5 1: problem 1 is 1 1 1, problem 2 is 0 0 1, means 1 and 1/3
//	B  always 0
//	d  1, 1/3    mean 2/3, SE_problems = sqrt(2 · 2/9) / 2 = 1/3
//	S = s_A²/3 = ((1/6)²·2 + (1/3)²)/2/3 = 1/36
//	C = 2 · (4·(1/6)² + 2·(1/3)²) / (3·2·4) = 1/36,  SE = sqrt(1/36 + 1/9 - 1/36) = 1/3
//	DF = (1/9)² / ((1/36)²/2 + (1/12)²/1) = 32/19,  t = 2 (p by Simpson's rule)
func TestThreeRunsAnArm(t *testing.T) {
	f := newFixture(t)
	var a, b []store.Run
	for seed, second := range []int{0, 0, 2} {
		a = append(a, f.put(plainRun("flow", "flowrl", int64(seed), answers(2, second)...)))
		b = append(b, f.put(plainRun("ppo", "ppo", int64(seed), answers(0, 0)...)))
	}
	r, err := f.compareRuns(Options{Metrics: []string{"pass@1"}}, a, b)
	f.must(err)
	m := r.Suites[0].Metric("pass@1")
	p := m.Pairs[0]
	near(t, "delta", p.Delta, 2.0/3)
	near(t, "SE", p.SE, 1.0/3)
	near(t, "p", p.P, 0.2068308)
	if !r.Suites[0].SeedVariance || p.Interval.Kind != TwoLevel || !p.PairedSeeds || m.Arms[0].Interval.Kind != TwoLevel {
		t.Errorf("pair %+v, interval %+v", p, *p.Interval)
	}
	for i, want := range []float64{0.5, 0.5, 1} {
		near(t, "run of A", m.Arms[0].Seeds[i].Value, want)
	}
	if r.Tests != 1 || *p.PHolm != *p.P {
		t.Errorf("%d tests, p Holm %g, want one test that changes nothing", r.Tests, *p.PHolm)
	}
	if other := r.Suites[0].Metric("distinct_correct"); other.Tested || other.Pairs[0].P != nil || other.Pairs[0].Verdict != "" || other.Pairs[0].Interval == nil {
		t.Errorf("a metric that was not asked for: %+v", other.Pairs[0])
	}
}

// Where no run has a right answer nothing varies, so none of the four usual metrics is tested; where some runs of one
// arm have right answers all are.
func TestNothingVaries(t *testing.T) {
	f := newFixture(t)
	var zero, other, some []store.Run
	for seed := range int64(3) {
		zero = append(zero, f.put(plainRun("flow", "flowrl", seed, answers(0, 0)...)))
		other = append(other, f.put(plainRun("ppo", "ppo", seed, answers(0, 0)...)))
		some = append(some, f.put(plainRun("grpo", "grpo", seed, answers(int(seed), 1)...)))
	}
	for _, test := range []struct {
		arm  []store.Run
		want int
	}{{other, 0}, {some, 4}} {
		r, err := f.compareRuns(Options{}, zero, test.arm)
		f.must(err)
		if r.Tests != test.want {
			t.Errorf("%d tests, want %d", r.Tests, test.want)
		}
	}
}

func TestStart(t *testing.T) {
	f := newFixture(t)
	with := func(r fakeRun, before ...int) fakeRun {
		r.suites["test@start"] = answers(before...)
		return r
	}
	a := f.put(with(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...), 1, 0, 0, 0))
	b := f.put(with(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...), 1, 0, 0, 0))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	if len(r.Suites) != 1 {
		t.Fatalf("%d suites: the start is not a suite", len(r.Suites))
	}
	e := r.Suites[0].Metric("pass@1").Arms[0]
	near(t, "start", e.Start, 0.125) // 1 of 8 samples
	near(t, "gain", e.Gain, 0.375)
	near(t, "start of pass@2", r.Suites[0].Curves[0].Points[1].Start, 0.25)
}

// A metric without scores of problems is compared by run: 1 2 3 against 2 4 6.
// SE = sqrt(1/3 + 4/3) = 1.2909944, t = -2/SE = -1.5491933. With Welch's 50/17 degrees
// of freedom (by Simpson's rule) p = 0.2208808 and t(.975) = 3.2187586: -2 ± 4.1553995.
// d = -1 -2 -3: effect -2/1.
func TestMetricOfRuns(t *testing.T) {
	f := newFixture(t)
	var a, b []store.Run
	for seed := range int64(3) {
		x := plainRun("flow", "flowrl", seed, answers(1)...)
		x.extra = map[string]float64{"kl_target": float64(seed + 1)}
		y := plainRun("ppo", "ppo", seed, answers(1)...)
		y.extra = map[string]float64{"kl_target": float64(2 * (seed + 1))}
		a, b = append(a, f.put(x)), append(b, f.put(y))
	}
	r, err := f.compareRuns(Options{}, a, b)
	f.must(err)
	m := r.Suites[0].Metric("kl_target")
	if m == nil || !m.ByRun || !m.Tested || m.Direction != "down" {
		t.Fatalf("metric %+v", m)
	}
	p := m.Pairs[0]
	near(t, "delta", p.Delta, -2)
	near(t, "p", p.P, 0.2208808)
	near(t, "SE", p.SE, 1.2909944)
	near(t, "effect", p.Effect, -2)
	near(t, "lo", &p.Interval.Lo, -2-4.1553995)
	if p.Interval.Kind != OverSeeds || p.Interval.Method != "t" {
		t.Errorf("interval %+v", p.Interval)
	}
	// One problem says nothing of others, so its metrics are of runs too.
	if pass := r.Suites[0].Metric("pass@1"); pass == nil || !pass.ByRun {
		t.Errorf("pass@1 on one problem: %+v", pass)
	}
}

func TestRefused(t *testing.T) {
	set := func(key, value string) func(r *fakeRun) {
		return func(r *fakeRun) { r.config = map[string]string{key: value} }
	}
	rates := func(least string) func(r *fakeRun) {
		return func(r *fakeRun) {
			r.rated, r.config = true, map[string]string{"data.pass_rate.min": least}
		}
	}
	judgedBy := func(kind string) func(r *fakeRun) {
		return func(r *fakeRun) {
			r.protocol = map[string]string{"eval.final.n": "2", "eval.final.temperature": "1", "reward.kind": kind}
		}
	}
	for _, test := range []struct {
		name   string
		both   func(r *fakeRun)
		change func(r *fakeRun) // of the second arm
		o      Options
		want   string // refused keys
		waived string
	}{
		{name: "only the treatment", change: func(*fakeRun) {}},
		{name: "a controlled key", change: set("train.optim.lr", "0.002"), want: "train.optim.lr"},
		{name: "made the treatment", change: set("train.optim.lr", "0.002"), o: Options{Vary: []string{"train.optim"}}},
		{name: "waived", change: set("train.optim.lr", "0.002"), o: Options{Allow: []string{"train.optim.lr"}}, waived: "train.optim.lr"},
		{name: "another waiver", change: set("train.optim.lr", "0.002"), o: Options{Allow: []string{"train.steps"}}, want: "train.optim.lr"},
		{name: "no effect on results", change: set("checkpoint.keep", "5")},
		{name: "the run's seed", change: set("seed", "7")},
		{name: "a key of an unknown program", change: set("train.magic", "1"), want: "train.magic"},
		{name: "protocol", change: func(r *fakeRun) { r.protocol = map[string]string{"eval.final.n": "2", "eval.final.temperature": "0.6"} }, want: "eval.final.temperature"},
		{name: "protocol waived", change: func(r *fakeRun) { r.protocol = map[string]string{"eval.final.n": "2", "eval.final.temperature": "0.6"} },
			o: Options{Allow: []string{"eval.final.temperature"}}, waived: "eval.final.temperature"},
		{name: "other examples in a suite of the same name", both: func(r *fakeRun) { r.examples = "dev" },
			change: func(r *fakeRun) { r.examples = "newer dev" }, want: "suite.countdown/test.examples"},
		{name: "more suites and another k, of the same samples", change: func(r *fakeRun) {
			r.protocol = map[string]string{"eval.final.n": "2", "eval.final.temperature": "1", "eval.final.suites": `["test","val"]`, "eval.final.pass_k": "[2]"}
		}},
		{name: "sources of training", change: func(r *fakeRun) { r.code = map[string]string{"train": "other"} }, want: "code.train"},
		{name: "sources as the treatment", change: func(r *fakeRun) { r.code = map[string]string{"train": "other"} }, o: Options{Vary: []string{"code.train"}}},
		{name: "the scorer", change: func(r *fakeRun) { r.code = map[string]string{"eval.score": "other"} }, want: "code.eval.score"},
		{name: "initial weights", change: func(r *fakeRun) { r.weights = "other" }, want: "weights.start"},
		{name: "weights that follow from the treatment", change: func(r *fakeRun) {
			r.weights, r.config = "other", map[string]string{"model.seed": "1"}
		}, o: Options{Vary: []string{"model.seed"}}},
		{name: "a teacher, where algo varies", change: func(r *fakeRun) { r.outside = map[string]string{"teacher": "t"} }},
		{name: "a reward program behind the same command", change: func(r *fakeRun) { r.outside = map[string]string{"reward/command": "t"} }, want: "reward.program"},
		{name: "another judge of the final scores, even as the treatment", change: judgedBy(`"judge"`), o: Options{Vary: []string{"reward"}},
			want: "suite.countdown/test.reward"},
		{name: "another judge, waived", change: judgedBy(`"judge"`), o: Options{Allow: []string{"suite.countdown/test.reward"}},
			waived: "suite.countdown/test.reward"},
		{name: "a reward program as the treatment", change: func(r *fakeRun) { r.outside = map[string]string{"reward/command": "t"} }, o: Options{Vary: []string{"reward"}}},
		{name: "a reward model, waived", change: func(r *fakeRun) { r.outside = map[string]string{"reward/model": "t"} },
			o: Options{Allow: []string{"reward.weights"}}, waived: "reward.weights"},
		{name: "a tool's files", change: func(r *fakeRun) { r.outside = map[string]string{"tool/files": "t"} }, want: "rollout.tools.files"},
		{name: "Python's version is flagged", change: func(r *fakeRun) { r.outside = map[string]string{"tool/python": "3.13"} }},
		{name: "several at once", change: func(r *fakeRun) {
			r.weights, r.config = "other", map[string]string{"train.steps": "9"}
		}, want: "train.steps weights.start"},
		{name: "a choice of problems", change: rates("0.001"), want: "data.pass_rate.min code.pass_rate code.select"},
		{name: "a choice of problems as the treatment", change: rates("0.001"), o: Options{Vary: []string{"data.pass_rate"}}},
		{name: "another choice of problems, measured by other code", both: rates("0.001"), change: func(r *fakeRun) {
			rates("0.2")(r)
			r.code = map[string]string{"pass_rate": "other"}
		}, o: Options{Vary: []string{"data.pass_rate"}}, want: "code.pass_rate"},
		{name: "machines are flagged", change: func(r *fakeRun) { r.numerics = "cuda/sm_90" }},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t)
			first, second := plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...), plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...)
			if test.both != nil {
				test.both(&first)
				test.both(&second)
			}
			test.change(&second)
			a, b := f.put(first), f.put(second)
			r, err := f.compareRuns(test.o, []store.Run{a}, []store.Run{b})
			got, waived := "", ""
			var refused *NotComparableError
			switch {
			case errors.As(err, &refused):
				var keys []string
				for _, d := range refused.Comparability.Differences {
					if d.Refused() {
						keys = append(keys, d.Key)
					}
				}
				got = strings.Join(keys, " ")
				if refused.ExitCode() != 6 || refused.Comparability.OK {
					t.Errorf("exit code %d, ok %v", refused.ExitCode(), refused.Comparability.OK)
				}
			case err != nil:
				t.Fatal(err)
			default:
				waived = strings.Join(r.Comparability.Allow, " ")
				if text := strings.Join(r.Notes, "\n"); waived != "" && !strings.Contains(text, "waived: "+waived) {
					t.Errorf("notes %q do not tell the waiver", text)
				}
			}
			if got != test.want || waived != test.waived {
				t.Errorf("refused %q, waived %q; want %q, %q", got, waived, test.want, test.waived)
			}
		})
	}
}

// Keys of a variant that one arm does not have are the treatment.
func TestTreatment(t *testing.T) {
	f := newFixture(t)
	a, b := f.put(plainRun("flow", "flowrl", 0, answers(2, 1)...)), f.put(plainRun("ppo", "ppo", 0, answers(1, 0)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	want := []Difference{
		{Key: "algo.kind", Class: Treatment, Values: []string{"flowrl", "ppo"}},
		{Key: "algo.flowrl.beta", Class: Treatment, Values: []string{"15", ""}},
		{Key: "algo.gamma", Class: Treatment, Values: []string{"", "1"}},
	}
	if diff := cmp.Diff(want, r.Comparability.Differences); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	if v := r.Arms[1].Treatment["algo.gamma"]; v != "1" {
		t.Errorf("treatment of the second arm: gamma %q", v)
	}
}

func TestMixedArm(t *testing.T) {
	f := newFixture(t)
	old := plainRun("flow", "flowrl", 1, answers(1, 1, 1, 0)...)
	old.xid, old.config = "before", map[string]string{"algo.flowrl.beta": "5"}
	a := []store.Run{f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...)), f.put(old)}
	b := []store.Run{f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))}
	_, err := f.compareRuns(Options{}, a, b)
	var refused *NotComparableError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "algo.flowrl.beta") || len(refused.Arms[0].XIDs) != 2 {
		t.Errorf("error %v, want a refusal of the treatment differing within an arm", err)
	}
	r, err := f.compareRuns(Options{Allow: []string{"algo.flowrl.beta"}}, a, b)
	f.must(err)
	if len(r.Arms[0].Runs) != 2 {
		t.Errorf("%d runs, want both once the difference is waived", len(r.Arms[0].Runs))
	}
}

func TestExcluded(t *testing.T) {
	f := newFixture(t)
	good := f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...))
	stopped := plainRun("flow", "flowrl", 1, answers(1, 1, 1, 1)...)
	stopped.status = store.Interrupted
	unscored := plainRun("flow", "flowrl", 2)
	unscored.suites = nil
	replay := plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...)
	replay.numerics = "cuda/sm_90"
	a := []store.Run{good, f.put(stopped), f.put(unscored), good, f.put(replay)}
	b := []store.Run{f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))}
	r, err := f.compareRuns(Options{}, a, b)
	f.must(err)
	var reasons []string
	for _, x := range r.Comparability.Excluded {
		reasons = append(reasons, x.Reason)
	}
	slices.Sort(reasons)
	want := []string{"a replay of run " + a[4].RID.Short(), "interrupted at step 0 of 4", "without a final evaluation"}
	other := plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...)
	other.xid, other.config = "other", map[string]string{"train.optim.lr": "0.002"}
	_, err = f.compareRuns(Options{}, a, []store.Run{f.put(other)})
	var refused *NotComparableError
	if !errors.As(err, &refused) || len(refused.Comparability.Excluded) != len(want) {
		t.Errorf("a refusal leaves out other runs: %v", err)
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("excluded (-want +got):\n%s", diff)
	}
	if len(r.Arms[0].Runs) != 1 {
		t.Errorf("%d runs count, want 1: one rid is one observation", len(r.Arms[0].Runs))
	}

	_, err = f.compareRuns(Options{}, a[1:3], b)
	var none *IncompleteArmError
	if !errors.As(err, &none) || none.ExitCode() != 6 || !strings.Contains(err.Error(), "interrupted at step 0 of 4") || !strings.Contains(none.Hint(), "--seeds 1") {
		t.Errorf("error %v, want an incomplete arm and what to run", err)
	}

	_, err = f.compareRuns(Options{}, []store.Run{f.put(plainRun("unscored", "opo", 4))}, b)
	if !errors.As(err, &none) || !strings.HasPrefix(none.Hint(), "score it on a suite: exp eval ") {
		t.Errorf("error %v, want how to evaluate it", err)
	}

	halted := plainRun("stop", "opo", 3)
	halted.status = store.Stopped
	_, err = f.compareRuns(Options{}, []store.Run{f.put(halted)}, b)
	if !errors.As(err, &none) || !strings.HasSuffix(none.Hint(), " --stop-if none") {
		t.Errorf("error %v, want how to go on without the condition", err)
	}
}

func TestOptionErrors(t *testing.T) {
	f := newFixture(t)
	a := []store.Run{f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...))}
	b := []store.Run{f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))}
	for name, o := range map[string]Options{
		"suite aime has no scored run":   {Suites: []string{"aime"}},
		"metric speed does not exist":    {Metrics: []string{"speed"}},
		"k 3 exceeds the 2 samples":      {K: []int{3}},
		"k 0 is not a number of samples": {K: []int{0}},
		"alpha 1 is not a significance":  {Alpha: 1},
		"boot 3 is too few":              {Draws: 3},
		"vary tarin matches no key":      {Vary: []string{"tarin"}},
		"allow train is not a key":       {Allow: []string{"train"}},
	} {
		_, err := f.compareRuns(o, a, b)
		var bad *OptionError
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), name) || bad.Advice == "" {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	_, err := f.compareRuns(Options{}, a, a)
	if err == nil || !strings.Contains(err.Error(), "in two arms") {
		t.Errorf("error %v, want one about a run in two arms", err)
	}
	_, err = f.compareRuns(Options{}, a)
	if err == nil || !strings.Contains(err.Error(), "needs two") {
		t.Errorf("error %v, want one about a single arm", err)
	}
}

// The same runs in any order give the same bytes; exchanged arms give the same
// numbers with the other sign.
func TestOrder(t *testing.T) {
	f := newFixture(t)
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 0))
	var a, b []store.Run
	for s := range int64(4) {
		var x, y []int
		for range 30 {
			x, y = append(x, rng.IntN(3)), append(y, rng.IntN(3))
		}
		a = append(a, f.put(plainRun("flow", "flowrl", s, answers(x...)...)))
		b = append(b, f.put(plainRun("ppo", "ppo", s, answers(y...)...)))
	}
	render := func(o Options, arms ...[]store.Run) string {
		r, err := f.compareRuns(o, arms...)
		f.must(err)
		text, err := json.Marshal(r)
		f.must(err)
		return string(text)
	}
	want := render(Options{}, a, b)
	for range 5 {
		rng.Shuffle(len(a), func(i, j int) { a[i], a[j] = a[j], a[i] })
		rng.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		if diff := cmp.Diff(want, render(Options{}, a, b)); diff != "" {
			t.Fatalf("seed %d: the order of runs matters (-first +now):\n%s", seed, diff)
		}
	}
	r, err := f.compareRuns(Options{}, a, b)
	f.must(err)
	q, err := f.compareRuns(Options{}, b, a)
	f.must(err)
	x, y := r.Suites[0].Metric("pass@1").Pairs[0], q.Suites[0].Metric("pass@1").Pairs[0]
	if *x.Delta != -*y.Delta || math.Abs(x.Interval.Lo+y.Interval.Hi) > 1e-12 || *x.P != *y.P {
		t.Errorf("A - B is %g [%g, …], p %g; B - A is %g […, %g], p %g", *x.Delta, x.Interval.Lo, *x.P, *y.Delta, y.Interval.Hi, *y.P)
	}
}

func TestArms(t *testing.T) {
	f := newFixture(t)
	var runs []store.Run
	for seed := range int64(2) {
		runs = append(runs, f.put(plainRun("b", "ppo", seed, answers(1, 1)...)), f.put(plainRun("a", "flowrl", seed, answers(1, 1)...)))
	}
	other := plainRun("a", "flowrl", 0, answers(1, 1)...)
	other.xid, other.config = "a2", map[string]string{"algo.flowrl.beta": "5"}
	runs = append(runs, f.put(other))
	for _, test := range []struct{ by, want string }{
		{"", "a ×2, a ×1, b ×2"},
		{"name", "a ×3, b ×2"},
		{"algo", "flowrl ×3, ppo ×2"},
		{"algo.kind", "flowrl ×3, ppo ×2"},
		{"seed", "seed=0 ×3, seed=1 ×2"},
		{"config.algo.flowrl.beta", "beta=5 ×1, beta=15 ×2, no algo.flowrl.beta ×2"},
	} {
		arms, err := Arms(context.Background(), f.db, runs, test.by)
		f.must(err)
		var got []string
		for i := range arms {
			got = append(got, arms[i].shown()+" ×"+string(rune('0'+len(arms[i].Runs))))
		}
		// The two experiments named a stand in the order of their xids.
		if test.by == "" && got[0] == "a ×1" {
			got[0], got[1] = got[1], got[0]
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("by %q: %s, want %s", test.by, strings.Join(got, ", "), test.want)
		}
	}
	arms, err := Arms(context.Background(), f.db, runs, "")
	f.must(err)
	labels := Labels(arms)
	for i, l := range labels {
		if !strings.HasPrefix(l, "a") {
			continue
		}
		if want := "a flowrl " + arms[i].Runs[0].XID.Short(); l != want {
			t.Errorf("label %q, want %q: the name and the algorithm do not tell the arms apart", l, want)
		}
	}
	// One experiment against one of its own seeds.
	same := []store.Run{f.put(plainRun("c", "ppo", 0, answers(1)...)), f.put(plainRun("c", "ppo", 1, answers(1)...)),
		f.put(plainRun("c", "ppo", 3, answers(1)...))}
	labels = Labels([]Arm{{Runs: same[1:]}, {Runs: same[:1]}})
	if !strings.HasSuffix(labels[0], " seeds 1,3") || !strings.HasSuffix(labels[1], " seed 0") {
		t.Errorf("labels %q", labels)
	}
	if _, err := Arms(context.Background(), f.db, runs, "colour"); err == nil {
		t.Error("no error for a field that does not exist")
	}
}

// With a baseline only pairs with the last arm are compared.
func TestPairs(t *testing.T) {
	f := newFixture(t)
	var arms [][]store.Run
	for i, algo := range []string{"flowrl", "grpo", "ppo"} {
		arms = append(arms, []store.Run{f.put(plainRun(algo, algo, 0, answers(2, i, 1, 0)...))})
	}
	for _, test := range []struct {
		o     Options
		want  [][2]int
		tests int // of four metrics for each pair, those in which some problem's score differs
	}{{Options{}, [][2]int{{0, 1}, {0, 2}, {1, 2}}, 10}, {Options{Baseline: true}, [][2]int{{0, 2}, {1, 2}}, 7}} {
		r, err := f.compareRuns(test.o, arms...)
		f.must(err)
		if diff := cmp.Diff(test.want, r.pairs()); diff != "" {
			t.Errorf("pairs (-want +got):\n%s", diff)
		}
		if r.Tests != test.tests {
			t.Errorf("%d tests, want %d", r.Tests, test.tests)
		}
		for _, m := range r.Suites[0].Metrics {
			for _, p := range m.Pairs {
				if differs := *p.Delta != 0 || p.Effect != nil && *p.Effect != 0; m.Tested && differs != (p.P != nil) {
					t.Errorf("%s, pair %d-%d: p %v where the difference is %v", m.Name, p.A, p.B, p.P, *p.Delta)
				}
			}
		}
	}
}

// A run that was scored in two ways is compared in the way that the other arm has,
// though the other one is newer.
func TestCommonProtocol(t *testing.T) {
	f := newFixture(t)
	first := plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...)
	a := f.put(first)
	again := first
	again.protocol = map[string]string{"eval.final.n": "2", "eval.final.temperature": "0.6"}
	again.suites = map[string][]eval.Item{"test": answers(2, 2, 2, 2)}
	f.evaluate(again, a, "test")
	b := f.put(plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...))
	r, err := f.compareRuns(Options{}, []store.Run{a}, []store.Run{b})
	f.must(err)
	near(t, "delta under the common protocol", r.Suites[0].Metric("pass@1").Pairs[0].Delta, 0.25)
}

func TestPairing(t *testing.T) {
	f := newFixture(t)
	a := []store.Run{f.put(plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...))}
	fewer := plainRun("ppo", "ppo", 0, answers(1, 1, 0)...)
	b := []store.Run{f.put(fewer)}
	_, err := f.compareRuns(Options{}, a, b)
	var bad *PairingError
	if !errors.As(err, &bad) || bad.Why != "4 and 3 problems" {
		t.Errorf("error %v, want one about problems that cannot be paired", err)
	}
}

// Without scores of problems, what was recorded of the runs is compared.
func TestScoresNotKept(t *testing.T) {
	f := newFixture(t)
	x := plainRun("flow", "flowrl", 0, answers(2, 1, 1, 0)...)
	x.extra = map[string]float64{"no scores": math.NaN()}
	y := plainRun("ppo", "ppo", 0, answers(1, 1, 0, 0)...)
	r, err := f.compareRuns(Options{}, []store.Run{f.put(x)}, []store.Run{f.put(y)})
	f.must(err)
	m := r.Suites[0].Metric("pass@1")
	near(t, "delta", m.Pairs[0].Delta, 0.25)
	if !m.ByRun || m.Pairs[0].P != nil || m.Pairs[0].Verdict != Underpowered {
		t.Errorf("metric %+v", m.Pairs[0])
	}
}
