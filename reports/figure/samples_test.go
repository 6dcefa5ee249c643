package figure

import (
	"math"
	"math/rand/v2"
	"slices"
)

// drawer is any kind of figure.
type drawer interface{ Draw() (Figure, error) }

// sample is a figure that several tests draw: the golden SVGs, determinism, alt
// texts and captions.
type sample struct {
	drawer
	name string
}

// learning is a made-up learning curve of n steps from lo to hi with noise.
func learning(rng *rand.Rand, n int, lo, hi, noise float64) Series {
	var s Series
	for i := range n {
		t := float64(i) / float64(max(n-1, 1))
		s.Step = append(s.Step, float64(i))
		s.Y = append(s.Y, lo+(hi-lo)*(1-math.Exp(-3*t))+noise*rng.NormFloat64())
	}
	return s
}

func arm(rng *rand.Rand, name string, seeds, n int, lo, hi, noise float64) Arm {
	a := Arm{Name: name}
	for range seeds {
		a.Seeds = append(a.Seeds, learning(rng, n, lo, hi+noise*rng.NormFloat64(), noise))
	}
	return a
}

var (
	stepAxis     = Axis{Label: "training step"}
	accuracyAxis = Axis{Label: "accuracy on held-out problems", Unit: "share"}
)

func samples() []sample {
	return slices.Concat(curveSamples(), passKSamples(), barSamples(), scatterSamples(), phaseSamples(),
		distributionSamples(), forestSamples(), profileSamples(), dotsSamples(), itemsSamples())
}

func head(name, title string) Head {
	return Head{Name: name, Title: title, About: "Made-up numbers", Order: []string{"FlowRL", "PPO", "GRPO"}}
}

func estimate(v, half float64) Estimate { return Estimate{Value: v, Lo: v - half, Hi: v + half} }

func curveSamples() []sample {
	rng := rand.New(rand.NewPCG(1, 2))
	three := Curve{
		Head: head("accuracy", "Accuracy on held-out problems"), X: stepAxis, Y: accuracyAxis,
		Arms: []Arm{
			arm(rng, "FlowRL", 3, 60, .21, .56, .012),
			arm(rng, "PPO", 3, 60, .21, .44, .012),
			arm(rng, "GRPO", 3, 60, .21, .35, .012),
		},
		Reference: &Reference{Name: "SFT start", Value: .21},
	}
	smoothed := Curve{
		Head: head("reward", "Mean reward of a batch"), X: stepAxis, Y: Axis{Label: "reward"}, Smooth: 9,
		Arms: []Arm{
			arm(rng, "FlowRL", 3, 200, .1, .52, .08),
			arm(rng, "PPO", 1, 200, .1, .5, .08),
		},
	}
	tokens := Curve{
		Head: head("kl", "Divergence from the reference policy"), Band: TInterval,
		X: Axis{Label: "tokens", Unit: "sampled"}, Y: Axis{Label: "KL to reference", Unit: "nats per token", Log: true},
		Arms: []Arm{
			arm(rng, "FlowRL", 3, 80, 2e-4, .08, 1e-4),
			arm(rng, "PPO", 3, 50, 2e-4, .02, 1e-4),
		},
	}
	for i := range tokens.Arms {
		for j := range tokens.Arms[i].Seeds {
			s := &tokens.Arms[i].Seeds[j]
			for _, v := range s.Step {
				s.X = append(s.X, v*(15000+float64(j)*300))
			}
		}
	}
	gaps := Curve{
		Head: head("gaps", "A metric with gaps"), X: stepAxis, Y: Axis{Label: "loss"},
		Arms: []Arm{arm(rng, "FlowRL", 2, 40, 3, 1, .1), arm(rng, "PPO", 1, 20, 3, 2, .1)},
	}
	for i := 10; i < 15; i++ {
		gaps.Arms[0].Seeds[0].Y[i], gaps.Arms[0].Seeds[1].Y[i] = math.NaN(), math.Inf(1)
	}
	gaps.Arms[0].Seeds[0].Y[20] = math.NaN()
	gaps.Arms[1].Seeds[0].Y[5], gaps.Arms[1].Seeds[0].Y[7] = math.NaN(), math.NaN()
	twelve := Curve{
		Head: Head{Name: "twelve", Title: "Twelve arms with names of very different lengths, and a title that needs more than one line to be read"},
		X:    stepAxis, Y: accuracyAxis,
	}
	for i := range 12 {
		name := []string{"A", "flowrl beta=15", "a rather long name of an arm", "ppo"}[i%4]
		twelve.Arms = append(twelve.Arms, arm(rng, name+" "+string(rune('a'+i)), 2, 40, .2, .25+.03*float64(i), .006))
	}
	constant := Curve{
		Head: head("constant", "A constant"), X: stepAxis, Y: Axis{Label: "learning rate"},
		Arms: []Arm{{Name: "FlowRL", Seeds: []Series{{Step: []float64{0, 1, 2, 3}, Y: []float64{3e-6, 3e-6, 3e-6, 3e-6}}}}},
	}
	one := Curve{
		Head: head("one", "One point"), X: stepAxis, Y: accuracyAxis,
		Arms: []Arm{{Name: "FlowRL", Seeds: []Series{{Step: []float64{7}, Y: []float64{.4}}, {Step: []float64{7}, Y: []float64{.5}}}}},
	}
	huge := Curve{
		Head: head("huge", "Huge and negative values"), X: Axis{Label: "tokens"}, Y: Axis{Label: "loss", Zero: true},
		Arms: []Arm{{Name: "FlowRL", Seeds: []Series{{Step: []float64{1e12, 2e12, 3e12}, Y: []float64{-4.1e17, 2e16, -1.3e17}}}}},
	}
	var out []sample
	for _, c := range []Curve{three, smoothed, tokens, gaps, twelve, constant, one, huge} {
		out = append(out, sample{c, c.Name})
	}
	return out
}

