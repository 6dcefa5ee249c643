package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"exp/train/rollout"
)

// ProblemMark stands for the problem in the prompt of a suite.
const ProblemMark = "{problem}"

// The ways to compare likelihoods of options.
const (
	ByLetter = "letter" // of the letters, behind the question with its options
	ByOption = "option" // of the options' texts, behind the question alone
	// ByBlank: of the text behind a question's blank, with each option in the blank. Trinh and Le call it partial
	// evaluation (2018, arXiv:1806.02847, section 3.1).
	ByBlank = "blank"
)

// Ways lists them.
func Ways() []string { return []string{ByLetter, ByOption, ByBlank} }

// LikelihoodGraders names the graders that compare the likelihoods of a question's options: by their sums of
// log-probs, and by those sums per character and per byte of the option. They are acc, acc_norm and acc_bytes of
// lm-evaluation-harness, which counts no space before an option.
func LikelihoodGraders() []string {
	return []string{"likelihood", "likelihood_per_char", "likelihood_per_byte"}
}

// ByLikelihood reports whether a grader compares likelihoods of options.
func ByLikelihood(grader string) bool { return slices.Contains(LikelihoodGraders(), grader) }

// Likelihood returns a grader of LikelihoodGraders: an answer is right if the right option has the largest value; of
// equal values the first option wins. The verdict's answer is the letter of the chosen option, and its reason has the
// values of all.
func Likelihood(grader string) (rollout.Grader, error) {
	switch grader {
	case "likelihood":
		return likelihood{func(o rollout.OptionScore) float64 { return o.LogProb }}, nil
	case "likelihood_per_char":
		return likelihood{func(o rollout.OptionScore) float64 { return o.LogProb / float64(o.Chars) }}, nil
	case "likelihood_per_byte":
		return likelihood{func(o rollout.OptionScore) float64 { return o.LogProb / float64(o.Bytes) }}, nil
	}
	return nil, fmt.Errorf("unknown grader of likelihoods %q; known: %s", grader,
		strings.Join(LikelihoodGraders(), ", "))
}

// likelihood compares values of options.
type likelihood struct {
	value func(rollout.OptionScore) float64
}

var (
	errNoOptions = errors.New("it is not a multiple-choice question with a known answer")
	errSampled   = errors.New("the completion is sampled, and has no likelihoods of options to compare")
)

// Grade implements rollout.Grader.
func (g likelihood) Grade(_ context.Context, p *rollout.Problem, c *rollout.Completion) (rollout.Verdict, error) {
	switch {
	case p.Choice == nil || p.Choice.Right < 0:
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, errNoOptions)
	case len(c.Options) == 0:
		return rollout.Verdict{}, fmt.Errorf("problem %s: %w", p.ID, errSampled)
	case len(c.Options) != len(p.Choice.Options):
		return rollout.Verdict{}, fmt.Errorf("problem %s: %d options, but likelihoods of %d", p.ID,
			len(p.Choice.Options), len(c.Options))
	}
	values := make([]string, len(c.Options))
	for i, o := range c.Options {
		values[i] = fmt.Sprintf("%s %.4g", rollout.Letter(i), g.value(o))
	}
	best := rollout.Likeliest(c.Options, g.value)
	v := rollout.Verdict{Status: rollout.Graded, Correct: p.Choice.IsRight(best), Reason: strings.Join(values, ", ")}
	if best < 0 {
		return rollout.Verdict{Reason: "the log-probs are not numbers"}, nil
	}
	if v.Answer = rollout.Letter(best); v.Correct {
		v.Reward = 1
	}
	return v, nil
}

// Belief says what a model finds likely among the options of a question: p, their probabilities behind the prompt over
// the sum of them. Several right options count as one.
type Belief struct {
	Right float64 `json:"right"` // p of the right option; of TruthfulQA's right ones, its MC2
	Brier float64 `json:"brier"` // Σ (p - 1 if right, else 0)², 0 to 2 (Brier 1950)
}

// beliefOf returns the belief in the options of a problem; nil without scores, or if these are not numbers.
func beliefOf(p *rollout.Problem, options []rollout.OptionScore) *Belief {
	if p.Choice == nil || p.Choice.Right < 0 || p.Choice.Right >= len(options) {
		return nil
	}
	best := rollout.Likeliest(options, func(o rollout.OptionScore) float64 { return o.LogProb })
	if best < 0 {
		return nil
	}
	var sum float64
	share := make([]float64, len(options))
	for i, o := range options {
		share[i] = math.Exp(o.LogProb - options[best].LogProb)
		sum += share[i]
	}
	var b Belief
	for i := range share {
		if share[i] /= sum; p.Choice.IsRight(i) {
			b.Right += share[i]
		}
	}
	for i, x := range share {
		switch {
		case i == p.Choice.Right:
			x = b.Right - 1
		case p.Choice.IsRight(i):
			continue
		}
		b.Brier += x * x
	}
	return &b
}

// OfOptions returns the metrics that say something of questions whose options were compared.
func OfOptions(list []Metric) []Metric {
	return slices.DeleteFunc(slices.Clone(list), func(m Metric) bool { return OfSamples(m.Name) })
}

// OfSamples reports whether a metric says nothing of questions whose options were compared. Nothing was sampled there,
// so nothing is to be counted in texts, and answers have no form.
func OfSamples(name string) bool {
	of := func(d Definition) bool { return d.Name == name && name != "not_graded" }
	return slices.ContainsFunc(countingMetrics(), of) || slices.ContainsFunc(textMetrics(), of) ||
		strings.HasPrefix(name, FormPrefix)
}