func passKSamples() []sample {
	points := func(p float64, ks ...int) []PassKPoint {
		var out []PassKPoint
		for _, k := range ks {
			v := 1 - math.Pow(1-p, math.Sqrt(float64(k)))
			out = append(out, PassKPoint{k, estimate(v, .04)})
		}
		return out
	}
	two := PassK{
		Head: head("passk", "pass@k on the test suite"), Problems: 256, Samples: 16,
		Interval: "95 % cluster bootstrap over problems",
		Arms: []PassKArm{
			{"FlowRL", 3, points(.35, 1, 2, 4, 8, 16)},
			{"PPO", 3, points(.4, 1, 2, 4, 8, 16)},
		},
	}
	two.Arms[1].Points[4].Estimate = estimate(.74, .04)
	odd := PassK{
		Head: head("passk-odd", "pass@k with a gap, and an arm of one k"),
		Arms: []PassKArm{{"FlowRL", 0, points(.3, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)}, {"GRPO", 0, points(.5, 4)}},
	}
	odd.Arms[0].Points[3].Value = math.NaN()
	return []sample{{two, two.Name}, {odd, odd.Name}}
}

func barSamples() []sample {
	suites := Bar{
		Head: head("bars", "Accuracy by suite"), Y: Axis{Label: "accuracy", Unit: "share of problems"},
		Groups: []string{"countdown, 3 numbers", "countdown, 4 numbers", "word problems"}, Interval: "95 % two-level bootstrap",
		Arms: []ArmValues{
			{"FlowRL", 3, []Estimate{estimate(.72, .03), estimate(.56, .04), estimate(.31, .05)}},
			{"PPO", 3, []Estimate{estimate(.7, .03), estimate(.44, .04), Point(.35)}},
			{"GRPO", 3, []Estimate{estimate(.65, .03), Point(math.NaN()), estimate(.3, .05)}},
		},
	}
	many := Bar{
		Head: Head{Name: "bars-many", Title: "Twelve arms, six suites, some below zero"}, Y: Axis{Label: "change since the start"},
		Groups: []string{"a", "a suite with a name that does not fit under its bars at all", "c", "d", "e", "f"},
	}
	for i := range 12 {
		a := ArmValues{Name: "arm " + string(rune('a'+i)), Seeds: 1 + i%3}
		for g := range many.Groups {
			a.Values = append(a.Values, estimate(.1*float64(g-2)+.02*float64(i), .03))
		}
		many.Arms = append(many.Arms, a)
	}
	return []sample{{suites, suites.Name}, {many, many.Name}}
}

func scatterSamples() []sample {
	x := Axis{Label: "pass@1", Unit: "share of problems"}
	y := Axis{Label: "distinct correct solutions", Unit: "per problem, 16 samples"}
	three := Scatter{
		Head: head("diversity", "Diversity against accuracy"), X: x, Y: y, Interval: "95 % t interval over seeds",
		Arms: []ScatterArm{
			{"FlowRL", estimate(.55, .03), estimate(2.4, .2), [][2]float64{{.54, 2.3}, {.56, 2.5}, {.55, 2.41}}},
			{"PPO", estimate(.57, .02), estimate(1.3, .1), [][2]float64{{.56, 1.3}, {.58, 1.25}, {.57, 1.35}}},
			{"GRPO", estimate(.5, .02), estimate(1.6, .15), [][2]float64{{.49, 1.6}, {.51, 1.7}, {.5, 1.5}}},
		},
	}
	close := Scatter{
		Head: Head{Name: "diversity-close", Title: "Arms that lie on top of each other"}, X: x, Y: y,
		Interval: "95 % t interval over seeds",
	}
	for i := range 9 {
		v := .5 + .001*float64(i)
		close.Arms = append(close.Arms, ScatterArm{"arm " + string(rune('a'+i)), estimate(v, .02), estimate(2+v, .02), nil})
	}
	return []sample{{three, three.Name}, {close, close.Name}}
}

func phaseSamples() []sample {
	two := Phases{
		Head: head("phases", "Time per phase"), Per: "per step",
		Phases: []string{"sampling", "grading", "old and reference log-probs", "forward and backward", "optimizer", "online evaluation", "checkpoint"},
		Rows: []PhaseRow{
			{"FlowRL", []float64{1.31, .02, .42, 1.1, .05, .2, .004}},
			{"PPO", []float64{1.28, .02, .41, 1.7, .09, math.NaN(), .004}},
		},
	}
	return []sample{{two, two.Name}}
}

func distributionSamples() []sample {
	bump := func(center, width, height float64, x int) float64 {
		d := (float64(x) - center) / width
		return height * math.Exp(-d*d/2)
	}
	mix := func(a, b, c, beta float64) []float64 {
		ps := make([]float64, 48)
		var sum float64
		for i := range ps {
			ps[i] = math.Exp(beta * (bump(8, 2, a, i) + bump(23, 3, b, i) + bump(38, 1.5, c, i)))
			sum += ps[i]
		}
		for i := range ps {
			ps[i] /= sum
		}
		return ps
	}
	toy := Distribution{
		Head: head("toy", "A toy with a known optimum"), Outcome: Axis{Label: "outcome"},
		Target: mix(1, .8, .9, 5),
		Arms: []DistributionArm{
			{"FlowRL", [][]float64{mix(1, .8, .9, 4.9), mix(.98, .83, .88, 5), mix(1, .77, .93, 5.1)}, []float64{.008, .011, .02}},
			{"PPO", [][]float64{mix(3, .2, .1, 5)}, []float64{math.Inf(1)}},
			{"GRPO", [][]float64{mix(1.3, .6, .7, 5), mix(1.2, .7, .9, 5)}, []float64{.31, .17}},
		},
	}
	six := Distribution{
		Head: Head{Name: "toy-six", Title: "Six arms"}, Outcome: Axis{Label: "outcome"}, Target: mix(1, .8, .9, 5),
	}
	for i := range 5 {
		six.Arms = append(six.Arms, DistributionArm{"beta " + string(rune('1'+i)), [][]float64{mix(1, .8, .9, float64(i+1))}, []float64{.3 / float64(i+1)}})
	}
	return []sample{{toy, toy.Name}, {six, six.Name}}
}

func forestSamples() []sample {
	four := Forest{
		Head: head("forest", "Paired differences, FlowRL minus PPO"), X: Axis{Label: "difference", Unit: "share of problems"},
		Interval: "95 % cluster bootstrap over problems", Less: "PPO higher", More: "FlowRL higher",
		Rows: []ForestRow{
			{"countdown, pass@1", 3, estimate(.042, .032), "p = 0.012"},
			{"countdown, pass@16", 3, estimate(.11, .05), "p < 0.001"},
			{"word problems, pass@1 with a long name", 3, estimate(-.02, .04), "p = 0.33"},
			{"only two problems", 3, Point(.01), ""},
			{"missing", 3, Point(math.NaN()), "no common problems"},
		},
	}
	left := Forest{
		Head: Head{Name: "forest-left", Title: "One difference below zero"}, X: Axis{Label: "difference", Unit: "tokens"},
		Less: "a sentence that is too long for the space at its side", More: "another such sentence, just as long",
		Rows: []ForestRow{{"length", 0, estimate(-1200, 300), ""}},
	}
	odds := Forest{
		Head: head("improvement", "Probability of improvement"), X: Axis{Label: "P(a run of the first arm scores more)"}, Null: 0.5,
		Interval: "95 % bootstrap over seeds", Less: "worse", More: "better",
		Rows: []ForestRow{{"FlowRL over PPO", 3, Estimate{.78, .44, 1}, ""}, {"FlowRL over GRPO", 3, Estimate{.5, .22, .78}, ""}},
	}
	return []sample{{four, four.Name}, {left, left.Name}, {odds, odds.Name}}
}

func profileSamples() []sample {
	f := Profile{Head: head("profile", "Performance profile"), X: Axis{Label: "threshold", Unit: "share of right completions"},
		Y: Axis{Label: "problems above the threshold", Unit: "share", Zero: true}, Interval: "95 % two-level bootstrap over seeds and problems"}
	for i := range 16 {
		f.Thresholds = append(f.Thresholds, float64(i)/16)
	}
	for a, name := range []string{"FlowRL", "PPO", "GRPO"} {
		arm := ProfileArm{Name: name, Seeds: 3}
		for _, t := range f.Thresholds {
			arm.Share = append(arm.Share, estimate(.9*math.Pow(1-t, 0.6+0.8*float64(a)), .03))
		}
		f.Arms = append(f.Arms, arm)
	}
	return []sample{{f, f.Name}}
}

func dotsSamples() []sample {
	f := Dots{Head: head("aggregate", "Aggregates over suites"), X: Axis{Label: "score", Unit: "share of completions"},
		Groups: []string{"mean", "interquartile mean", "optimality gap"}, Interval: "95 % bootstrap stratified by suite",
		Arms: []ArmValues{
			{"FlowRL", 3, []Estimate{estimate(.52, .03), estimate(.55, .04), estimate(.48, .03)}},
			{"PPO", 3, []Estimate{estimate(.44, .02), estimate(.43, .03), estimate(.56, .02)}},
			{"an arm with a name that is far too long for a tick", 1, []Estimate{Point(.4), Point(math.NaN()), Point(.6)}},
		}}
	return []sample{{f, f.Name}}
}

func itemsSamples() []sample {
	rng := rand.New(rand.NewPCG(5, 6))
	row := func(n int, skill float64) []float64 {
		shares := make([]float64, n)
		for i := range shares {
			p := 1 / (1 + math.Exp(8*(float64(i)/float64(n)-skill)))
			for range 8 {
				if rng.Float64() < p {
					shares[i] += 1.0 / 8
				}
			}
		}
		return shares
	}
	seeds := []string{"seed 0", "seed 1", "seed 12"}
	f := Items{Head: head("items", "Problems solved by FlowRL and PPO"), Samples: 8, Arms: [2]ItemsArm{
		{"FlowRL", seeds, [][]float64{row(120, .55), row(120, .6), row(120, .5)}}, {"PPO", seeds, [][]float64{row(120, .3), row(120, .35), row(120, .2)}}}}
	many := Items{Head: head("items-many", "More problems than columns"), Arms: [2]ItemsArm{
		{"PPO", seeds[2:], [][]float64{row(900, .4)}}, {"GRPO", seeds, [][]float64{row(900, .4), row(900, .5)}}}}
	few := Items{Head: Head{Name: "items-few", Title: "Two problems"}, Arms: [2]ItemsArm{
		{"a", nil, [][]float64{{1, math.NaN()}}}, {"b", nil, [][]float64{{0, .5}}}}}
	return []sample{{f, f.Name}, {many, many.Name}, {few, few.Name}}
}
